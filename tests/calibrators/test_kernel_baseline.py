import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import approx_fprime
from tests.calibrators.draws import confused
from tests.strategies import samples

from polycal._validation import check_sample
from polycal.calibrators.kernel.baseline import SharedCurve, fit_mixture, fit_shared_curve, mixture_loss
from polycal.calibrators.kernel.tuning import KNOTS
from polycal.calibrators.loss import logit_scores
from polycal.steps import Softmax, run


@pytest.mark.parametrize("weighted", [False, True])
def test_mixture_gradient_is_the_slope_of_its_loss(weighted):
    sample = confused(weighted=weighted)
    logs = np.log(sample.proba).astype(np.float32)
    frequency = np.bincount(sample.labels, minlength=4) / sample.n_samples
    point = np.array([0.2, -1.5, 0.4])
    numeric = approx_fprime(point, lambda p: mixture_loss(sample, logs, frequency, p)[0], 1e-3)
    np.testing.assert_allclose(mixture_loss(sample, logs, frequency, point)[1], numeric, atol=1e-3)


def test_mixture_loss_is_finite_wherever_a_search_looks():
    sample = confused()
    logs, frequency = np.log(sample.proba), np.full(4, 0.25)
    for slope in (60.0, 800.0, 1e300):
        value, gradient = mixture_loss(sample, logs, frequency, np.array([slope, -5.0, 0.0]))
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


@given(samples())
@settings(max_examples=40, deadline=None)
def test_baseline_makes_every_class_possible(drawn):
    labels, proba, weight = drawn
    sample = check_sample(labels, proba, sample_weight=weight)
    q = np.exp(fit_mixture(sample).log_proba(sample))
    assert q.min() > 0
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-5)


def test_curve_steps_are_what_apply_does():
    log_proba = np.log(confused().proba).astype(np.float32)
    curve = SharedCurve(np.linspace(-1, 1, len(KNOTS)))
    expected = run((*curve.logit_steps(), Softmax()), np.exp(log_proba.astype(np.float64)))
    curve.apply(log_proba)
    np.testing.assert_allclose(np.exp(log_proba), expected, atol=1e-5)


def test_curve_lowers_the_log_loss():
    sample = confused(n=2000)
    log_proba = np.log(sample.proba).astype(np.float32)
    before = logit_scores(sample, log_proba, log_proba, 1.0, 0.0)
    fit_shared_curve(sample, log_proba).apply(log_proba)
    assert logit_scores(sample, log_proba, log_proba, 1.0, 0.0).log_loss < before.log_loss
