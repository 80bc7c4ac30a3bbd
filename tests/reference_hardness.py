"""Slow, obvious versions of what the hardness modules state."""

import itertools

import numpy as np
from scipy.optimize import linprog

from polycal.hardness.xor import XorInstance


def simplex_grid(n_classes, steps):
    """All points of the simplex whose coordinates are multiples of 1/steps, as whole numbers."""
    rows = itertools.product(range(steps + 1), repeat=n_classes - 1)
    return np.array([[*row, steps - sum(row)] for row in rows if sum(row) <= steps])


def largest_error_with_calibrated_classes(n_classes, size, steps, weights):
    """The largest E r phi(u) over class-wise calibrated distributions on a grid; phi is given at 0, 1/steps, ..."""
    points = simplex_grid(n_classes, steps)
    row, label = np.repeat(np.arange(len(points)), n_classes), np.tile(np.arange(n_classes), len(points))
    u = points[:, :size].sum(axis=1)[row]
    objective = ((label < size) - u / steps) * weights[u]
    constraints = [np.ones(row.size)]
    for j in range(n_classes):
        residual = (label == j) - points[row, j] / steps
        constraints += [np.where(points[row, j] == value, residual, 0.0) for value in range(steps + 1)]
    target = np.zeros(len(constraints))
    target[0] = 1.0
    return -linprog(-objective, A_eq=np.array(constraints), b_eq=target, method="highs").fun


def conditional_gaps(generated):
    """For each class, the mean gap given its probability, and given that it is the most likely: name -> gap."""
    v = generated.support.round(9)
    gap = generated.probabilities[:, None] * (generated.conditionals - generated.support)
    top = v.argmax(axis=1)
    gaps = {}
    for j in range(v.shape[1]):
        for value in np.unique(v[:, j]):
            rows = v[:, j] == value
            gaps["class", j, value] = gap[rows, j].sum()
            gaps["top", j, value] = gap[rows & (top == j), j].sum()
    return gaps


def kernel_norm(values, points, degree):
    """The norm of the function with these values at so many points that they decide it, for small degrees."""
    products = points @ points.T
    gram = sum(products**i for i in range(degree + 1))
    return float(np.sqrt(values @ np.linalg.lstsq(gram, values, rcond=1e-12)[0]))


_GOLDEN = (1 + 5**0.5) / 2
_AXES = np.array(
    [[0, 1, _GOLDEN], [0, 1, -_GOLDEN], [1, _GOLDEN, 0], [1, -_GOLDEN, 0], [_GOLDEN, 0, 1], [-_GOLDEN, 0, 1]]
)
_CLUSTER = 20


def icosahedral_clauses():
    """A clause for each pair of 6 * 20 variables, and a unit vector for each.

    A cluster of variables has one of the six axes of the icosahedron; a clause wants its variables equal where the
    product of their axes is positive, and unequal where it is negative or they share the axis.
    """
    vectors = np.repeat(_AXES / np.linalg.norm(_AXES[0]), _CLUSTER, axis=0)
    n = len(vectors)
    first, second = np.triu_indices(n, 1)
    equal = (np.einsum("ij,ij->i", vectors[first], vectors[second]) > 0) & (
        first // _CLUSTER != second // _CLUSTER
    )
    literals = np.column_stack([first, np.where(equal, second, second + n)])
    return XorInstance(literals, np.ones(first.size, dtype=np.int64), n), vectors


def icosahedral_spread():
    """The largest mean square of clause sums: only the sums of the signs of each cluster matter, so all are tried."""
    n = 6 * _CLUSTER
    form = np.sign(_AXES @ _AXES.T) - 2 * np.eye(6)
    sums = np.array(list(itertools.product(range(-_CLUSTER, _CLUSTER + 1, 2), repeat=3)), dtype=float)
    near, far = (np.einsum("ni,ij,nj->n", sums, form[part, part], sums) for part in (slice(3), slice(3, 6)))
    best = max(
        (near[rows, None] + far + 2 * sums[rows] @ form[:3, 3:] @ sums.T).max()
        for rows in np.array_split(np.arange(len(sums)), 100)
    )
    # Each pair was counted twice, and each variable once with itself.
    return 2 + (best + n) / (n * (n - 1) / 2)
