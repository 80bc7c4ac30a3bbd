import numpy as np
from hypothesis import given, settings
from tests.strategies import lines

from polycal.measures.functions import LipschitzFunction, StepFunction
from polycal.measures.smooth import projected_curve


@settings(max_examples=100, deadline=None)
@given(lines())
def test_simplifying_changes_no_value(line):
    phi = projected_curve(*line).phi
    simple = phi.simplified()
    points = np.linspace(-1.5, 1.5, 301)
    np.testing.assert_allclose(simple(points), phi(points), atol=1e-8)
    assert simple.knots.size <= phi.knots.size


def test_lipschitz_functions_are_constant_outside_their_knots():
    phi = LipschitzFunction(np.array([0.0, 0.5]), np.array([0.25, -0.25]))
    np.testing.assert_array_equal(phi([-1.0, 0.25, 2.0]), [0.25, 0.0, -0.25])


def test_step_functions_hold_their_upper_edge():
    phi = StepFunction(np.array([0.5]), np.array([-1.0, 1.0]))
    np.testing.assert_array_equal(phi([0.0, 0.5, 0.500001, 1.0]), [-1, -1, 1, 1])
