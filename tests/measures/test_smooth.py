import numpy as np
import pytest
from hypothesis import example, given, settings
from tests import reference
from tests.strategies import lines, samples

import polycal as pc
from polycal.measures.smooth import projected_curve


def curve_correlation(curve, values, residual):
    return float(np.dot(residual, curve.phi(values)))


@settings(max_examples=1000, deadline=None)
@given(lines())
def test_projected_curve_equals_linear_program(line):
    values, residual = line
    curve = projected_curve(values, residual)
    assert curve.value == pytest.approx(reference.smooth_error_lp(values, residual), abs=1e-9)
    assert curve_correlation(curve, values, residual) == pytest.approx(curve.value, abs=1e-12)


@settings(max_examples=1000, deadline=None)
@given(samples())
def test_error_equals_linear_program(sample):
    labels, proba, weight = sample
    subset = [0] if proba.shape[1] < 4 else [0, 2]
    value = pc.smooth_calibration_error(labels, proba, subset=subset, sample_weight=weight)
    assert value == pytest.approx(reference.smooth_error(labels, proba, subset, weight), abs=1e-9)
    assert 0 <= value <= 1 + 1e-12


@settings(max_examples=500, deadline=None)
@given(samples())
def test_phi_is_a_lipschitz_witness_of_the_value(sample):
    labels, proba, weight = sample
    curve = pc.smooth_calibration_curve(labels, proba, subset=[0], sample_weight=weight)
    values, residual = reference.subset_residual(labels, proba, [0], weight)
    assert curve_correlation(curve, values, residual) == pytest.approx(curve.value, abs=1e-12)
    heights, knots = curve.phi.heights, curve.phi.knots
    assert np.all(np.abs(heights) <= 1)
    assert np.all(np.abs(np.diff(heights)) <= np.diff(knots) + 1e-15)


@settings(max_examples=300, deadline=None)
@given(samples())
def test_curves_make_up_the_value(sample):
    labels, proba, weight = sample
    curve = pc.smooth_calibration_curve(labels, proba, subset=[0], sample_weight=weight)
    F, S, R = curve.cumulative, curve.monotone, curve.mean_residual
    area = np.sum(np.diff(curve.predicted) * np.abs(F - S)[:-1])
    assert curve.value == pytest.approx(abs(R) + area, abs=1e-12)
    rises = np.diff(S, prepend=0.0)
    assert np.all(rises >= 0) if R >= 0 else np.all(rises <= 0)
    assert S[-1] == R


@settings(max_examples=200, deadline=None)
@given(samples(min_classes=3))
def test_a_subset_and_its_complement_are_the_same_question(sample):
    labels, proba, weight = sample
    rest = list(range(1, proba.shape[1]))
    one = pc.smooth_calibration_error(labels, proba, subset=[0], sample_weight=weight)
    other = pc.smooth_calibration_error(labels, proba, subset=rest, sample_weight=weight)
    assert one == pytest.approx(other, abs=1e-12)


def test_weighted_steps_need_slopes_between_minus_one_and_one():
    # F = S on a long step but the slope there is not 0: found by the linear program only.
    values = np.array([0.0, 0.6, 0.8, 1.0])
    residual = np.array([0.3, -0.1, -0.1, 0.25])
    curve = projected_curve(values, residual)
    assert curve.value == pytest.approx(reference.smooth_error_lp(values, residual), abs=1e-12)
    assert curve_correlation(curve, values, residual) == pytest.approx(curve.value, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "proba", "expected"),
    [
        ([1], [0.3], 0.7),
        ([0], [0.0], 0.0),
        ([1, 1, 0, 0], [0.5] * 4, 0.0),
        ([1, 1, 1, 0], [0.5] * 4, 0.25),
        ([0, 1], [0.0, 1.0], 0.0),
        ([1, 0], [0.0, 1.0], 0.5),
    ],
)
def test_known_values(labels, proba, expected):
    assert pc.smooth_calibration_error(labels, proba) == pytest.approx(expected, abs=1e-15)


def test_default_question_is_confidence_for_many_classes():
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    confidence = pc.calibration_error(labels, proba, pc.Confidence(smooth=True))
    assert pc.smooth_calibration_error(labels, proba) == confidence


def test_data_frame_columns_are_class_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"cat": [0.2, 0.6], "dog": [0.3, 0.3], "car": [0.5, 0.1]})
    by_name = pc.smooth_calibration_error(["car", "dog"], frame, subset=["cat", "dog"])
    by_index = pc.smooth_calibration_error([2, 1], frame.to_numpy(), subset=[0, 1])
    assert by_name == by_index


def test_error_tends_to_the_known_truth():
    # P(y = 1 | u) = u - 0.1 on u uniform in [0.1, 1]: phi = -1 gives exactly 0.1.
    rng = np.random.default_rng(1)
    u = rng.uniform(0.1, 1.0, 400_000)
    y = (rng.random(u.size) < u - 0.1).astype(int)
    assert pc.smooth_calibration_error(y, u) == pytest.approx(0.1, abs=0.005)


@settings(max_examples=100, deadline=None)
@given(samples())
@example((np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.0, 1.0])))
def test_float32_is_close_to_float64(sample):
    labels, proba, weight = sample
    single = pc.smooth_calibration_error(labels, proba.astype(np.float32), subset=[0], sample_weight=weight)
    double = pc.smooth_calibration_error(labels, proba, subset=[0], sample_weight=weight)
    assert single == pytest.approx(double, abs=1e-6)
