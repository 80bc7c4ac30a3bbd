"""Slow, obvious versions of what the hardness modules state."""

import itertools

import numpy as np
from scipy.optimize import linprog


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
