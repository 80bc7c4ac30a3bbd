import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy.optimize import linprog

from polycal.kernels.degree import lipschitz_degree, sigmoid_degree

GRID = np.cos(np.linspace(0, np.pi, 401))


def best_error(function, degree):
    """The smallest largest error of a polynomial on a grid, by linear programming."""
    basis = chebyshev.chebvander(GRID, degree)
    ones = np.ones((GRID.size, 1))
    solution = linprog(
        np.eye(degree + 2)[-1],
        A_ub=np.block([[basis, -ones], [-basis, -ones]]),
        b_ub=np.concatenate([function(GRID), -function(GRID)]),
        bounds=[(None, None)] * (degree + 2),
    )
    return solution.fun


def zigzag(seed):
    """A 1-Lipschitz function with random turns, as far from polynomials as they come."""
    rng = np.random.default_rng(seed)
    knots = np.sort(np.concatenate([[-1, 1], rng.uniform(-1, 1, 6)]))
    heights = np.concatenate([[0], np.cumsum(np.diff(knots) * rng.choice([-1, 1], knots.size - 1))])
    return lambda t: np.interp(t, knots, heights)


@pytest.mark.parametrize("tolerance", [0.5, 0.2, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_jackson_degree_suffices(tolerance, seed):
    assert best_error(zigzag(seed), lipschitz_degree(tolerance)) <= tolerance
    assert best_error(np.abs, lipschitz_degree(tolerance)) <= tolerance


def test_jackson_degree_is_the_formula():
    assert [lipschitz_degree(t) for t in (2.0, np.pi / 2, 0.5, 0.1, 0.01)] == [0, 0, 3, 15, 157]


@pytest.mark.parametrize("slope", [0.3, 1, 4, 16])
@pytest.mark.parametrize("tolerance", [0.3, 0.05, 1e-3, 1e-8])
def test_chebyshev_expansion_of_that_degree_is_within_the_tolerance(slope, tolerance):
    degree = sigmoid_degree(slope, tolerance)
    for shift in (0.0, 0.7 * slope, -slope, 3 * slope):
        expansion = chebyshev.chebinterpolate(lambda t, b=shift: np.tanh(slope * t + b), 400)[: degree + 1]
        error = np.abs(chebyshev.chebval(GRID, expansion) - np.tanh(slope * GRID + shift)).max()
        assert error <= tolerance


@pytest.mark.parametrize("slope", [1, 4, 16])
def test_sigmoid_degree_is_not_wasteful(slope):
    degree = sigmoid_degree(slope, 1e-6)
    half = chebyshev.chebinterpolate(lambda t: np.tanh(slope * t), 400)[: degree // 2]
    assert np.abs(chebyshev.chebval(GRID, half) - np.tanh(slope * GRID)).max() > 1e-6


def test_degrees_grow_as_the_task_gets_harder():
    assert sigmoid_degree(3, 1.0) == 0
    assert sigmoid_degree(1, 0.1) < sigmoid_degree(8, 0.1) < sigmoid_degree(8, 0.01)
    assert sigmoid_degree(8, 0.01) < lipschitz_degree(0.01)


@pytest.mark.parametrize(
    "call", [lambda: lipschitz_degree(0), lambda: sigmoid_degree(0, 0.1), lambda: sigmoid_degree(1, -1)]
)
def test_bad_parameters_are_refused(call):
    with pytest.raises(ValueError, match="must be"):
        call()
