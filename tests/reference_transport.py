"""Slow, obvious versions of full smooth calibration and of the distance to calibration: dense linear programs."""

from itertools import product

import numpy as np
from scipy.optimize import linprog

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def full_smooth_error(labels, proba, weight=None):
    """Sum over classes of max sum r_i x_i, |x_i| <= 1, |x_i - x_j| <= ||v_i - v_j||_1 for all pairs."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    mass = weight / weight.sum()
    pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if i != j]
    difference = np.zeros((len(pairs), len(labels)))
    for row, (i, j) in zip(difference, pairs, strict=True):
        row[i], row[j] = 1, -1
    distance = np.array([np.abs(proba[i] - proba[j]).sum() for i, j in pairs])
    total = 0.0
    for label in range(proba.shape[1]):
        residual = mass * ((labels == label) - proba[:, label])
        constraints = {"A_ub": difference, "b_ub": distance} if pairs else {}
        total -= linprog(-residual, bounds=(-1, 1), options=TIGHT, **constraints).fun
    return total


def grid(n_classes, resolution):
    """All predictions whose probabilities are multiples of 1 / resolution."""
    points = [p for p in product(range(resolution + 1), repeat=n_classes) if sum(p) == resolution]
    return np.array(points) / resolution


def label_frequencies(labels, proba, weight):
    """The frequencies of the labels among rows of equal predictions."""
    frequencies = []
    for v in np.unique(proba[weight > 0], axis=0):
        rows = (proba == v).all(axis=1)
        frequency = np.bincount(labels[rows], weights=weight[rows], minlength=proba.shape[1])
        frequencies.append(frequency / frequency.sum())
    return np.array(frequencies)


def calibration_distance(labels, proba, targets, weight=None):
    """min sum pi(u, i) ||u - v_i||_1 over couplings of the rows with targets u, the labels at u distributed as u."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    n, k, m = *proba.shape, len(targets)
    cost = np.abs(targets[:, None, :] - proba[None, :, :]).sum(axis=2)
    marginal = np.zeros((n, m, n))
    calibrated = np.zeros((m, k, m, n))
    for i in range(n):
        marginal[i, :, i] = 1
        for u in range(m):
            # sum_i pi(u, i) (1[y_i = y] - u_y) = 0
            calibrated[u, :, u, i] = np.eye(k)[labels[i]] - targets[u]
    rows = np.vstack([marginal.reshape(n, -1), calibrated.reshape(m * k, -1)])
    right = np.concatenate([weight / weight.sum(), np.zeros(m * k)])
    return linprog(cost.ravel(), A_eq=rows, b_eq=right, options=TIGHT).fun
