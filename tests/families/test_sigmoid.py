import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_projected as reference
from tests.strategies import samples

import polycal as pc
from polycal.families.sigmoid import Sigmoid


@pytest.mark.parametrize("slope", [1.0, 4.0])
def test_two_classes_reach_a_grid_of_all_sigmoids(slope):
    rng = np.random.default_rng(0)
    ratios = []
    for case in range(20):
        n = int(rng.integers(2, 30))
        proba = rng.dirichlet(np.full(2, [0.3, 1.0][case % 2]), n)
        labels = rng.integers(0, 2, n)
        value = pc.calibration_error(labels, proba, Sigmoid(slope))
        grid, rounding = reference.sigmoid_error_grid(labels, proba, slope)
        assert value <= grid + rounding
        ratios.append(value / grid)
    assert np.mean(np.array(ratios) > 0.95) >= 0.95


@settings(max_examples=30, deadline=None)
@given(drawn=samples())
def test_sharper_sigmoids_find_more(drawn):
    labels, proba, weight = drawn
    values = [
        pc.calibration_error(labels, proba, Sigmoid(slope), sample_weight=weight) for slope in (1, 2, 4, 8)
    ]
    assert np.all(np.diff(values) >= -1e-9)


@settings(max_examples=30, deadline=None)
@given(drawn=samples(), slope=st.sampled_from([1.0, 3.0]))
def test_constants_are_in_the_family(drawn, slope):
    labels, proba, weight = drawn
    value = pc.calibration_error(labels, proba, Sigmoid(slope), sample_weight=weight)
    assert value >= np.abs(reference.residuals(labels, proba, weight).sum(axis=0)).sum() - 1e-9


def test_the_witness_belongs_to_the_family():
    rng = np.random.default_rng(0)
    estimate = pc.estimate_error(rng.integers(0, 5, 200), rng.dirichlet(np.ones(5), 200), Sigmoid(6))
    assert estimate.kind == "lower bound"
    assert estimate.witness.slope == 6
    assert np.abs(estimate.witness.directions).max() <= 1


@pytest.mark.parametrize("slope", [0.5, np.inf, "8"])
def test_bad_parameters(slope):
    with pytest.raises(ValueError, match="slope must be a number from 1 to 1e"):
        Sigmoid(slope)
