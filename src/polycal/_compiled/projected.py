"""The exact smooth error along many directions at once, with its derivative by each projected value."""

import numpy as np

from polycal._compiled import compiled
from polycal._compiled.smooth import cumulative_residual, nearest_monotone, transport_cost


@compiled
def smooth_slopes(values, residual, order):
    """For each row: ``R + sum_i d_i |F_i - S_i|``, and its derivative ``|F_{i-1} - S_{i-1}| - |F_i - S_i|`` by u_i.

    ``values``, ``residual`` and ``order`` (each row of ``values`` sorted) have shape (m, n). For a given
    order the error is a minimum over S of functions linear in u, so the derivative is that of the best S.
    """
    m, n = values.shape
    errors = np.empty(m)
    slopes = np.empty((m, n))
    for row in range(m):
        u, F = cumulative_residual(values[row], residual[row], order[row])
        if F[-1] < 0.0:
            F = -F
        S = nearest_monotone(u, F)
        errors[row] = F[-1] + transport_cost(u, F, S)
        before = 0.0
        for i in range(n):
            gap = abs(F[i] - S[i]) if i < n - 1 else 0.0
            slopes[row, order[row, i]] = before - gap
            before = gap
    return errors, slopes
