"""Slow, obvious versions of what acting costs."""

import numpy as np
from scipy.optimize import linprog


def actions(proba, matrix):
    """The action of least expected cost, row by row."""
    return [min(range(len(matrix)), key=lambda a: (round(float(row @ matrix[a]), 9), a)) for row in proba]


def costs(labels, proba, matrix, weight=None):
    """Means of what was promised, and of what was paid."""
    chosen = actions(proba, matrix)
    promised = [row @ matrix[a] for row, a in zip(proba, chosen, strict=True)]
    paid = [matrix[a, y] for a, y in zip(chosen, labels, strict=True)]
    return np.average(promised, weights=weight), np.average(paid, weights=weight)


def saving(labels, proba, matrix, swaps, weight=None):
    """What swaps save, row by row."""
    chosen = actions(proba, matrix)
    saved = [matrix[a, y] - matrix[swaps[a], y] for a, y in zip(chosen, labels, strict=True)]
    return np.average(saved, weights=weight)


def swap_regret(u, y, weight=None):
    """The supremum by a linear program over mixtures of thresholds, with the best threshold to answer by instead."""
    mass = np.ones(len(u)) if weight is None else np.asarray(weight, dtype=float)
    mass = mass / mass.sum()
    answers = [u > t for t in [-1.0, *np.unique(u)]]
    grid = np.unique(np.concatenate([[0.0, 1.0], u, *[[m] for m in _pooled_means(u, y, mass)]]))
    thresholds, saved = [], []
    for t in grid:
        cost = [np.sum(mass * np.where(yes, t * (1 - y), (1 - t) * y)) for yes in answers]
        for yes in (u > t, u >= t):
            own = np.sum(mass * np.where(yes, t * (1 - y), (1 - t) * y))
            thresholds.append(t)
            saved.append(own - min(cost))
    thresholds = np.array(thresholds)
    bounds = np.stack([thresholds, 1.0 - thresholds])
    return -linprog(-np.array(saved), A_ub=bounds, b_ub=[1.0, 1.0]).fun


def _pooled_means(u, y, mass):
    """The frequency of "yes" between any two answers: thresholds where the best answer may change."""
    values = np.unique(u)
    for i, low in enumerate(values):
        for high in values[i:]:
            inside = (u >= low) & (u <= high)
            if mass[inside].sum() > 0:
                yield np.average(y[inside], weights=mass[inside])
