"""The smooth calibration error from lists: exact where nothing is unknown, else an interval that always holds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference_lists import completed, ragged, spread, truncated
from tests.strategies import samples

import polycal as pc
from polycal import sparse
from polycal.measures.functions import LipschitzFunction, StepFunction
from polycal.measures.smooth import least_gains
from polycal.sample import Question


@settings(max_examples=120, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000), size=st.integers(1, 4))
def test_the_interval_holds_the_error_of_every_completion(data, seed, size):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    subset = rng.permutation(proba.shape[1])[:size].tolist()
    for remainder, top in (("unknown", True), ("anywhere", False)):
        found = sparse.smooth_calibration_error(
            labels, lists, subset=subset, remainder=remainder, sample_weight=weight
        )
        assert 0 <= found.low <= found.value + 1e-12 <= found.high + 2e-12
        for full in (proba, completed(lists, rng, top=top), completed(lists, rng, top=top)):
            exact = pc.smooth_calibration_error(labels, full, subset=subset, sample_weight=weight)
            assert found.low - 1e-8 <= exact <= found.high + 1e-8


@settings(max_examples=60, deadline=None)
@given(data=samples(), seed=st.integers(0, 1000), size=st.integers(1, 3))
def test_spread_and_complete_lists_are_exact(data, seed, size):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    subset = rng.permutation(proba.shape[1])[:size].tolist()
    lists = ragged(proba, rng)
    found = sparse.smooth_calibration_error(
        labels, lists, subset=subset, remainder="spread", sample_weight=weight
    )
    exact = pc.smooth_calibration_error(labels, spread(lists), subset=subset, sample_weight=weight)
    assert found.value == pytest.approx(exact, abs=1e-9)
    assert found.low == found.value == found.high
    whole = sparse.smooth_calibration_error(
        labels, truncated(proba, proba.shape[1]), subset=subset, sample_weight=weight
    )
    exact = pc.smooth_calibration_error(labels, proba, subset=subset, sample_weight=weight)
    assert whole.low == pytest.approx(exact, abs=1e-9)
    assert whole.unknown == 0


def constant_floor(labels, lists, subset, weight):
    """The least mean residual, in absolute value, over all ways to complete top lists."""
    sample = sparse.sparse_sample(labels, lists, sample_weight=weight)
    low, high = sample.subset_range(np.sort(subset))
    hits = sample.subset_hits(np.sort(subset))
    return max(sample.mass @ (hits - high), sample.mass @ (low - hits), 0.0)


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3, weighted=False), seed=st.integers(0, 1000))
def test_order_names_and_weights(data, seed):
    labels, proba, _ = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    rows, classes = rng.permutation(len(labels)), rng.permutation(proba.shape[1])
    new_name = np.argsort(classes)
    weight = rng.integers(1, 3, len(labels))
    twice = np.repeat(np.arange(len(labels)), weight)

    def interval(y, p, subset, w=None):
        found = sparse.smooth_calibration_error(y, p, subset=subset, sample_weight=w)
        # The lower end is that of one optimal weight function; of several, rounding decides which. It never falls
        # below what constant weights show, which does not depend on that.
        assert constant_floor(y, p, subset, w) - 1e-12 <= found.low <= found.value + 1e-12
        return [found.high, found.value, found.unknown]

    plain = interval(labels, lists, [0, 1])
    assert interval(labels[rows], lists[rows], [0, 1]) == pytest.approx(plain, abs=1e-9)
    renamed = interval(new_name[labels], lists[:, classes], new_name[[0, 1]])
    assert renamed == pytest.approx(plain, abs=1e-9)
    weighted = interval(labels, lists, [0, 1], weight)
    assert weighted == pytest.approx(interval(labels[twice], lists[twice], [0, 1]), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n_knots=st.integers(1, 9))
def test_least_gains_are_the_minimum_over_the_interval(seed, n_knots):
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.choice(np.linspace(0, 1, 65), n_knots, replace=False))
    steps = rng.uniform(-1, 1, n_knots) * np.diff(knots, prepend=knots[0])
    phi = LipschitzFunction(knots, np.clip(rng.uniform(-1, 1) + np.cumsum(steps), -1, 1))
    low, high = np.sort(rng.uniform(0, 1, (2, 12)), axis=0)
    high[0] = low[0]
    hits = rng.random(12) < 0.5
    grid = low + np.linspace(0, 1, 2001)[:, None] * (high - low)
    on_grid = ((hits - grid) * phi(grid)).min(axis=0)
    question = Question((low + high) / 2, hits, None, "", low, high)
    least = least_gains(phi, question)
    assert (least <= on_grid + 1e-12).all()
    np.testing.assert_allclose(least, on_grid, atol=2e-3)
    assert least[0] == pytest.approx((hits[0] - low[0]) * phi(low[0]), abs=1e-12)
    step = StepFunction(knots, rng.uniform(-1, 1, n_knots + 1))
    assert (least_gains(step, question) <= ((hits - grid) * step(grid)).min(axis=0) + 1e-12).all()
    unsure = rng.random(12) < 0.5
    either = np.minimum(least, least_gains(phi, replace(question, hits=~hits)))
    both = least_gains(phi, replace(question, unsure=unsure))
    np.testing.assert_array_equal(both, np.where(unsure, either, least))


def test_the_interval_is_no_wider_than_it_was_without_the_least_listed_class():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(50, 0.1), 400)
    labels = rng.integers(0, 50, 400)
    lists = truncated(proba, 5)
    known = sparse.smooth_calibration_error(labels, lists, subset=[0, 1, 2])
    free = sparse.smooth_calibration_error(labels, lists, subset=[0, 1, 2], remainder="anywhere")
    exact = pc.smooth_calibration_error(labels, proba, subset=[0, 1, 2])
    assert free.low <= known.low <= exact <= known.high <= free.high
    assert known.high - known.low < 0.9 * (free.high - free.low)


def test_bad_subsets_are_refused():
    lists = truncated(np.array([[0.5, 0.3, 0.2]]), 2)
    with pytest.raises(ValueError, match="outside 0"):
        sparse.smooth_calibration_error([0], lists, subset=[3])
    named = sparse.smooth_calibration_error([0], lists, subset=["b"], class_names=["a", "b", "c"])
    assert named.value == pytest.approx(0.3)
