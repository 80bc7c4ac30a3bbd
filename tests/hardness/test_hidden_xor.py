import numpy as np
import pytest

import polycal as pc
from polycal.hardness import lift_clauses, make_hidden_xor, xor_sigmoid
from polycal.hardness.hidden_xor import _all_clauses
from polycal.hardness.xor import XorInstance


def error(made, notion):
    labels, proba, weight = made.population()
    return pc.calibration_error(labels, proba, notion, sample_weight=weight)


@pytest.mark.parametrize(("n", "t", "degree"), [(4, 2, 2), (4, 2, 1), (4, 3, 3), (5, 3, 1), (3, 1, 1)])
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_the_canonical_error_is_as_said(n, t, degree, noise):
    made = make_hidden_xor(10, n, t, noise=noise, degree=degree)
    assert error(made, pc.Canonical(min_repeats=1)) == pytest.approx(made.truth["canonical"], abs=1e-12)


@pytest.mark.parametrize(("n", "t"), [(4, 2), (5, 3)])
def test_one_sigmoid_shows_the_error_and_its_sign_all_of_it(n, t):
    made = make_hidden_xor(10, n, t, random_state=3)
    assignment = np.random.default_rng(3).choice([-1.0, 1.0], n)
    instance = XorInstance(_all_clauses(n, t), np.ones(len(made.support)), n, assignment)
    lifted = lift_clauses(instance, t)
    function = xor_sigmoid(lifted, assignment, t)
    # As a function of the predictions: three times the slope, and a shift.
    slope, direction = 3 * function.slope, function.direction
    shift = -function.slope * direction[:2].sum()
    values = np.tanh(slope * (made.support @ direction) + shift)
    np.testing.assert_allclose(values, function(lifted.points), atol=1e-9)
    gap = made.probabilities[:, None] * (made.conditionals - made.support)
    weights = np.zeros_like(gap)
    for signed, stated in ((values, "sigmoid at least"), (np.sign(values), "halfspace")):
        weights[:, 0], weights[:, 1] = signed, -signed
        assert np.sum(gap * weights) == pytest.approx(made.truth[stated], abs=1e-9)
    assert made.truth["sigmoid slope"] == pytest.approx(slope)


@pytest.mark.parametrize("t", [2, 3])
def test_polynomials_of_lower_degree_see_nothing(t):
    made = make_hidden_xor(10, 4, t, degree=1)
    for degree in range(t):
        assert error(made, pc.LowDegree(degree)) < 1e-12
    assert error(made, pc.LowDegree(t)) > 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"t": 0}, "t must be an integer, at least 1"),
        ({"n_variables": 2, "t": 3}, "n_variables must be an integer, at least 3"),
        ({"noise": 0.6}, "noise must be a number from 0 to 0.5"),
        ({"degree": 3}, "degree must be at most t, 2; got 3"),
        ({"n_variables": 40, "t": 4}, "take fewer of either"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_hidden_xor(10, **({"n_variables": 4, "t": 2} | arguments))
