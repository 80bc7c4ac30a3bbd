import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tests.calibrators.draws import tempered
from tests.reference_calibrators import histogram, isotonic
from tests.strategies import samples

from polycal.calibrators.one_vs_rest import BetaCalibrator, HistogramCalibrator, IsotonicCalibrator
from polycal.calibrators.sklearn_adapter import SklearnCalibrator


@settings(max_examples=30, deadline=None)
@given(samples(weighted=False, max_rows=15, min_classes=3))
def test_isotonic_each_class_is_the_min_max_formula(sample):
    labels, proba, _ = sample
    # Ties are averaged by everybody, but the formula on sorted points does not.
    proba = proba + np.random.default_rng(0).uniform(0, 1e-3, proba.shape)
    proba /= proba.sum(axis=1, keepdims=True)
    columns = [
        isotonic(column, labels == label) if (labels == label).any() else column
        for label, column in enumerate(proba.T)
    ]
    expected = np.column_stack(columns)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        IsotonicCalibrator().fit(proba, labels).predict_proba(proba), expected, atol=1e-9
    )


def test_isotonic_scikit_learn_gives_the_same():
    proba, labels, _ = tempered(2.0, n=500)
    new, _, _ = tempered(2.0, n=500, seed=1)
    theirs = SklearnCalibrator("isotonic").fit(proba, labels).predict_proba(new)
    np.testing.assert_allclose(IsotonicCalibrator().fit(proba, labels).predict_proba(new), theirs, atol=1e-6)


def test_a_row_of_zeros_becomes_uniform():
    proba = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    out = IsotonicCalibrator().fit(proba, [0, 1, 2]).predict_proba([[0.0, 0.0, 1.0], [0.1, 0.1, 0.8]])
    np.testing.assert_allclose(out, [[0, 0, 1], [0, 0, 1]], atol=1e-12)
    wrong = IsotonicCalibrator().fit([[0.9, 0.1], [0.1, 0.9]], [1, 0]).predict_proba([[0.5, 0.5]])
    np.testing.assert_allclose(wrong, [[0.5, 0.5]])


def test_isotonic_a_class_that_does_not_occur_stays_as_predicted():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    fitted = IsotonicCalibrator().fit(proba, rng.integers(0, 2, 200))
    before_normalising = fitted.steps_[0](proba)
    np.testing.assert_allclose(before_normalising[:, 2], proba[:, 2])


@settings(max_examples=30, deadline=None)
@given(samples(weighted=False))
def test_histogram_each_class_is_the_frequency_in_its_bin(sample):
    labels, proba, _ = sample
    fitted = HistogramCalibrator(n_bins=4).fit(proba, labels)
    ours = fitted.steps_[0](proba)
    for label in np.unique(labels):
        expected = [histogram(proba[:, label], labels == label, 4, value) for value in proba[:, label]]
        np.testing.assert_allclose(ours[:, label], expected, atol=1e-12)


def test_an_empty_bin_predicts_its_centre():
    fitted = HistogramCalibrator(n_bins=4).fit([0.1, 0.9, 0.95], [0, 1, 0])
    np.testing.assert_allclose(fitted.predict_proba([0.4, 0.9]), [[0.625, 0.375], [0.5, 0.5]])


def test_quantile_bins_have_equal_mass():
    rng = np.random.default_rng(0)
    predicted = rng.beta(1, 9, 1000)
    fitted = HistogramCalibrator(n_bins=5, strategy="quantile").fit(predicted, rng.integers(0, 2, 1000))
    knots = fitted.steps_[0].knots[fitted.steps_[0].starts[1] :]
    counts = np.diff(np.searchsorted(np.sort(predicted), [*knots, np.inf], side="right"))
    np.testing.assert_allclose(counts, 200, atol=1)


def test_histogram_a_class_that_does_not_occur_predicts_the_mean_of_its_bin():
    proba = np.array([[0.5, 0.5, 0.0], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])
    heights = HistogramCalibrator(n_bins=2).fit(proba, [0, 1, 0]).steps_[0].heights
    np.testing.assert_allclose(heights[-2:], [0.1, 0.7])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"n_bins": 0}, "n_bins must be an integer"), ({"strategy": "wide"}, "strategy must be one of")],
)
def test_histogram_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        HistogramCalibrator(**parameters).fit([0.1, 0.9], [0, 1])


def binary(n=3000, seed=0):
    """Class 1's predictions, labels, and the true probability: the beta curve a=2, b=0.5, c=0.3."""
    rng = np.random.default_rng(seed)
    predicted = rng.uniform(0.01, 0.99, n)
    truth = expit(2 * np.log(predicted) - 0.5 * np.log(1 - predicted) + 0.3)
    return predicted, (rng.random(n) < truth).astype(int), truth


def test_beta_the_true_curve_is_found():
    predicted, labels, truth = binary(20_000)
    fitted = BetaCalibrator(ridge=0.1).fit(predicted, labels)
    np.testing.assert_allclose(fitted.curves_[1], [2, 0.5, 0.3], atol=0.15)
    np.testing.assert_allclose(fitted.curves_[0], [0.5, 2, -0.3], atol=0.15)
    np.testing.assert_allclose(fitted.predict_proba(predicted)[:, 1], truth, atol=0.02)


def test_beta_without_a_ridge_is_logistic_regression():
    predicted, labels, _ = binary()
    features = np.column_stack([np.log(predicted), -np.log(1 - predicted)])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(features, labels)
    ours = BetaCalibrator(ridge=0.0).fit(predicted, labels)
    np.testing.assert_allclose(ours.curves_[1], [*theirs.coef_[0], *theirs.intercept_], rtol=1e-3)


def test_beta_curves_never_fall():
    predicted, labels, _ = binary()
    fitted = BetaCalibrator(ridge=0.0).fit(predicted, 1 - labels)
    assert (fitted.curves_[:, :2] >= 0).all()
    np.testing.assert_allclose(fitted.curves_[:, :2], 0, atol=1e-6)


def test_beta_a_strong_ridge_is_the_identity():
    proba, labels, _ = tempered(2.0, n=200)
    np.testing.assert_allclose(
        BetaCalibrator(ridge=1e9).fit(proba, labels).predict_proba(proba), proba, atol=1e-5
    )


def test_beta_a_negative_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge must be a number from 0"):
        BetaCalibrator(ridge=-1).fit([[0.5, 0.5]] * 6, [0] * 6)
