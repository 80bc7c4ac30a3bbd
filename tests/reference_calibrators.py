"""Slow, obvious versions of the calibrators: the oracles of their tests."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax


def logs(proba):
    return np.log(np.maximum(proba, np.finfo(float).eps))


def log_loss(proba, labels, weight=None):
    return np.average([-np.log(row[label]) for row, label in zip(proba, labels, strict=True)], weights=weight)


def log_linear(proba, labels, penalty, k):
    """W and b of least total log loss plus ``penalty(W, b)``, found without a gradient."""

    def objective(point):
        W, b = point[: k * k].reshape(k, k), point[k * k :]
        logits = log_softmax(logs(proba) @ W + b, axis=1)
        return -logits[np.arange(labels.size), labels].sum() + penalty(W, b)

    start = np.concatenate([np.eye(k).ravel(), np.zeros(k)])
    point = minimize(objective, start, method="BFGS", options={"gtol": 1e-4}).x
    return point[: k * k].reshape(k, k), point[k * k :]


def mixture_loss(proba, labels, temperature, weights):
    """Log loss of tempered, raw and uniform predictions mixed."""
    k = proba.shape[1]
    mixed = weights[0] * softmax(logs(proba) / temperature, axis=1) + weights[1] * proba + weights[2] / k
    return log_loss(mixed, labels)


def histogram(predicted, hits, n_bins, value):
    """The frequency among the rows whose prediction is in the same bin of equal width as ``value``."""
    number = max(int(np.ceil(round(value * n_bins, 9))), 1)
    same = [
        h
        for p, h in zip(predicted, hits, strict=True)
        if max(int(np.ceil(round(p * n_bins, 9))), 1) == number
    ]
    return np.mean(same) if same else (number - 0.5) / n_bins


def isotonic(predicted, hits):
    """The increasing fit of least squares at each point, by the min-max formula."""
    order = np.argsort(predicted, kind="stable")
    y = np.asarray(hits, dtype=float)[order]
    n = len(y)
    fit = [max(min(y[a : b + 1].mean() for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    out = np.empty(n)
    out[order] = fit
    return out
