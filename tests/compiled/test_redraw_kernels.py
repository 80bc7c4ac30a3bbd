import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference_inference as reference
from tests.strategies import samples

from polycal._compiled import redraw as kernels


@pytest.mark.parametrize("draw", [kernels.draw, kernels.draw.py_func], ids=["compiled", "interpreted"])
@settings(max_examples=60, deadline=None)
@given(sample=samples())
def test_against_the_cumulative_sum(draw, sample):
    _, proba, _ = sample
    uniform = np.random.default_rng(0).random(len(proba))
    np.testing.assert_array_equal(draw(proba, uniform), reference.draw(proba, uniform))


def test_a_class_of_probability_zero_is_never_drawn():
    proba = np.array([[0.0, 0.3, 0.0, 0.7, 0.0]])
    for uniform in [0.0, 0.3, 0.5, np.nextafter(1.0, 0.0), 1.0]:
        assert kernels.draw(proba, np.array([uniform]))[0] in (1, 3)


def test_float32_rows_that_do_not_sum_to_one_exactly():
    proba = np.random.default_rng(0).dirichlet(np.ones(1000), 50).astype(np.float32)
    labels = kernels.draw(proba, np.full(50, np.nextafter(1.0, 0.0)))
    assert labels.min() >= 990
