"""Priors: a minimum that exists for any rows, that no order of classes is lost to, and that many rows outvote."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from tests.calibrators.draws import confused, tempered
from tests.reference_calibrators import log_loss, logs

import polycal as pc
from polycal.calibrators.priors import MatrixPenalty, slope_penalty, slope_penalty_gradient

CALIBRATORS = [
    pc.TemperatureScaling(),
    pc.EnsembleTemperatureScaling(),
    pc.VectorScaling(),
    pc.MatrixScaling(),
    pc.MatrixScaling(off_diagonal=0.0, diagonal=0.0),
    pc.DirichletCalibrator(),
    pc.DirichletCalibrator(off_diagonal=0.0, intercept=0.0),
    pc.BetaCalibrator(),
]
every = pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
few_rows = pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")
RIGHT = np.arange(60) % 3
SEPARABLE = softmax(np.random.default_rng(0).normal(0, 0.3, (60, 3)) + 2.0 * np.eye(3)[RIGHT], axis=1)
ROWS = {
    "separable": (SEPARABLE, RIGHT),
    "right and certain": (np.eye(3)[RIGHT], RIGHT),
    "wrong and certain": (np.eye(3)[RIGHT], (RIGHT + 1) % 3),
    "a class that does not occur": (SEPARABLE, RIGHT % 2),
    "fewer rows than classes": (softmax(np.random.default_rng(1).normal(0, 3, (4, 9)), axis=1), np.arange(4)),
    "one row": (np.array([[0.7, 0.2, 0.1]]), np.array([0])),
    "one row, wrong and certain": (np.array([[1.0, 0.0, 0.0]]), np.array([1])),
}


@few_rows
@every
@pytest.mark.parametrize("rows", ROWS)
def test_no_rows_make_the_map_run_away(calibrator, rows):
    proba, labels = ROWS[rows]
    k = proba.shape[1]
    fitted = clone(calibrator).fit(proba, labels)
    # A corner and its neighbourhood, and a row without an opinion.
    new = np.vstack([np.eye(k), 0.02 / k + 0.98 * np.eye(k), np.full((1, k), 1.0 / k)])
    out = fitted.predict_proba(new)
    assert np.isfinite(out).all()
    # Not more certain than so few rows can show.
    assert out[k : 2 * k].max() < 1.0 - 1e-9
    for name in ("temperature_", "scale_", "bias_", "weight_", "curves_"):
        assert np.abs(getattr(fitted, name, 0.0)).max() < 101.0


@few_rows
@every
@pytest.mark.parametrize("n", [1, 3, 12, 60])
def test_the_order_of_the_classes_stays_without_evidence_against_it(calibrator, n):
    out = clone(calibrator).fit(SEPARABLE[:n], RIGHT[:n]).predict_proba(SEPARABLE[:n])
    np.testing.assert_array_equal(out.argmax(axis=1), RIGHT[:n])


@every
def test_certain_predictions_of_separable_rows_keep_their_classes(calibrator):
    """The posterior of naive Bayes: all but certain, and right but for a few rows."""
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 4, (150, 3)) + 30.0 * np.eye(3)[np.arange(150) % 3] * rng.uniform(0, 1, (150, 1))
    proba, labels = softmax(logits, axis=1), np.arange(150) % 3
    right = logits.argmax(axis=1) == labels
    fit, new = np.flatnonzero(right)[:53], np.arange(150)[53:]
    out = clone(calibrator).fit(proba[fit], labels[fit]).predict_proba(proba[new])
    before = (proba[new].argmax(axis=1) == labels[new]).mean()
    assert (out.argmax(axis=1) == labels[new]).mean() > before - 0.06
    assert log_loss(out, labels[new]) < 2.5 * log_loss(proba[new], labels[new])


@every
@pytest.mark.parametrize("copies", [1, 1000])
def test_many_rows_outvote_the_prior(calibrator, copies):
    sample = confused(n=200, k=3)
    weight = np.full(200, float(copies))
    # Penalties that grow with the rows are no priors.
    given = {"off_diagonal": 1.0} if "off_diagonal" in calibrator.get_params() else {}
    with_prior, without = (
        clone(calibrator).set_params(prior=prior, **given).fit(sample.proba, sample.labels, weight)
        for prior in (1.0, None)
    )
    distance = np.abs(with_prior.predict_proba(sample.proba) - without.predict_proba(sample.proba)).max()
    assert distance > 1e-4 if copies == 1 else distance < 1e-3


@every
def test_a_prior_of_no_weight_is_none(calibrator):
    sample = confused(n=100, k=3)
    nothing, none = (
        clone(calibrator).set_params(prior=prior).fit(sample.proba, sample.labels) for prior in (0.0, None)
    )
    np.testing.assert_array_equal(nothing.predict_proba(sample.proba), none.predict_proba(sample.proba))
    with pytest.raises(ValueError, match="prior must be a number from 0"):
        clone(calibrator).set_params(prior=-1.0).fit(sample.proba, sample.labels)


def test_the_temperature_is_the_maximum_a_posteriori():
    fitted = pc.TemperatureScaling(prior=3.0).fit(SEPARABLE, RIGHT)

    def objective(t):
        slope = float(np.exp(t[0]))
        return 60 * log_loss(softmax(slope * logs(SEPARABLE), axis=1), RIGHT) + 3.0 * slope_penalty(slope)

    best = minimize(objective, [0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    assert fitted.temperature_ == pytest.approx(np.exp(-best.x[0]), rel=1e-5)


def test_vector_scaling_is_the_maximum_a_posteriori():
    proba, labels, _ = tempered(2.0, n=40, k=3)
    fitted = pc.VectorScaling(ridge=2.0, prior=5.0).fit(proba, labels)

    def objective(point):
        a, b, slope = point[:3], point[3:6], float(np.exp(point[6]))
        held = 1.0 * (((a - slope) ** 2).sum() + b @ b) + 5.0 * slope_penalty(slope)
        return 40 * log_loss(softmax(logs(proba) * a + b, axis=1), labels) + held

    best = minimize(objective, [1, 1, 1, 0, 0, 0, 0], method="BFGS").x
    np.testing.assert_allclose(fitted.scale_, best[:3], atol=1e-4)
    np.testing.assert_allclose(fitted.bias_, best[3:6], atol=1e-4)


def test_the_penalty_of_a_slope_is_least_at_one_and_its_derivative_right():
    assert slope_penalty(1.0) == slope_penalty_gradient(1.0) == 0.0
    for slope in (0.01, 0.5, 3.0):
        by_hand = (slope_penalty(slope + 1e-6) - slope_penalty(slope - 1e-6)) / 2e-6
        assert slope_penalty_gradient(slope) == pytest.approx(by_hand, rel=1e-4)


def test_the_penalty_of_a_matrix_and_its_derivative_agree():
    rng = np.random.default_rng(0)
    penalty = MatrixPenalty(7.0, 2.0, 0.1).under(2.0, 1.5)
    weight, step = rng.normal(size=(2, 5, 4))

    def value(point):
        own = np.diag(point[:4])
        off = (point[:4] ** 2).sum() - own @ own
        held = 7.0 * off + 2.0 * ((own - own.mean()) ** 2).sum() + 0.6 * point[4] @ point[4]
        return (held + 20.0 / 1.5**2 * (own.mean() - 1.5) ** 2) / 2

    gradient = penalty.gradient(weight)
    assert penalty.value(weight, gradient) == pytest.approx(value(weight))
    slope = (value(weight + 1e-6 * step) - value(weight - 1e-6 * step)) / 2e-6
    assert np.vdot(gradient, step) == pytest.approx(slope)
    np.testing.assert_allclose(penalty.gradient(penalty.settled(weight)).sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("calibrator", "numbers"),
    [
        (pc.VectorScaling(), 8),
        (pc.BetaCalibrator(), 12),
        (pc.MatrixScaling(), 20),
        (pc.DirichletCalibrator(), 20),
    ],
    ids=repr,
)
def test_fewer_rows_than_numbers_are_worth_one_warning(calibrator, numbers):
    proba, labels, _ = tempered(2.0, n=numbers, k=4)
    name = type(calibrator).__name__
    with pytest.warns(
        pc.CalibrationWarning, match=f"{name} fits {numbers} numbers to {numbers - 1} rows"
    ) as seen:
        clone(calibrator).fit(proba[1:], labels[1:])
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(calibrator).fit(proba, labels)
