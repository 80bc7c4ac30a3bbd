import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference_projected as reference
from tests.strategies import samples

import polycal as pc
from polycal.families.halfspace import Halfspace
from polycal.families.sigmoid import Sigmoid


@settings(max_examples=40, deadline=None)
@given(drawn=samples(max_classes=2, max_rows=7))
def test_two_classes_are_exact(drawn):
    labels, proba, weight = drawn
    estimate = pc.estimate_error(labels, proba, Halfspace(), sample_weight=weight)
    assert estimate.kind == "exact"
    assert estimate.value == pytest.approx(reference.halfspace_error(labels, proba, weight), abs=1e-9)


def test_tiny_samples_nearly_always_reach_the_best_halfspaces():
    ratios = []
    for labels, proba in reference.tiny_samples(40, 4):
        best = reference.halfspace_error(labels, proba)
        estimate = pc.estimate_error(labels, proba, Halfspace())
        assert estimate.kind == "lower bound"
        assert estimate.value <= best + 1e-9
        ratios.append(estimate.value / best)
    assert np.mean(np.array(ratios) > 0.95) >= 0.95


def test_halfspaces_find_more_than_sigmoids():
    rng = np.random.default_rng(0)
    labels, proba = rng.integers(0, 4, 300), rng.dirichlet(np.ones(4), 300)
    assert pc.calibration_error(labels, proba, Halfspace()) > pc.calibration_error(labels, proba, Sigmoid(16))


def test_the_witness_takes_two_values():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 100)
    witness = pc.estimate_error(rng.integers(0, 4, 100), proba, Halfspace()).witness
    assert set(np.unique(witness(proba))) == {-1.0, 1.0}


def test_neighbours_in_the_last_digit_are_told_apart_for_two_classes():
    p = np.array([0.3, 0.1 + 0.2])
    assert pc.calibration_error([0, 1], p, Halfspace()) == pytest.approx(1.0)
