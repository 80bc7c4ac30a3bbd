"""All ways in which a line can part points of the plane."""

import numpy as np

from polycal._compiled import compiled


@compiled
def best_lines(x, y, residual, min_angle):
    """The best line through each point, by each column of residuals and by all together.

    A line turns about the point; between two others that it meets, it parts the points in one way, with its pivot on
    either side. Any parting is met: move its line up to the points of one side, and turn it about the last of those
    it touches. With S the sum on the left and R the whole, the value of column c is ``|2 S_c - R_c|``, and of all
    together ``||S|| + ||R - S||``. Returns, (n, k + 1) each, the values, the line's angle, and by how much it can turn.
    """
    n, k = residual.shape
    if x.size != n or y.size != n:
        raise ValueError("the arrays do not fit together")
    whole = np.zeros(k)
    for i in range(n):
        whole += residual[i]
    value, angle, width = np.zeros((n, k + 1)), np.zeros((n, k + 1)), np.zeros((n, k + 1))
    turn, upper = np.empty(n), np.empty(n, np.bool_)
    for pivot in range(n):
        left = np.zeros(k)
        for j in range(n):
            if j == pivot:
                turn[j] = np.inf
                continue
            slope = np.arctan2(y[j] - y[pivot], x[j] - x[pivot])
            upper[j] = 0.0 <= slope < np.pi
            turn[j] = slope if upper[j] else (slope + np.pi if slope < 0.0 else 0.0)
            if upper[j]:
                left += residual[j]
        order = np.argsort(turn)
        last = turn[order[n - 2]] - np.pi if n > 1 else -np.pi
        for place in range(max(n - 1, 1)):
            following = turn[order[place]] if n > 1 else 0.0
            if following - last > min_angle:
                at = (last + following) / 2, following - last
                _note(left, whole, at, value[pivot], angle[pivot], width[pivot])
                _note(left + residual[pivot], whole, at, value[pivot], angle[pivot], width[pivot])
            if n > 1:
                passed = order[place]
                left += -residual[passed] if upper[passed] else residual[passed]
                last = following
    return value, angle, width


@compiled
def _note(left, whole, at, value, angle, width):
    """Keep what a line attains where it is more, or as much with more room."""
    k = whole.size
    middle, gap = at
    near, far = 0.0, 0.0
    for c in range(k + 1):
        if c < k:
            near += left[c] ** 2
            far += (whole[c] - left[c]) ** 2
            found = abs(2.0 * left[c] - whole[c])
        else:
            found = np.sqrt(near) + np.sqrt(far)
        if found > value[c] + 1e-13 or (found > value[c] - 1e-13 and gap > width[c]):
            value[c], angle[c], width[c] = max(found, value[c]), middle, gap
