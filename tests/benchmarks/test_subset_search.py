import numpy as np
import pytest

from benchmarks import subset_search
from polycal.datasets import make_calibrated, make_cat_and_dog
from polycal.sample import Sample


@pytest.fixture(scope="module")
def rows():
    made = make_cat_and_dog(4000)
    return {row["method"]: row for row in subset_search.compare(Sample(made.proba, made.labels))}


def test_nothing_seen_is_worse_than_the_worst_of_all(rows):
    assert len(rows) == 4
    worst = rows["every subset"]["seen"]
    assert all(row["seen"] <= worst + 1e-9 for row in rows.values())
    assert rows["polycal search"]["seen"] == pytest.approx(worst)


def test_what_is_found_holds_up(rows):
    for row in rows.values():
        assert row["size"] in {1, 2, 3}
        assert row["noise_floor"] < 0.012
    assert rows["polycal auditor"]["held_out"] == pytest.approx(0.024, abs=0.008)


def test_random_search_stops_and_finds_a_proper_subset():
    made = make_calibrated(100, 6)
    members = subset_search.random_search(Sample(made.proba, made.labels), 0.0, seed=1)
    assert 0 < members.size < 6
    assert np.all(np.diff(members) > 0)
