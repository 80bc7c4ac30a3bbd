"""Slow, obvious versions of what an audited round does."""

import numpy as np


def project(row):
    """The nearest point of the simplex: shift all entries alike, cut at 0, find the shift by bisection."""
    low, high = row.min() - 1.0, row.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(row - middle, 0).sum() > 1:
            low = middle
        else:
            high = middle
    return np.maximum(row - high, 0)


def tilt(row, weights, step):
    """``softmax(log p + step * w)`` without logarithms."""
    tilted = row * np.exp(step * weights)
    return tilted / tilted.sum()


def squared_loss(proba, labels, weight=None):
    """The weighted mean of ``||p - y||^2``, row by row."""
    total = [((np.eye(len(p))[y] - p) ** 2).sum() for p, y in zip(proba, labels, strict=True)]
    return np.average(total, weights=weight)


def log_loss(proba, labels, weight=None):
    """The weighted mean of ``-log p_y``."""
    return np.average([-np.log(p[y]) for p, y in zip(proba, labels, strict=True)], weights=weight)
