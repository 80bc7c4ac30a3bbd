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


@compiled
def branch_errors(columns, labels, mass, predicted, hits, start, stop, deepest, n_subsets, n_cells):
    """The errors in cells of a set and of all that add at most ``deepest`` of the classes from ``start`` to ``stop``.

    Parents come first. Returns the errors, by how much they can be off, and those of residuals less their mean.
    """
    n = labels.size
    fits = columns.shape[0] >= stop and columns.shape[1] == n and mass.size == n
    if not fits or predicted.size != n or hits.size != n:
        raise ValueError("the arrays do not fit together")
    sums, inside = np.empty((deepest + 1, n)), np.empty((deepest + 1, n), np.bool_)
    sums[0], inside[0] = predicted, hits
    value, slack, centred = np.empty(n_subsets), np.empty(n_subsets), np.empty(n_subsets)
    chosen = np.empty(deepest + 1, np.int64)
    total, weight = np.empty(n_cells + 1), np.empty(n_cells + 1)
    depth, label = 0, start
    for number in range(n_subsets):
        slack[number] = _fill_cells(sums[depth], inside[depth], mass, total, weight)
        value[number], centred[number] = _cell_errors(total, weight)
        # Where no class is left to add, the last one added gives way to the next.
        while depth > 0 and (depth == deepest or label == stop):
            depth -= 1
            label = chosen[depth] + 1
        if depth < deepest and label < stop:
            chosen[depth] = label
            depth += 1
            for i in range(n):
                sums[depth, i] = sums[depth - 1, i] + columns[label, i]
                inside[depth, i] = inside[depth - 1, i] or labels[i] == label
            label += 1
    return value, slack, centred


@compiled
def _fill_cells(predicted, hits, mass, total, weight):
    """Add up residuals and masses by cell; returns ``sum |residual| |prediction - middle of its cell|``."""
    n_cells = total.size - 1
    total[:] = 0.0
    weight[:] = 0.0
    slack = 0.0
    for i in range(predicted.size):
        u = min(predicted[i], 1.0)
        residual = mass[i] * (hits[i] - u)
        cell = int(u * n_cells)
        total[cell] += residual
        weight[cell] += mass[i]
        slack += abs(residual * (u - min((cell + 0.5) / n_cells, 1.0)))
    return slack


@compiled
def _cell_errors(total, weight):
    """The smooth error of what the cells hold, and the same of residuals less their mean."""
    n_cells = total.size - 1
    size = np.count_nonzero(weight)
    u, F, M = np.empty(size), np.empty(size), np.empty(size)
    residual, mass, j = 0.0, 0.0, 0
    for cell in range(n_cells + 1):
        if weight[cell] > 0.0:
            residual += total[cell]
            mass += weight[cell]
            u[j], F[j], M[j] = min((cell + 0.5) / n_cells, 1.0), residual, mass
            j += 1
    if residual < 0.0:
        F = -F
    C = F - F[-1] * M
    C[-1] = 0.0
    value = F[-1] + transport_cost(u, F, nearest_monotone(u, F))
    return value, transport_cost(u, C, nearest_monotone(u, C))
