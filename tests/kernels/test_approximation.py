import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Chebyshev, Polynomial
from tests import reference_hardness as reference

from polycal.kernels.degree import (
    bounded_radius_squared,
    jackson_error,
    jackson_polynomial,
    largest_coefficients,
    projection_norm,
    sigmoid_polynomial,
)

T = np.linspace(-1, 1, 4001)


def lipschitz(seed):
    """A random 1-Lipschitz function into [-1, 1]: a zigzag, clipped."""
    rng = np.random.default_rng(seed)
    knots = np.sort(np.concatenate([[-1, 1], rng.uniform(-1, 1, rng.integers(0, 12))]))
    values = rng.uniform(-1, 1) + np.concatenate(
        [[0], np.cumsum(np.diff(knots) * rng.choice([-1, 1], knots.size - 1))]
    )
    return lambda t: np.clip(np.interp(t, knots, values), -1, 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_jackson_polynomials_stay_close_and_in_range(seed, degree):
    function = lipschitz(seed)
    polynomial = jackson_polynomial(function, degree)
    assert polynomial.degree() <= degree
    assert np.abs(polynomial(T) - function(T)).max() <= jackson_error(degree) + 1e-12
    assert np.abs(polynomial(T)).max() <= 1 + 1e-12


@pytest.mark.parametrize("degree", [1, 10, 100])
def test_the_error_is_of_order_one_over_the_degree_and_the_bound_within_a_factor(degree):
    reached = np.abs(jackson_polynomial(np.abs, degree)(T) - np.abs(T)).max()
    assert 0.35 * jackson_error(degree) <= reached <= jackson_error(degree) <= np.pi**2 / 2 / (degree + 2)


@pytest.mark.parametrize("slope", [0.5, 1, 4, 20])
@pytest.mark.parametrize("shift", [0.0, 1.0, -10.0])
@pytest.mark.parametrize("tolerance", [0.3, 0.01])
def test_sigmoid_polynomials_stay_close_and_in_range(slope, shift, tolerance):
    polynomial = sigmoid_polynomial(slope, shift, tolerance)
    assert np.abs(polynomial(T) - np.tanh(slope * T + shift)).max() <= tolerance
    assert np.abs(polynomial(T)).max() <= 1
    assert polynomial.degree() <= 3 + 4 * max(slope, 1) * np.log(max(slope, 1) * 8 / tolerance)


def bounded(seed, degree):
    """A random polynomial of exactly this degree, with largest absolute value 1 on a grid."""
    rng = np.random.default_rng(seed)
    series = Chebyshev(rng.standard_normal(degree + 1) * rng.choice([0.1, 1, 5], degree + 1))
    return series / np.abs(series(T)).max()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 12))
def test_coefficients_of_bounded_polynomials(seed, degree):
    eta = np.abs(bounded(seed, degree).convert(kind=Polynomial).coef)
    # The grid misses the largest value by little.
    assert np.all(eta <= 1.001 * np.array(largest_coefficients(degree))[: eta.size])
    assert eta.sum() <= 1.001 * 4.0**degree


@pytest.mark.parametrize("degree", range(10))
def test_chebyshev_polynomials_have_the_largest_coefficients(degree):
    largest = largest_coefficients(degree)
    for d in (degree, degree - 1):
        if d >= 0:
            eta = np.abs(Chebyshev.basis(d).convert(kind=Polynomial).coef)
            np.testing.assert_array_equal(eta[d % 2 :: 2], largest[d % 2 : d + 1 : 2])
    assert sum(largest) <= (1 + 2**0.5) ** degree + 1e-6


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_the_norm_of_a_projected_polynomial_is_below_both_bounds(seed, degree):
    rng = np.random.default_rng(seed)
    polynomial, direction = bounded(seed, degree), rng.uniform(-1, 1, 3)
    points = rng.dirichlet(np.ones(3), 200)
    norm = reference.kernel_norm(polynomial(points @ direction), points, degree)
    length = np.linalg.norm(direction)
    bound = projection_norm(polynomial, length)
    assert norm <= bound * (1 + 1e-4)
    assert bound**2 <= 1.01 * bounded_radius_squared(degree, length**2)
    assert bounded_radius_squared(degree, 1.0) <= 4 ** (2 * degree)
    assert bound <= 1.01 * max(4.0, 4 * length) ** degree


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 20])
@pytest.mark.parametrize("m", [0, 1, 2, 10, 100])
def test_the_radius_is_at_most_the_papers(degree, m):
    assert bounded_radius_squared(degree, m) <= max(4, 4 * m**0.5) ** (2 * degree) * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_lipschitz_function_of_a_projection_has_a_polynomial_of_bounded_norm_nearby(seed):
    rng = np.random.default_rng(seed)
    function, degree = lipschitz(seed), 30
    direction, points = rng.uniform(-1, 1, 6), rng.dirichlet(np.full(6, 0.3), 500)
    polynomial = jackson_polynomial(function, degree)
    u = points @ direction
    assert np.abs(polynomial(u) - function(u)).max() <= jackson_error(degree)
    radius = bounded_radius_squared(degree, direction @ direction) ** 0.5
    assert projection_norm(polynomial, np.linalg.norm(direction)) <= radius * (1 + 1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jackson_polynomial(np.abs, 0), "degree must be an integer, at least 1"),
        (lambda: jackson_error(0), "degree must be an integer, at least 1"),
        (lambda: sigmoid_polynomial(0, 0, 0.1), "slope must be a positive number"),
        (lambda: sigmoid_polynomial(1, 0, 0), "tolerance must be a positive number"),
        (lambda: sigmoid_polynomial(1, "0", 0.1), "shift must be a number"),
        (lambda: projection_norm(Polynomial([1]), -1), "length must be a number"),
        (lambda: largest_coefficients(-1), "degree must be an integer, at least 0"),
        (lambda: bounded_radius_squared(1, -1), "squared_length must be a number"),
    ],
)
def test_bad_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
