"""Elementwise passes over blocks of kernel values, and the sums over pairs of the kernel test."""

import math

import numpy as np

from polycal._compiled import compiled

# Entries handled at once by `geometric_sum`: small enough for the first cache, and one loop per power is vectorised.
_CHUNK = 1024


@compiled
def geometric_sum(block, degree):
    """Replace each x of the block by ``1 + x + ... + x^degree`` (Horner), for a degree of at least 1."""
    n_rows, n_columns = block.shape
    one = block.dtype.type(1)
    work = np.empty(_CHUNK, block.dtype)
    for i in range(n_rows):
        for start in range(0, n_columns, _CHUNK):
            x = block[i, start : min(start + _CHUNK, n_columns)]
            total = work[: x.size]
            for t in range(x.size):
                total[t] = x[t] + one
            for _ in range(degree - 1):
                for t in range(x.size):
                    total[t] = total[t] * x[t] + one
            for t in range(x.size):
                x[t] = total[t]


@compiled
def octave_sums(residual, values, scale, n_octaves):
    """Sums from which the correlation of ``clip(2^b u, -1, 1)`` follows for every b, with ``u = values * scale``.

    Entries are sorted into bins by t, the largest with ``|u| <= 2^-t`` (up to ``n_octaves``): per bin the sum of
    residual * u and the sum of residual * sign(u).
    """
    inside = np.zeros(n_octaves + 1)
    outside = np.zeros(n_octaves + 1)
    for i in range(values.shape[0]):
        for c in range(values.shape[1]):
            u = values[i, c] * scale[c]
            z = residual[i, c]
            t = min(max(-math.frexp(u)[1], 0), n_octaves)
            inside[t] += z * u
            outside[t] += z if u > 0.0 else (-z if u < 0.0 else 0.0)
    return inside, outside


@compiled
def agreement_sums(block, left, right, offset):
    """Per draw d, the sum of ``block[i, j]`` over the pairs with ``left[i, d] == right[j, d]``.

    With an offset of 0 or more, only over j < offset + i: the rows of a block on the diagonal.
    """
    n_draws = left.shape[1]
    total = np.zeros(n_draws)
    row = np.empty(n_draws, block.dtype)
    zero = block.dtype.type(0)
    for i in range(block.shape[0]):
        row[:] = zero
        mine = left[i]
        for j in range(block.shape[1] if offset < 0 else offset + i):
            other = right[j]
            value = block[i, j]
            for d in range(n_draws):
                row[d] += value if mine[d] == other[d] else zero
        for d in range(n_draws):
            total[d] += row[d]
    return total
