import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tests.calibrators.draws import tempered

from polycal.calibrators.one_vs_rest import BetaCalibrator


def binary(n=3000, seed=0):
    """Class 1's predictions, labels, and the true probability: the beta curve a=2, b=0.5, c=0.3."""
    rng = np.random.default_rng(seed)
    predicted = rng.uniform(0.01, 0.99, n)
    truth = expit(2 * np.log(predicted) - 0.5 * np.log(1 - predicted) + 0.3)
    return predicted, (rng.random(n) < truth).astype(int), truth


def test_the_true_curve_is_found():
    predicted, labels, truth = binary(20_000)
    fitted = BetaCalibrator(ridge=0.1).fit(predicted, labels)
    np.testing.assert_allclose(fitted.curves_[1], [2, 0.5, 0.3], atol=0.15)
    np.testing.assert_allclose(fitted.curves_[0], [0.5, 2, -0.3], atol=0.15)
    np.testing.assert_allclose(fitted.predict_proba(predicted)[:, 1], truth, atol=0.02)


def test_without_a_ridge_it_is_logistic_regression():
    predicted, labels, _ = binary()
    features = np.column_stack([np.log(predicted), -np.log(1 - predicted)])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(features, labels)
    ours = BetaCalibrator(ridge=0.0).fit(predicted, labels)
    np.testing.assert_allclose(ours.curves_[1], [*theirs.coef_[0], *theirs.intercept_], rtol=1e-3)


def test_curves_never_fall():
    predicted, labels, _ = binary()
    fitted = BetaCalibrator(ridge=0.0).fit(predicted, 1 - labels)
    assert (fitted.curves_[:, :2] >= 0).all()
    np.testing.assert_allclose(fitted.curves_[:, :2], 0, atol=1e-6)


def test_a_strong_ridge_is_the_identity():
    proba, labels, _ = tempered(2.0, n=200)
    np.testing.assert_allclose(
        BetaCalibrator(ridge=1e9).fit(proba, labels).predict_proba(proba), proba, atol=1e-5
    )


def test_a_negative_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge must be a number from 0"):
        BetaCalibrator(ridge=-1).fit([[0.5, 0.5]], [0])
