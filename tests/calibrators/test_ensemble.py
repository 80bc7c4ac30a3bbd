import numpy as np
import pytest
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_loss, mixture_loss

from polycal.calibrators.ensemble import EnsembleTemperatureScaling
from polycal.calibrators.temperature import TemperatureScaling


def with_zeros(n=400):
    """A fifth of the rows say 0 or 1 and are often wrong."""
    proba, labels, _ = tempered(1.5, n=n, k=3)
    sure = np.arange(0, n, 5)
    proba[sure] = np.eye(3)[proba[sure].argmax(axis=1)]
    return proba, labels


@pytest.mark.parametrize("draw", [with_zeros, lambda: tempered(2.0, n=400, k=3)[:2]])
def test_no_mixture_of_a_grid_is_better(draw):
    proba, labels = draw()
    fitted = EnsembleTemperatureScaling(prior=None).fit(proba, labels)
    best = log_loss(fitted.predict_proba(proba), labels)
    assert best == pytest.approx(mixture_loss(proba, labels, fitted.temperature_, fitted.weights_))
    with np.errstate(divide="ignore"):
        for temperature in np.geomspace(0.2, 10, 15):
            for first in np.linspace(0, 1, 9):
                for second in np.linspace(0, 1 - first, 9):
                    weights = (first, second, 1 - first - second)
                    assert best <= mixture_loss(proba, labels, temperature, weights) + 1e-6


def test_exact_zeros_get_a_uniform_part():
    proba, labels = with_zeros()
    fitted = EnsembleTemperatureScaling().fit(proba, labels)
    assert fitted.weights_[2] > 0.05
    temperature = TemperatureScaling().fit(proba, labels)
    assert log_loss(fitted.predict_proba(proba), labels) < log_loss(temperature.predict_proba(proba), labels)


def test_weights_are_a_mixture():
    proba, labels = with_zeros()
    weights = EnsembleTemperatureScaling().fit(proba, labels).weights_
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)
