import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import lines

from polycal._compiled.projected import smooth_slopes
from polycal.measures.smooth import projected_curve


def errors_and_slopes(values, residual):
    errors, slopes = smooth_slopes(values[None], residual[None], np.argsort(values)[None])
    return errors[0], slopes[0]


@settings(max_examples=100, deadline=None)
@given(line=lines())
def test_the_error_is_that_of_the_curve(line):
    values, residual = line
    assert errors_and_slopes(values, residual)[0] == pytest.approx(
        projected_curve(values, residual).value, abs=1e-12
    )


def test_the_slopes_are_the_derivatives():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, residual = rng.uniform(-0.9, 0.9, 15), rng.normal(0.2, 1, 15) / 15
        _, slopes = errors_and_slopes(values, residual)
        # Small enough that the order stays; the error is linear in between for nearly all samples.
        step = 1e-3 * np.diff(np.sort(values)).min() * np.eye(15)
        rise = [
            errors_and_slopes(values + e, residual)[0] - errors_and_slopes(values - e, residual)[0]
            for e in step
        ]
        np.testing.assert_allclose(slopes, np.array(rise) / (2 * step.max()), atol=1e-7)


def test_a_shift_of_all_values_changes_nothing():
    rng = np.random.default_rng(1)
    _, slopes = errors_and_slopes(rng.uniform(-1, 1, 40), rng.normal(size=40) / 40)
    assert slopes.sum() == pytest.approx(0, abs=1e-12)
