"""The passes of the subset search: one subset's value and weight function, and the gain of flipping each class."""

import numpy as np

from polycal._compiled import compiled
from polycal._compiled.smooth import cumulative_residual, nearest_monotone, optimal_witness, transport_cost


@compiled
def subset_sums(matrix, members):
    """The sum of the member columns of each row, in float64."""
    n, k = matrix.shape
    for j in members:
        if j < 0 or j >= k:
            raise ValueError("a member is not one of the classes")
    total = np.zeros(n)
    for i in range(n):
        for j in members:
            total[i] += matrix[i, j]
    return total


@compiled
def sorted_error(values, residual, order):
    """``max sum_i residual_i phi(values_i)`` over 1-Lipschitz phi, given the order of the values."""
    u, F = cumulative_residual(values, residual, order)
    if F[-1] < 0.0:
        F = -F
    return F[-1] + transport_cost(u, F, nearest_monotone(u, F))


@compiled
def sorted_weight(values, residual, order, n_cells):
    """The maximising phi at ``n_cells + 1`` equidistant points of [0, 1]."""
    u, F = cumulative_residual(values, residual, order)
    sign = -1.0 if F[-1] < 0.0 else 1.0
    F = sign * F
    heights = sign * optimal_witness(u, F, nearest_monotone(u, F))
    return np.interp(np.linspace(0.0, 1.0, n_cells + 1), u, heights)


@compiled
def _read(table, x):
    """The table's function at x, linear between its points."""
    n_cells = table.size - 1
    position = min(max(x * n_cells, 0.0), float(n_cells))
    cell = min(int(position), n_cells - 1)
    return table[cell] + (position - cell) * (table[cell + 1] - table[cell])


@compiled
def flip_gains(proba, residual, member, values, current, table):
    """For each class, the change of ``sum_i <1_T, z_i> phi(<1_T, v_i>)`` when it enters or leaves T, phi kept."""
    n, k = proba.shape
    sign = np.where(member, -1.0, 1.0)
    total = np.zeros(k)
    before = 0.0
    for i in range(n):
        u, r = values[i], current[i]
        before += r * _read(table, u)
        for j in range(k):
            total[j] += (r + sign[j] * residual[i, j]) * _read(table, u + sign[j] * proba[i, j])
    return total - before
