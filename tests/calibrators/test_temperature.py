import numpy as np
import pytest
from scipy.special import softmax
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_loss, logs

from polycal.calibrators.sklearn_adapter import SklearnCalibrator
from polycal.calibrators.temperature import TemperatureScaling


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_true_temperature_is_found(temperature):
    proba, labels, truth = tempered(temperature)
    fitted = TemperatureScaling().fit(proba, labels)
    assert fitted.temperature_ == pytest.approx(temperature, rel=0.1)
    np.testing.assert_allclose(fitted.predict_proba(proba), truth, atol=0.05)


def test_no_other_temperature_has_a_smaller_loss():
    proba, labels, _ = tempered(2.0, n=300)
    fitted = TemperatureScaling(prior=None).fit(proba, labels)
    best = log_loss(fitted.predict_proba(proba), labels)
    for temperature in np.geomspace(0.1, 10, 200):
        assert best <= log_loss(softmax(logs(proba) / temperature, axis=1), labels) + 1e-12


def test_scikit_learn_finds_the_same():
    pytest.importorskip("sklearn", minversion="1.8")
    proba, labels, _ = tempered(2.5, n=1000)
    theirs = SklearnCalibrator("temperature").fit(proba, labels).predict_proba(proba)
    np.testing.assert_allclose(
        TemperatureScaling(prior=None).fit(proba, labels).predict_proba(proba), theirs, atol=1e-6
    )


def test_the_temperature_is_bounded():
    right = TemperatureScaling(prior=None).fit([[0.6, 0.4], [0.3, 0.7]], [0, 1])
    wrong = TemperatureScaling(prior=None).fit([[0.6, 0.4], [0.3, 0.7]], [1, 0])
    flat = TemperatureScaling(prior=None).fit([[0.5, 0.5], [0.5, 0.5]], [1, 0])
    assert right.temperature_ == pytest.approx(0.01, rel=0.01)
    assert wrong.temperature_ == pytest.approx(100)
    # Flat predictions say nothing about T.
    assert flat.temperature_ == 1.0


def test_the_ranking_is_kept():
    proba, labels, _ = tempered(3.0)
    out = TemperatureScaling().fit(proba, labels).predict_proba(proba)
    np.testing.assert_array_equal(np.argsort(out, axis=1), np.argsort(proba, axis=1))
