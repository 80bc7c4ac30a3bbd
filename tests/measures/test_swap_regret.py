import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array
from tests import reference_costs

import polycal as pc


def rows(seed, n=14, levels=6):
    rng = np.random.default_rng(seed)
    u = rng.integers(0, levels + 1, n) / levels
    return rng.integers(0, 2, n), u, rng.integers(0, 3, n).astype(float) + (np.arange(n) == 0)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_it_is_what_the_linear_program_finds(seed):
    y, u, weight = rows(seed)
    assert pc.swap_regret(y, u) == pytest.approx(reference_costs.swap_regret(u, y), abs=1e-9)
    expected = reference_costs.swap_regret(u, y, weight)
    assert pc.swap_regret(y, u, sample_weight=weight) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("y", "u", "expected"),
    [
        ([1, 1], [0.0, 0.0], 1.0),
        ([0, 1], [0.0, 1.0], 0.0),
        # No increasing function helps beyond the mean: nobody gains by it who would not by a constant.
        ([1, 0], [0.0, 1.0], 1.0),
        ([0, 0, 0, 1], [0.5] * 4, 0.5),
        ([0, 0, 0, 1], [0.75] * 4, 2 / 3),
    ],
)
def test_by_hand(y, u, expected):
    assert pc.swap_regret(y, np.array(u)) == pytest.approx(expected)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_it_bounds_what_any_loss_saves(seed):
    y, u, _ = rows(seed, n=60)
    repaired = np.interp(u, *_isotonic(u, y))
    matrix = np.random.default_rng(seed).random((3, 2))
    saved = pc.decision_cost(y, u, matrix) - pc.decision_cost(y, repaired, matrix)
    assert saved <= np.ptp(matrix) * pc.swap_regret(y, u) + 1e-6


def _isotonic(u, y):
    values, places = np.unique(u, return_inverse=True)
    mass = np.bincount(places)
    return values, isotonic_regression(np.bincount(places, weights=y) / mass, weights=mass).x


def test_order_copies_subsets_and_the_opposite_question():
    y, u, weight = rows(3, n=40)
    regret = pc.swap_regret(y, u, sample_weight=weight)
    order = np.random.default_rng(0).permutation(40)
    assert pc.swap_regret(y[order], u[order], sample_weight=weight[order]) == pytest.approx(regret)
    twice = np.repeat(np.arange(40), weight.astype(int))
    assert pc.swap_regret(y[twice], u[twice]) == pytest.approx(regret)
    assert pc.swap_regret(y, u, sample_weight=weight, subset=[0]) == pytest.approx(regret)
    example = pc.datasets.load_fashion("evaluation")
    found = pc.swap_regret(example.labels, example.proba, subset=[6])
    assert 0 < found < 2 * pc.calibration_error(example.labels, example.proba, pc.Classwise()) + 1


def test_lists_are_refused():
    with pytest.raises((TypeError, ValueError), match="sparse"):
        pc.swap_regret([0, 1], csr_array([[0.9, 0.0, 0.1], [0.2, 0.8, 0.0]]))
