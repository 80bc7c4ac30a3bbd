import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference, reference_subset
from tests.strategies import samples

from polycal._threads import thread_budget
from polycal._validation import check_sample
from polycal.families import _subset_tree as subset_enumeration
from polycal.families._subset_tree import affordable, count_subsets, enumerate_subsets, value_subsets
from polycal.measures.smooth import smooth_error
from polycal.sample import Sample, ask_subset


@settings(max_examples=60, deadline=None)
@given(samples(max_classes=6), st.one_of(st.none(), st.integers(1, 7)))
def test_equals_trying_every_subset(data, max_size):
    labels, proba, weight = data
    sample = check_sample(labels, proba, sample_weight=weight)
    found = enumerate_subsets(sample, max_size)
    assert found.value == pytest.approx(reference_subset.largest_error(sample, max_size), abs=1e-12)
    assert smooth_error(ask_subset(sample, found.members)) == pytest.approx(found.value, abs=1e-12)
    assert 1 <= found.members.size <= (max_size or sample.n_classes)
    assert (np.diff(found.members) > 0).all()


@pytest.mark.parametrize(
    ("n_classes", "max_size", "count"),
    [(2, None, 1), (4, None, 7), (14, None, 2**13 - 1), (7, 2, 28), (7, 3, 63), (100, 2, 5050)],
)
def test_how_many_subsets(n_classes, max_size, count):
    assert count_subsets(n_classes, max_size) == count


@pytest.mark.parametrize("max_size", [None, 2, 3])
def test_every_subset_is_valued_once(max_size):
    rng = np.random.default_rng(0)
    sample = check_sample(rng.integers(0, 9, 30), rng.dirichlet(np.ones(9), 30))
    values = value_subsets(sample, max_size)
    sets = {tuple(values.tree.subset(number)) for number in range(values.value.size)}
    assert len(sets) == values.value.size == count_subsets(9, max_size) + 1
    with pytest.raises(IndexError, match="fewer"):
        values.tree.subset(values.value.size)


@settings(max_examples=30, deadline=None)
@given(samples(max_classes=4, max_rows=12), st.one_of(st.none(), st.integers(1, 3)))
def test_values_in_cells_are_off_by_no_more_than_they_say(data, max_size):
    labels, proba, weight = data
    sample = check_sample(labels, proba, sample_weight=weight)
    values = value_subsets(sample, max_size)
    for number in range(values.value.size):
        u, residual = reference.subset_residual(
            labels, sample.proba.astype(float), values.tree.subset(number), weight
        )
        error = reference.smooth_error_lp(u, residual)
        centred = reference.smooth_error_lp(u, residual - residual.sum() * sample.mass)
        assert abs(values.value[number] - error) <= values.slack[number] + 1e-7
        assert abs(values.centred[number] - centred) <= values.slack[number] + 1 / 128 + 1e-7


def test_few_subsets_are_sorted(monkeypatch):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(11), 500)
    sample = check_sample(rng.integers(0, 11, 500), proba)
    sorted_sets = []
    monkeypatch.setattr(
        subset_enumeration, "smooth_error", lambda question: sorted_sets.append(1) or smooth_error(question)
    )
    assert enumerate_subsets(sample).n_evaluated == 2**10 - 1
    assert len(sorted_sets) < 50


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_number_of_threads_does_not_matter(n_jobs):
    rng = np.random.default_rng(1)
    sample = check_sample(rng.integers(0, 8, 60), rng.dirichlet(np.ones(8), 60))
    expected = enumerate_subsets(sample)
    with thread_budget(n_jobs):
        found = enumerate_subsets(sample)
    assert found.members.tolist() == expected.members.tolist()
    assert found.value == expected.value


def test_float32_rows_that_sum_to_more_than_1():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(6), 200).astype(np.float32)
    sample = Sample(proba * np.float32(1 + 1e-7), rng.integers(0, 6, 200))
    assert enumerate_subsets(sample).value == pytest.approx(
        reference_subset.largest_error(sample, 5), abs=1e-12
    )


def test_what_is_affordable():
    def empty(n, k):
        return Sample(np.broadcast_to(np.float32(1 / k), (n, k)), np.broadcast_to(np.int64(0), (n,)))

    assert affordable(empty(10_000, 14))
    assert not affordable(empty(10_000, 14), effort=0.01)
    assert not affordable(empty(10_000, 26))
    assert affordable(empty(10_000, 26), 4)
    assert not affordable(empty(10_000, 1000), 2)
