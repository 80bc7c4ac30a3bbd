"""The two passes behind the exact smooth calibration error: dual (value) and primal (witness)."""

import numpy as np

from polycal._compiled import compiled


@compiled
def pack(values, hits):
    """Values in [0, 1] as float64, each with its 0/1 outcome in the last bit of the mantissa.

    Sorting these needs no permutation: a third of the time of an argsort. A value moves by at most
    one unit in the last place, as in any rounding.
    """
    packed = values.view(np.int64).copy()
    for i in range(packed.size):
        packed[i] = (packed[i] & ~1) | hits[i]
    return packed.view(np.float64)


@compiled
def unpack_cumulative(packed):
    """From the sorted output of `pack`: the values u, and F, the cumulative sums of (outcome - u)/n."""
    n = packed.size
    bits = packed.view(np.int64)
    u = (bits & ~1).view(np.float64)
    F = np.empty(n)
    total = 0.0
    for i in range(n):
        total += (bits[i] & 1) - u[i]
        F[i] = total / n
    return u, F


@compiled
def cumulative_residual(values, residual, order):
    """Gather by ``order``: the sorted values u, and F, the cumulative sums of the residuals."""
    n = order.size
    u = np.empty(n)
    F = np.empty(n)
    total = 0.0
    for i in range(n):
        j = order[i]
        u[i] = values[j]
        total += residual[j]
        F[i] = total
    return u, F


@compiled
def _sift_up(level, mass, i):
    """Restore the max-heap after the entry at ``i`` was appended or raised."""
    a, w = level[i], mass[i]
    while i > 0:
        parent = (i - 1) >> 1
        if level[parent] >= a:
            break
        level[i], mass[i] = level[parent], mass[parent]
        i = parent
    level[i], mass[i] = a, w


@compiled
def _sift_down(level, mass, size):
    """Restore the max-heap after the last entry was moved to the root."""
    a, w = level[0], mass[0]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and level[child + 1] > level[child]:
            child += 1
        if level[child] <= a:
            break
        level[i], mass[i] = level[child], mass[child]
        i = child
    level[i], mass[i] = a, w


@compiled
def nearest_monotone(u, F):
    """S of ``min sum_i d_i |F_i - S_i|`` over ``0 <= S_1 <= ... <= S_{n-1} <= R``, with R = F_n >= 0.

    Weighted L1 isotonic regression by the slope trick. The heap holds the break points of
    ``x -> min cost of S_1..S_i given S_i <= x`` left of its minimum; a point adds a kink of
    mass 2 d at its level, and d is then taken off the top. Levels outside [0, R] are clipped first:
    those at 0 are never popped (they only bound the heap from below) and need no entry.
    """
    n = u.size
    R = F[n - 1]
    S = np.empty(n)
    S[n - 1] = R
    run_level, run_mass, run = np.empty(n), np.empty(n), 0
    level, mass, size = np.empty(n), np.empty(n), 0
    for i in range(n - 1):
        d = u[i + 1] - u[i]
        a = min(F[i], R)
        top = max(run_level[run - 1] if run > 0 else 0.0, level[0] if size > 0 else 0.0)
        if d > 0.0:
            if a > 0.0:
                if a >= top:
                    # The new kink is the top: of its 2 d, d is taken off at once.
                    run_level[run], run_mass[run] = a, d
                    run += 1
                    S[i] = a
                    continue
                level[size], mass[size] = a, 2.0 * d
                size += 1
                _sift_up(level, mass, size - 1)
            while d > 0.0 and run + size > 0:
                if run > 0 and (size == 0 or run_level[run - 1] >= level[0]):
                    if run_mass[run - 1] > d:
                        run_mass[run - 1] -= d
                        break
                    run -= 1
                    d -= run_mass[run]
                else:
                    if mass[0] > d:
                        mass[0] -= d
                        break
                    d -= mass[0]
                    size -= 1
                    level[0], mass[0] = level[size], mass[size]
                    _sift_down(level, mass, size)
            top = max(run_level[run - 1] if run > 0 else 0.0, level[0] if size > 0 else 0.0)
        S[i] = top
    for i in range(n - 2, -1, -1):
        S[i] = min(S[i], S[i + 1])
    return S


@compiled
def transport_cost(u, F, S):
    """``sum_i d_i |F_i - S_i|``, compensated (Kahan) so that 10^7 terms keep 1e-12."""
    total = 0.0
    carry = 0.0
    for i in range(u.size - 1):
        term = (u[i + 1] - u[i]) * abs(F[i] - S[i]) - carry
        new = total + term
        carry = (new - total) - term
        total = new
    return total


@compiled
def optimal_witness(u, F, S):
    """The largest x with slope -1 where F > S, +1 where F < S, in [-1, 1] where F = S, and x <= 1.

    These are difference constraints on a line, so one pass each way gives their largest solution.
    It is optimal: it reaches 1 wherever S rises because some optimal solution does.
    """
    n = u.size
    x = np.ones(n)
    for i in range(n - 1):
        d = u[i + 1] - u[i]
        x[i + 1] = min(1.0, x[i] - d if F[i] > S[i] else x[i] + d)
    for i in range(n - 2, -1, -1):
        d = u[i + 1] - u[i]
        x[i] = min(x[i], x[i + 1] - d if F[i] < S[i] else x[i + 1] + d)
    return np.maximum(x, -1.0)
