from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from polycal.hardness.xor import (
    lift_clauses,
    literal_values,
    make_planted_xor,
    make_random_xor,
    xor_sigmoid,
)


def test_clauses_have_different_variables():
    instance = make_random_xor(8, 3, 200)
    assert instance.literals.shape == (200, 3)
    assert all(len({j % 8 for j in clause}) == 3 for clause in instance.literals.tolist())
    assert instance.literals.max() < 16


def test_products_and_sums_by_hand():
    instance = make_random_xor(5, 3, 50)
    z = np.array([1, -1, 1, 1, -1.0])
    values = literal_values(z)
    for clause, product_, sum_ in zip(instance.literals, instance.products(z), instance.sums(z), strict=True):
        assert product_ == np.prod([values[j] for j in clause])
        assert sum_ == sum(values[j] for j in clause)


def test_planted_instances_are_satisfiable_up_to_the_noise():
    assert make_planted_xor(10, 3, 500).satisfied(make_planted_xor(10, 3, 500).assignment) == 1
    noisy = make_planted_xor(10, 3, 20_000, noise=0.2)
    assert noisy.satisfied(noisy.assignment) == pytest.approx(0.8, abs=0.01)


def test_random_instances_are_not():
    instance = make_random_xor(6, 3, 2000)
    best = max(instance.satisfied(z) for z in product([-1, 1], repeat=6))
    assert best < 0.56


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_lifted_clauses_are_the_monomials_that_hold(degree):
    instance = make_random_xor(4, 3, 20)
    lift = lift_clauses(instance, degree)
    np.testing.assert_allclose(lift.points.sum(axis=1), 1)
    indicator = np.zeros((20, 8))
    indicator[np.arange(20)[:, None], instance.literals] = 1
    for column, monomial in enumerate(lift.monomials):
        holds = np.prod(indicator[:, list(monomial)], axis=1)
        np.testing.assert_array_equal(lift.points[:, column] > 0, holds > 0)


@pytest.mark.parametrize(("t", "degree"), [(2, 2), (3, 3), (4, 4)])
def test_the_sigmoid_of_full_degree_computes_every_product(t, degree):
    instance = make_planted_xor(5, t, 100)
    function = xor_sigmoid(lift_clauses(instance, degree), instance.assignment, t)
    lift = lift_clauses(instance, degree)
    np.testing.assert_allclose(function(lift.points), np.tanh(2.0) * instance.signs, atol=1e-9)
    assert np.abs(function.direction).max() == 1


def test_a_lower_degree_is_right_where_the_sum_is_small():
    instance = make_planted_xor(7, 5, 400)
    lift = lift_clauses(instance, 3)
    function = xor_sigmoid(lift, instance.assignment, 5)
    inside = np.abs(instance.sums(instance.assignment)) <= function.radius
    assert 0 < inside.mean() < 1
    np.testing.assert_allclose(
        function(lift.points[inside]), np.tanh(2.0) * instance.signs[inside], atol=1e-9
    )


@pytest.mark.parametrize(("t", "degree"), [(5, 2), (5, 3), (6, 4)])
def test_the_slope_is_the_largest_coefficient_times_the_weight_of_a_clause(t, degree):
    instance = make_planted_xor(7, t, 300)
    lift = lift_clauses(instance, degree)
    function = xor_sigmoid(lift, instance.assignment, t, steepness=1.0)
    weight = sum(comb(t, size) for size in range(degree + 1))
    np.testing.assert_array_equal(np.count_nonzero(lift.points, axis=1), weight)
    # The coefficients of the monomials make a polynomial of the sum, of degree d and not 2 d.
    coefficients = function.slope / weight * function.direction
    assert np.abs(coefficients).max() == pytest.approx(function.slope / weight)
    sums, values = instance.sums(instance.assignment), (lift.points > 0) @ coefficients
    assert len(set(sums)) > degree + 1
    np.testing.assert_allclose(np.polynomial.Polynomial.fit(sums, values, degree)(sums), values, atol=1e-6)


def test_the_slope_grows_fast():
    slopes = []
    for t in (1, 2, 3, 4):
        instance = make_planted_xor(4, t, 5)
        slopes.append(xor_sigmoid(lift_clauses(instance, t), instance.assignment, t).slope)
    ratios = np.array(slopes[1:]) / np.array(slopes[:-1])
    assert np.all(ratios > 1.5)


def test_monomials_are_all_small_sets():
    lift = lift_clauses(make_random_xor(3, 2, 5), 2)
    assert lift.monomials == ((), *combinations(range(6), 1), *combinations(range(6), 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_random_xor(3, 0, 5), "t must be an integer, at least 1"),
        (lambda: make_random_xor(2, 3, 5), "n_variables must be an integer, at least 3"),
        (lambda: make_random_xor(3, 2, 0), "n_clauses must be an integer, at least 1"),
        (lambda: make_planted_xor(3, 2, 5, noise=0.7), "noise must be a number from 0 to 0.5"),
        (lambda: make_planted_xor(3, 2, 5, random_state=-1), "random_state must be an integer"),
        (lambda: lift_clauses(make_random_xor(3, 2, 5), 0), "degree must be an integer from 1 to 2; got 0"),
        (lambda: lift_clauses(make_random_xor(3, 2, 5), 3), "degree must be an integer from 1 to 2; got 3"),
        (
            lambda: xor_sigmoid(lift_clauses(make_random_xor(3, 2, 5), 2), np.ones(3), 2, steepness=-1),
            "steepness must be a number",
        ),
        (
            lambda: xor_sigmoid(lift_clauses(make_random_xor(3, 2, 5), 2), np.ones(3), 1),
            "t must be an integer, at least 2",
        ),
    ],
)
def test_bad_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
