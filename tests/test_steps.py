"""Each elementary step against an obvious computation, row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, softmax

from polycal import steps as s

RNG = np.random.default_rng(0)
ROWS = RNG.dirichlet(np.full(4, 0.5), 200)
ROWS[0] = [1, 0, 0, 0]


def test_log_is_floored():
    np.testing.assert_array_equal(s.Log(1e-3)(np.array([[0.0, 1e-3, 0.5]])), [np.log([1e-3, 1e-3, 0.5])])


def test_affine_works_by_column_and_by_one_number():
    scale, shift = np.arange(4.0), np.arange(4.0) - 2
    np.testing.assert_allclose(s.Affine(scale, shift)(ROWS), ROWS * scale + shift)
    np.testing.assert_allclose(s.Affine(np.array([2.0]), np.array([1.0]))(ROWS), ROWS * 2 + 1)


def test_linear_may_change_the_width():
    weight, bias = RNG.normal(size=(4, 3)), RNG.normal(size=3)
    expected = [[row @ weight[:, j] + bias[j] for j in range(3)] for row in ROWS]
    np.testing.assert_allclose(s.Linear(weight, bias)(ROWS), expected)


def test_sum_adds_programs_and_leaves_its_input():
    before = ROWS.copy()
    doubled = s.Sum(((), (s.Log(1.0),), ()))(ROWS)
    np.testing.assert_allclose(doubled, 2 * ROWS)
    np.testing.assert_array_equal(ROWS, before)


def test_product_multiplies_programs_and_spreads_single_columns():
    total = s.Linear(np.ones((4, 1)), np.zeros(1))
    np.testing.assert_allclose(s.Product(((), ()))(ROWS), ROWS**2)
    np.testing.assert_allclose(s.Product(((), (s.Affine(np.ones(1), np.ones(1)), total)))(ROWS), ROWS * 5)
    np.testing.assert_allclose(s.Sum(((), (total,)))(ROWS), ROWS + 1)


@pytest.mark.parametrize("n", [0, 1, 5, 200])
def test_blocks_change_nothing_but_the_memory(n):
    program = s.Log(), s.Softmax()
    # As wide as this, three rows at a time.
    out = s.InBlocks((program,), 300_000.0)(ROWS[:n])
    np.testing.assert_array_equal(out, s.run(program, ROWS[:n]))


def test_exp_clip_and_polynomial_work_entry_by_entry():
    np.testing.assert_allclose(s.Exp()(ROWS), np.exp(ROWS))
    np.testing.assert_array_equal(s.Clip(0.2, 0.5)(ROWS), np.minimum(np.maximum(ROWS, 0.2), 0.5))
    np.testing.assert_allclose(s.Polynomial(np.array([3.0, 0.0, -2.0]))(ROWS), 3 - 2 * ROWS**2)
    np.testing.assert_array_equal(s.Polynomial(np.array([3.0]))(ROWS), 3)


def test_top_marks_the_first_of_the_largest():
    np.testing.assert_array_equal(
        s.Top()(np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]])), [[0, 1, 0], [1, 0, 0]]
    )


def test_distances_and_the_largest_of_each_run():
    points = RNG.dirichlet(np.ones(4), 5)
    distances = s.Distances(points)(ROWS)
    np.testing.assert_allclose(distances, [[np.abs(row - point).sum() for point in points] for row in ROWS])
    largest = s.LargestOf(np.array([0, 1, 5]))(distances)
    np.testing.assert_array_equal(largest, np.column_stack([distances[:, 0], distances[:, 1:].max(axis=1)]))


def test_softmax_and_sigmoid_survive_large_arguments():
    rows = np.array([[1000.0, -1000.0, 0.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(s.Softmax()(rows), softmax(rows, axis=1), atol=1e-15)
    np.testing.assert_allclose(s.Sigmoid()(rows), expit(rows), atol=1e-15)


def test_normalise_falls_back_on_empty_rows():
    out = s.Normalise(np.array([0.2, 0.8]))(np.array([[1.0, 3.0], [0.0, 0.0]]))
    np.testing.assert_allclose(out, [[0.25, 0.75], [0.2, 0.8]])


def test_interpolate_has_its_own_knots_for_each_column():
    step = s.Interpolate(np.array([0.5, 0.2, 0.4, 0.8]), np.array([7.0, 0.0, 1.0, 0.5]), np.array([0, 1, 4]))
    out = step(np.array([[0.0, 0.1], [0.5, 0.3], [0.9, 0.6], [1.0, 0.9]]))
    np.testing.assert_allclose(out, [[7, 0], [7, 0.5], [7, 0.75], [7, 0.5]])


def test_lookup_gives_a_bin_its_upper_edge():
    step = s.Lookup(np.array([-np.inf, 0.5, -np.inf]), np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3]))
    np.testing.assert_array_equal(
        step(np.array([[0.0, 0.0], [0.5, 0.5], [0.6, 1.0]])), [[1, 3], [1, 3], [2, 3]]
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([0.01, 1.0, 100.0]))
def test_project_meets_the_optimality_conditions(seed, k, spread):
    rows = np.random.default_rng(seed).normal(0, spread, (5, k))
    out = s.Project()(rows)
    assert (out >= 0).all()
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-9 * max(1.0, spread))
    # The nearest point shifts all positive entries alike, and the others by no more.
    for row, projected in zip(rows, out, strict=True):
        shift = (row - projected)[projected > 0]
        assert np.ptp(shift) < 1e-9 * max(1.0, spread)
        assert (row[projected == 0] <= shift.min() + 1e-9).all()


def test_project_is_the_nearest_point():
    row = np.array([0.9, 0.4, -0.2])
    best = minimize(
        lambda x: ((x - row) ** 2).sum(),
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    ).x
    np.testing.assert_allclose(s.Project()(row[None])[0], best, atol=1e-6)


@pytest.mark.parametrize(
    "step",
    [
        s.Log(),
        s.Exp(),
        s.Clip(0.2, 0.5),
        s.Polynomial(np.array([1.0, 2.0])),
        s.Softmax(),
        s.Sigmoid(),
        s.Project(),
        s.Top(),
        s.Product(((), ())),
        s.Normalise(np.full(4, 0.25)),
    ],
)
def test_steps_leave_their_input(step):
    rows = ROWS.copy()
    rows.flags.writeable = False
    step(rows)


def test_there_is_no_step_that_does_nothing():
    with pytest.raises(TypeError, match="abstract"):
        s.Step()
