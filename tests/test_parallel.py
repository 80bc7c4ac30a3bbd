import time

import pytest

from polycal._parallel import map_threads, read_ahead


def test_results_keep_the_order_whatever_the_threads():
    for n_jobs in (1, 2, -1, None):
        assert map_threads(lambda x: x * x, range(20), n_jobs) == [x * x for x in range(20)]


def test_items_read_ahead_are_the_same_in_order():
    assert list(read_ahead(range(5))) == [0, 1, 2, 3, 4]
    assert list(read_ahead([])) == []


def test_errors_come_where_they_would_have_come():
    def items():
        yield 1
        raise ValueError("damaged")

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="damaged"):
        next(ahead)


def test_the_next_item_is_made_while_one_is_used():
    made = []

    def items():
        for i in range(3):
            made.append(i)
            yield i

    ahead = read_ahead(items())
    assert next(ahead) == 0
    while len(made) < 2:
        time.sleep(0.001)
    assert made == [0, 1]
