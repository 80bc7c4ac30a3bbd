"""Passes over sorted runs: columns whose first rows are keys and whose other rows add up."""

import numpy as np

from polycal._compiled import compiled


@compiled
def _compare(left, i, right, j, n_keys):
    """-1, 0 or 1 as the keys of column i are smaller than, equal to or larger than those of column j."""
    for t in range(n_keys):
        if left[t, i] < right[t, j]:
            return -1
        if left[t, i] > right[t, j]:
            return 1
    return 0


@compiled
def add_up(columns, order, n_keys):
    """The columns in sorted order, those of equal keys as one."""
    height, n = columns.shape
    out = np.empty((height, n))
    last = -1
    for place in range(n):
        i = order[place]
        if last >= 0 and _compare(columns, i, out, last, n_keys) == 0:
            for t in range(n_keys, height):
                out[t, last] += columns[t, i]
        else:
            last += 1
            for t in range(height):
                out[t, last] = columns[t, i]
    return out[:, : last + 1].copy()


@compiled
def merged(left, right, n_keys):
    """Two runs as one."""
    height = left.shape[0]
    n_left, n_right = left.shape[1], right.shape[1]
    out = np.empty((height, n_left + n_right))
    i, j, size = 0, 0, 0
    while i < n_left or j < n_right:
        side = (
            _compare(left, i, right, j, n_keys) if i < n_left and j < n_right else (-1 if i < n_left else 1)
        )
        if side <= 0:
            for t in range(height):
                out[t, size] = left[t, i]
            i += 1
        if side == 0:
            for t in range(n_keys, height):
                out[t, size] += right[t, j]
        elif side > 0:
            for t in range(height):
                out[t, size] = right[t, j]
        if side >= 0:
            j += 1
        size += 1
    return out[:, :size].copy()
