import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference
from tests.strategies import samples

import polycal as pc


def confidence(labels, proba):
    top = proba.argmax(axis=1)
    return proba.max(axis=1), (top == labels).astype(float)


@settings(max_examples=200, deadline=None)
@given(samples(), st.integers(1, 20), st.sampled_from(["l1", "l2", "max"]))
def test_equal_width_bins(sample, n_bins, norm):
    labels, proba, weight = sample
    predicted, hits = confidence(labels, proba)
    bins = [reference.equal_width_bin(p, n_bins) for p in predicted]
    gaps = reference.binned_gaps(predicted, hits, np.ones(len(bins)) if weight is None else weight, bins)
    value = pc.calibration_error(labels, proba, pc.Confidence(n_bins=n_bins, norm=norm), sample_weight=weight)
    assert value == pytest.approx(reference.reduce_gaps(gaps, norm), abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(samples())
def test_smooth(sample):
    labels, proba, weight = sample
    predicted, hits = confidence(labels, proba)
    weight = np.ones(len(hits)) if weight is None else weight
    expected = reference.smooth_error_lp(predicted, weight / weight.sum() * (hits - predicted))
    value = pc.calibration_error(labels, proba, pc.Confidence(smooth=True), sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-9)


def test_equal_mass_bins_hold_equal_mass():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 1000)
    curve = pc.reliability_curve(rng.integers(0, 3, 1000), proba, n_bins=10, strategy="quantile")
    np.testing.assert_allclose(curve.count, np.full(10, 100), atol=1)


def test_confidences_zero_and_one_fall_into_bins():
    curve = pc.reliability_curve([0, 1, 1], [0.0, 1.0, 0.5], n_bins=2)
    np.testing.assert_array_equal(curve.count, [2, 1])
