"""The compiled passes as plain Python: the same code with and without numba must agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import lines

from polycal._compiled import smooth as kernels


def python_run(values, residual):
    order = np.argsort(values)
    u, F = kernels.cumulative_residual.py_func(values, residual, order)
    F = F if F[-1] >= 0 else -F
    S = kernels.nearest_monotone.py_func(u, F)
    return u, F, S, kernels.transport_cost.py_func(u, F, S), kernels.optimal_witness.py_func(u, F, S)


@settings(max_examples=200, deadline=None)
@given(lines(max_points=15))
def test_compiled_equals_interpreted(line):
    values, residual = line
    u, F, S, cost, witness = python_run(values, residual)
    np.testing.assert_array_equal(kernels.nearest_monotone(u, F), S)
    np.testing.assert_array_equal(kernels.optimal_witness(u, F, S), witness)
    assert kernels.transport_cost(u, F, S) == pytest.approx(cost, abs=1e-15)


def test_pack_keeps_value_and_outcome():
    values = np.random.default_rng(0).random(1000)
    hits = np.random.default_rng(1).random(1000) < 0.5
    for pack, unpack in [
        (kernels.pack, kernels.unpack_cumulative),
        (kernels.pack.py_func, kernels.unpack_cumulative.py_func),
    ]:
        u, F = unpack(pack(values, hits))
        np.testing.assert_allclose(u, values, rtol=3e-16)
        np.testing.assert_allclose(F, np.cumsum(hits - values) / 1000, atol=1e-13)


def test_pack_keeps_ties():
    packed = kernels.pack(np.full(6, 0.3), np.array([1, 0, 1, 0, 0, 1], dtype=bool))
    u, _ = kernels.unpack_cumulative(np.sort(packed))
    assert np.unique(u).size == 1
