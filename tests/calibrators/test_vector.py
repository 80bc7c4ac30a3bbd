import numpy as np
import pytest
from scipy.special import softmax
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_linear, log_loss, logs

from polycal.calibrators.temperature import TemperatureScaling
from polycal.calibrators.vector import VectorScaling

PROBA, LABELS, TRUTH = tempered(2.0, n=200, k=3)


@pytest.mark.parametrize("ridge", [0.5, 20.0])
def test_the_minimum_is_found(ridge):
    fitted = VectorScaling(ridge=ridge, prior=None).fit(PROBA, LABELS)

    def penalty(W, b):
        diagonal = np.diag(W)
        # Off-diagonal entries are not part of vector scaling.
        return 1e6 * ((W - np.diag(diagonal)) ** 2).sum() + ridge / 2 * (
            ((diagonal - diagonal.mean()) ** 2).sum() + (b**2).sum()
        )

    W, b = log_linear(PROBA, LABELS, penalty, 3)
    np.testing.assert_allclose(fitted.scale_, np.diag(W), atol=2e-3)
    np.testing.assert_allclose(fitted.bias_, b, atol=2e-3)


def test_a_true_bias_is_found():
    proba, labels, truth = tempered(2.0, n=20_000)
    shift = np.array([0.0, 1.0, -1.0, 0.5])
    biased = softmax(np.log(proba) + shift, axis=1)
    fitted = VectorScaling(ridge=1.0).fit(biased, labels)
    np.testing.assert_allclose(fitted.scale_, 0.5, atol=0.05)
    np.testing.assert_allclose(fitted.bias_ - fitted.bias_.mean(), -shift / 2 + shift.mean() / 2, atol=0.1)
    np.testing.assert_allclose(fitted.predict_proba(biased), truth, atol=0.05)


def test_a_strong_ridge_is_temperature_scaling():
    fitted = VectorScaling(ridge=1e9).fit(PROBA, LABELS)
    temperature = TemperatureScaling().fit(PROBA, LABELS)
    np.testing.assert_allclose(fitted.predict_proba(PROBA), temperature.predict_proba(PROBA), atol=1e-5)


def test_the_steps_are_the_formula():
    fitted = VectorScaling().fit(PROBA, LABELS)
    expected = softmax(logs(PROBA) * fitted.scale_ + fitted.bias_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(PROBA), expected, atol=1e-12)


def test_it_fits_at_least_as_well_as_temperature_scaling():
    vector = VectorScaling(ridge=0.01).fit(PROBA, LABELS).predict_proba(PROBA)
    temperature = TemperatureScaling().fit(PROBA, LABELS).predict_proba(PROBA)
    assert log_loss(vector, LABELS) <= log_loss(temperature, LABELS)


def test_a_negative_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge must be a number from 0, or 'auto'"):
        VectorScaling(ridge=-1).fit(PROBA, LABELS)
