import sys
import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference_transport as reference
from tests.strategies import samples

import polycal as pc
from polycal.families import full_smooth as search
from polycal.families.full_smooth import FullSmooth
from polycal.inference.redraw import calibration_test
from polycal.measures.smooth import projected_curve

pytest.importorskip("ot")
QUIET = FullSmooth(n_floor_draws=0)


def error(labels, proba, weight=None):
    return pc.calibration_error(labels, proba, QUIET, sample_weight=weight)


def drawn(n, k, seed=0, concentration=1.0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, concentration), n)
    return (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba


@settings(max_examples=60, deadline=None)
@given(samples(max_classes=4, max_rows=25))
def test_equals_the_dense_linear_program(sample):
    labels, proba, weight = sample
    estimate = pc.estimate_error(labels, proba, QUIET, sample_weight=weight)
    assert estimate.value == pytest.approx(reference.full_smooth_error(labels, proba, weight), abs=1e-9)
    assert estimate.kind == "exact"
    assert 0 <= estimate.value <= 2 + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_arcs_are_added_until_none_would_help(monkeypatch, seed):
    labels, proba = drawn(300, 3, seed)
    full = error(labels, proba)
    monkeypatch.setattr(search, "_N_NEIGHBOURS", 1)
    assert error(labels, proba) == pytest.approx(full, abs=1e-11)
    monkeypatch.setattr(search, "_MAX_ROUNDS", 1)
    cut_short = pc.estimate_error(labels, proba, QUIET)
    assert cut_short.value < full - 1e-6
    assert cut_short.kind == "lower bound"


def test_a_solver_that_gives_up_leaves_a_lower_bound(monkeypatch):
    labels, proba = drawn(200, 3)
    monkeypatch.setattr(search, "_MAX_PIVOTS", 5)
    with pytest.warns(UserWarning, match="numItermax"):
        estimate = pc.estimate_error(labels, proba, QUIET)
    assert estimate.kind == "lower bound"
    monkeypatch.undo()
    assert estimate.value < error(labels, proba)


@settings(max_examples=40, deadline=None)
@given(samples(max_classes=4))
def test_no_subset_has_a_larger_smooth_error(sample):
    labels, proba, weight = sample
    full = error(labels, proba, weight)
    k = proba.shape[1]
    for subset in (s for size in range(1, k + 1) for s in combinations(range(k), size)):
        smooth = pc.smooth_calibration_error(labels, proba, subset=list(subset), sample_weight=weight)
        assert smooth <= full + 1e-9


@settings(max_examples=40, deadline=None)
@given(samples(max_classes=2))
def test_two_classes_are_twice_a_line_of_length_two(sample):
    labels, proba, weight = sample
    weight = np.ones(len(labels)) if weight is None else weight
    residual = weight / weight.sum() * (labels - proba[:, 1])
    line = projected_curve(2 * proba[:, 1], residual).value
    assert error(labels, proba, weight) == pytest.approx(2 * line, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(samples(weighted=True))
def test_order_names_and_weights(sample):
    labels, proba, weight = sample
    value = error(labels, proba, weight)
    rng = np.random.default_rng(0)
    rows, classes = rng.permutation(len(labels)), rng.permutation(proba.shape[1])
    assert error(labels[rows], proba[rows], 3 * weight[rows]) == pytest.approx(value, abs=1e-11)
    assert error(np.argsort(classes)[labels], proba[:, classes], weight) == pytest.approx(value, abs=1e-11)
    times = weight.astype(int)
    assert error(np.repeat(labels, times), np.repeat(proba, times, axis=0)) == pytest.approx(value, abs=1e-11)


def test_zero_when_every_repeated_prediction_is_exactly_right():
    counts = np.array([[1, 3, 4], [4, 2, 2], [0, 5, 3], [8, 0, 0]])
    labels = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    assert error(labels, np.repeat(counts / 8, 8, axis=0)) == pytest.approx(0, abs=1e-15)


def test_certain_and_wrong_is_two():
    assert error([1, 2, 0], np.eye(3)) == pytest.approx(2)


def test_tiny_probabilities_do_not_upset_the_solver():
    labels, proba = drawn(400, 5, concentration=0.01)
    estimate = pc.estimate_error(labels, proba, QUIET)
    assert estimate.kind == "exact"
    assert proba.min() < 1e-100


def test_float32_agrees_with_float64():
    labels, proba = drawn(200, 4)
    assert error(labels, proba.astype(np.float32)) == pytest.approx(error(labels, proba), abs=1e-6)


def test_warns_with_the_noise_floor_beside_the_value():
    labels, proba = drawn(100, 3)
    with pytest.warns(
        pc.CalibrationWarning, match=r"overfits: 0\.\d+ here; 0\.\d+ with labels drawn .* \(3 draws\)"
    ):
        estimate = pc.estimate_error(labels, proba, FullSmooth(n_floor_draws=3))
    assert "(3 draws)" in estimate.method
    with pytest.warns(pc.CalibrationWarning, match=r"\(1 draw\)"):
        pc.estimate_error(labels, proba, FullSmooth())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pc.estimate_error(labels, proba, QUIET).method == "optimal transport for each class"


def floor(labels, proba, **parameters):
    with pytest.warns(pc.CalibrationWarning):
        estimate = pc.estimate_error(labels, proba, FullSmooth(**parameters))
    return estimate.value, float(estimate.method.split("; ")[1].split()[0])


def test_the_floor_is_what_calibrated_predictions_read():
    labels, proba = drawn(400, 3)
    value, noise = floor(labels, proba, n_floor_draws=10)
    assert value == pytest.approx(noise, rel=0.25)
    value, same_noise = floor(np.zeros(400, int), proba, n_floor_draws=10)
    assert value > 5 * noise
    assert same_noise == noise
    assert floor(labels, proba, n_floor_draws=10, random_state=1)[1] != noise


def test_the_calibration_test_judges_it():
    labels, proba = drawn(150, 3)
    assert calibration_test(labels, proba, QUIET, n_draws=19).p_value > 0.05
    assert calibration_test(np.zeros(150, int), proba, QUIET, n_draws=19).p_value == 0.05


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="n_floor_draws must be an integer, at least 0; got -1"):
        FullSmooth(n_floor_draws=-1)
    with pytest.raises(ValueError, match="random_state"):
        FullSmooth(random_state=-1)


def test_without_the_library_the_fix_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(ImportError, match=r"pip install 'polycal\[transport\]'"):
        error(*drawn(20, 3))


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [0.1, 1.0])
def test_five_thousand_rows_of_ten_classes_are_exact(concentration):
    labels, proba = drawn(5000, 10, concentration=concentration)
    assert pc.estimate_error(labels, proba, QUIET).kind == "exact"
