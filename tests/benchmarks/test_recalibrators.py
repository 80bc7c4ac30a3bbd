"""Calls into peers, as far as the peer is installed beside polycal."""

import sys
from types import ModuleType

import numpy as np
import pytest
from benchmarks.peers.recalibrators import RECALIBRATORS, among

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("method", ["temperature", "isotonic", "sigmoid"])
def test_scikit_learn_may_miss_a_class_in_the_calibration_part(method):
    proba = RNG.dirichlet(np.ones(4), 300)
    labels = np.where(proba[:, [0, 1, 3]].argmax(axis=1) == 2, 3, proba[:, [0, 1, 3]].argmax(axis=1))
    out = RECALIBRATORS[f"scikit-learn {method}"].fit(proba, labels)(proba[:50])
    np.testing.assert_allclose(out.sum(axis=1), 1)
    np.testing.assert_array_equal(out[:, 2], proba[:50, 2])
    assert (out[:, [0, 1, 3]].argmax(axis=1) == proba[:50, [0, 1, 3]].argmax(axis=1)).mean() > 0.8


def test_predictions_among_some_classes():
    proba = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(among(proba, np.array([0, 2])), [[0.2 / 0.7, 0.5 / 0.7], [0.5, 0.5]])


def test_netcal_gives_the_second_of_two_classes(monkeypatch):
    class Model:
        def fit(self, proba, labels):
            pass

        def transform(self, proba):
            return proba[:, 1]

    module = ModuleType("netcal.scaling")
    module.TemperatureScaling = Model
    monkeypatch.setitem(sys.modules, "netcal", ModuleType("netcal"))
    monkeypatch.setitem(sys.modules, "netcal.scaling", module)
    proba = RNG.dirichlet(np.ones(2), 10)
    np.testing.assert_allclose(
        RECALIBRATORS["netcal temperature"].fit(proba, np.arange(10) % 2)(proba), proba
    )
