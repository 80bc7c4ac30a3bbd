import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference
from tests.strategies import samples

import polycal as pc


@settings(max_examples=200, deadline=None)
@given(samples(), st.integers(1, 20), st.sampled_from(["l1", "l2", "max"]))
def test_equal_width_bins(sample, n_bins, norm):
    labels, proba, weight = sample
    top, predicted = proba.argmax(axis=1), proba.max(axis=1)
    cells = [(t, reference.equal_width_bin(p, n_bins)) for t, p in zip(top, predicted, strict=True)]
    weights = np.ones(len(labels)) if weight is None else weight
    gaps = reference.binned_gaps(predicted, top == labels, weights, cells)
    value = pc.calibration_error(labels, proba, pc.TopLabel(n_bins=n_bins, norm=norm), sample_weight=weight)
    assert value == pytest.approx(reference.reduce_gaps(gaps, norm), abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(samples())
def test_smooth_is_the_sum_over_predicted_labels(sample):
    labels, proba, weight = sample
    top, predicted = proba.argmax(axis=1), proba.max(axis=1)
    mass = np.ones(len(labels)) if weight is None else weight
    residual = mass / mass.sum() * ((top == labels) - predicted)
    expected = sum(reference.smooth_error_lp(predicted[top == t], residual[top == t]) for t in set(top))
    value = pc.calibration_error(labels, proba, pc.TopLabel(smooth=True), sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-9)


def test_sees_what_confidence_cannot():
    # Class 0 is over-confident, class 1 under-confident by as much: they cancel in confidence.
    proba = [[0.75, 0.25]] * 4 + [[0.25, 0.75]] * 4
    labels = [0, 0, 1, 1] + [1, 1, 1, 1]
    assert pc.calibration_error(labels, proba, pc.Confidence()) == 0
    assert pc.calibration_error(labels, proba, pc.TopLabel()) == 0.25
    assert pc.calibration_error(labels, proba, pc.TopLabel(smooth=True)) == 0.25
