import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_projected as reference
from tests.strategies import samples

import polycal as pc
from polycal.families.projected import ProjectedSmooth
from polycal.families.sigmoid import Sigmoid
from polycal.measures.smooth import projected_curve


@settings(max_examples=60, deadline=None)
@given(drawn=samples(max_classes=2, max_rows=25), m=st.sampled_from([None, 0.0, 0.5, 1, 2, 7]))
def test_two_classes_are_exact(drawn, m):
    labels, proba, weight = drawn
    estimate = pc.estimate_error(labels, proba, ProjectedSmooth(m), sample_weight=weight)
    expected = reference.projected_error_two_classes(labels, proba, 2 if m is None else m, weight)
    assert estimate.kind == "exact"
    assert estimate.value == pytest.approx(expected, abs=1e-9)


def test_no_direction_of_two_classes_beats_the_one_used():
    rng = np.random.default_rng(0)
    labels, p, m = rng.integers(0, 2, 30), rng.random(30), 1.3
    value = pc.calibration_error(labels, p, ProjectedSmooth(m))
    proba = np.column_stack([1 - p, p])
    z = reference.residuals(labels, proba)[:, 1]
    for _ in range(200):
        a = rng.uniform(-1, 1, 2)
        a *= min(1.0, np.sqrt(m) / np.linalg.norm(a))
        assert 2 * projected_curve(proba @ a, z).value <= value + 1e-12


def test_three_classes_reach_a_grid_of_all_directions():
    ratios = []
    for labels, proba in reference.tiny_samples(6, 3):
        estimate = pc.estimate_error(labels, proba, ProjectedSmooth())
        assert estimate.kind == "lower bound"
        ratios.append(estimate.value / reference.projected_error_grid(labels, proba))
    assert min(ratios) > 0.99


@settings(max_examples=12, deadline=None)
@given(drawn=samples(min_classes=3, max_rows=10), m=st.integers(1, 6))
def test_between_subset_smooth_and_full_smooth(drawn, m):
    labels, proba, weight = drawn
    value = pc.calibration_error(labels, proba, ProjectedSmooth(m), sample_weight=weight)
    assert value >= reference.subset_smooth_error(labels, proba, min(m, proba.shape[1]), weight) - 1e-8
    assert value <= reference.full_smooth_error(labels, proba, weight) + 1e-8


@settings(max_examples=20, deadline=None)
@given(drawn=samples(min_classes=3), slope=st.sampled_from([1.0, 4.0]))
def test_a_sigmoid_is_at_most_slope_times_a_lipschitz_function_of_the_same_direction(drawn, slope):
    labels, proba, weight = drawn
    sigmoids = pc.estimate_error(labels, proba, Sigmoid(slope), sample_weight=weight)
    z = reference.residuals(labels, proba, weight)
    directions = sigmoids.witness.directions
    along = [projected_curve(proba @ a, z[:, c]).value for c, a in enumerate(directions)]
    assert np.all(sigmoids.witness.contributions <= slope * np.array(along) + 1e-9)


@settings(max_examples=20, deadline=None)
@given(drawn=samples(min_classes=3, max_rows=12), m=st.sampled_from([0.5, 1.0, 2.5]))
def test_directions_and_functions_belong_to_the_family(drawn, m):
    labels, proba, weight = drawn
    witness = pc.estimate_error(labels, proba, ProjectedSmooth(m), sample_weight=weight).witness
    assert np.abs(witness.directions).max() <= 1 + 1e-12
    assert (witness.directions**2).sum(axis=1).max() <= m + 1e-9
    for phi in witness.phis:
        assert np.all(np.abs(np.diff(phi.heights)) <= np.diff(phi.knots) + 1e-12)
        assert np.abs(phi.heights).max() <= 1


def test_a_planted_direction_is_found():
    # Class 0 comes more often the more likely classes 1 and 2 are against classes 3 and 4.
    rng = np.random.default_rng(0)
    hidden = np.array([0, 1, 1, -1, -1, 0, 0])
    proba = rng.dirichlet([6, 2, 2, 2, 2, 1, 6], 5000)
    true = proba.copy()
    true[:, 0] += 0.6 * np.minimum(proba[:, 0], proba[:, 6]) * np.tanh(6 * proba @ hidden)
    true[:, 6] += proba[:, 0] - true[:, 0]
    labels = (np.cumsum(true, axis=1) > rng.random((5000, 1))).argmax(axis=1)
    witness = pc.estimate_error(labels, proba, ProjectedSmooth()).witness
    z = reference.residuals(labels, proba)
    for label in (0, 6):
        planted = projected_curve(proba @ hidden, z[:, label]).value
        own = projected_curve(2 * proba[:, label] - 1, z[:, label]).value
        assert witness.contributions[label] >= planted > 1.5 * own


def test_more_length_is_never_less():
    rng = np.random.default_rng(3)
    labels, p = rng.integers(0, 2, 60), rng.random(60)
    values = [pc.calibration_error(labels, p, ProjectedSmooth(m)) for m in (0, 0.5, 1, 2)]
    assert values == sorted(values)


@pytest.mark.parametrize("m", [-1, "3", True])
def test_bad_parameters(m):
    with pytest.raises(ValueError, match="m must be a number"):
        ProjectedSmooth(m)
