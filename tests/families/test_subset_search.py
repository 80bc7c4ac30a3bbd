import numpy as np
import pytest
from tests import reference_subset

from polycal._threads import thread_budget
from polycal._validation import check_sample
from polycal.families import _subset_climb
from polycal.families.subset import enumerate_subsets, search_part, search_subsets
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset

KINDS = ["noise", "calibrated", "confidence", "confusion"]


def case(seed, n_classes=40, n_rows=500, kind="confusion", weighted=False):
    rng = np.random.default_rng(seed)
    labels, proba = reference_subset.random_case(rng, n_classes, n_rows, kind)
    return check_sample(labels, proba, sample_weight=rng.random(n_rows) if weighted else None)


def agreement(n_cases, seed):
    """How often the search finds the largest error, over all kinds, sizes and limits."""
    rng = np.random.default_rng(seed)
    found = 0
    for i in range(n_cases):
        n_classes, n_rows = int(rng.integers(3, 13)), int(rng.choice([50, 200, 1000]))
        sample = case(1000 * seed + i, n_classes, n_rows, KINDS[i % 4], weighted=i % 5 == 0)
        max_size = int(rng.integers(1, n_classes)) if i % 3 == 0 else None
        best = enumerate_subsets(sample, max_size).value
        found += search_subsets(sample, max_size).value >= best - 1e-9
    return found / n_cases


def test_equals_enumeration():
    assert agreement(40, seed=1) >= 0.97


@pytest.mark.slow
def test_equals_enumeration_in_99_of_100_random_cases():
    assert agreement(200, seed=2) >= 0.99


@pytest.mark.parametrize("max_size", [None, 1, 5, 25])
def test_the_value_is_that_of_the_set_and_the_set_is_small_enough(max_size):
    sample = case(3, weighted=True)
    found = search_subsets(sample, max_size)
    assert found.value == smooth_error(ask_subset(sample, found.members))
    assert 1 <= found.members.size <= (max_size or 20)


def test_the_search_beats_random_sets_and_its_neighbours():
    sample, rng = case(4, n_classes=60), np.random.default_rng(0)
    found = search_subsets(sample)
    sets = [np.flatnonzero(rng.random(60) < 0.5) for _ in range(300)]
    assert found.value > 1.5 * max(smooth_error(ask_subset(sample, s)) for s in sets)
    for label in range(60):
        neighbour = np.setxor1d(found.members, [label])
        assert smooth_error(ask_subset(sample, neighbour)) <= found.value + 1e-6


def test_a_larger_limit_never_hurts():
    sample = case(5, n_classes=30)
    values = [search_subsets(sample, max_size).value for max_size in (1, 2, 4, 8, 14, 30)]
    assert (np.diff(values) >= -1e-9).all()


@pytest.mark.parametrize("max_size", [None, 4])
def test_row_order_does_not_matter(max_size):
    sample = case(6, weighted=True)
    shuffled = sample.take(np.random.default_rng(0).permutation(sample.n_samples))
    assert (
        search_subsets(shuffled, max_size).members.tolist()
        == search_subsets(sample, max_size).members.tolist()
    )


@pytest.mark.parametrize("max_size", [None, 4])
def test_relabelling_classes_relabels_the_set(max_size):
    sample = case(7)
    new = np.random.default_rng(0).permutation(sample.n_classes)
    relabelled = check_sample(np.argsort(new)[sample.labels], sample.proba[:, new])
    found = new[search_subsets(relabelled, max_size).members]
    assert sorted(found) == search_subsets(sample, max_size).members.tolist()


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_number_of_threads_does_not_matter(n_jobs):
    sample = case(8)
    expected = search_subsets(sample)
    with thread_budget(n_jobs):
        found = search_subsets(sample)
    assert found.members.tolist() == expected.members.tolist()
    assert found.n_evaluated == expected.n_evaluated


def test_a_weight_of_2_is_the_row_twice():
    sample = case(9)
    times = np.random.default_rng(0).integers(0, 3, sample.n_samples)
    rows = np.repeat(np.arange(sample.n_samples), times)
    weighted = check_sample(sample.labels, sample.proba, sample_weight=times)
    assert search_subsets(weighted).value == pytest.approx(search_subsets(sample.take(rows)).value, abs=1e-9)


def test_a_large_sample_is_searched_in_part_and_valued_whole(monkeypatch):
    sample = case(10, n_classes=20, n_rows=2000)
    monkeypatch.setattr(_subset_climb, "_MAX_CELLS", 20 * 1500)
    part = search_part(sample, seed=0)
    assert part.n_samples == 1500
    found = search_subsets(sample)
    assert found.value == smooth_error(ask_subset(sample, found.members))
    monkeypatch.undo()
    assert found.value > 0.8 * search_subsets(sample).value


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_classes_and_one_row(n_classes):
    proba = np.full((1, n_classes), 1 / n_classes)
    found = search_subsets(check_sample([0], proba))
    assert found.value == pytest.approx(1 - 1 / n_classes)


def test_predictions_without_error():
    sample = check_sample([0, 1, 2], np.eye(3))
    assert search_subsets(sample).value == 0.0
    assert search_subsets(sample).members.size >= 1
