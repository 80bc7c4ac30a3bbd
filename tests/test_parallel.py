from polycal._parallel import map_threads


def test_results_keep_the_order_whatever_the_threads():
    for n_jobs in (1, 2, -1, None):
        assert map_threads(lambda x: x * x, range(20), n_jobs) == [x * x for x in range(20)]
