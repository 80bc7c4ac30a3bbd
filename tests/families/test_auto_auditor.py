import numpy as np
import pytest

import polycal as pc


@pytest.fixture(scope="module")
def data():
    made = pc.datasets.make_shifted_subset(3000, 6, error=0.15, random_state=0)
    return made.labels, made.proba


def test_the_best_on_rows_held_back_wins(data):
    weak, strong = pc.SubsetAuditor(max_size=1), pc.SubsetAuditor()
    found = pc.AutoAuditor([weak, strong]).find_witness(*data)
    assert found.subset in ([0, 1, 2], [3, 4, 5])


def test_the_winner_is_one_of_the_candidates(data):
    auditor = pc.NotionAuditor(pc.Confidence(smooth=True))
    assert isinstance(pc.AutoAuditor([auditor]).find_witness(*data), pc.TopWitness)


def test_it_is_reproducible(data):
    one, two = (pc.AutoAuditor(random_state=3).find_witness(*data) for _ in range(2))
    np.testing.assert_array_equal(one(data[1]), two(data[1]))


def test_no_auditors_are_refused():
    with pytest.raises(ValueError, match="auditors is empty"):
        pc.AutoAuditor([])
