"""Predictions whose true calibration map is known."""

import numpy as np
from scipy.special import softmax

from polycal._validation import check_sample


def tempered(temperature, n=4000, k=4, seed=0):
    """Labels drawn from ``p``; predictions proportional to ``p ** temperature``, so that T restores p."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, k))
    truth = softmax(logits, axis=1)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return softmax(logits * temperature, axis=1), labels, truth


def confused(n=300, k=4, seed=0, weighted=False):
    """Over-confident predictions with a confusion that temperature scaling cannot see."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, 0.7), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = truth**1.6
    proba[:, 0] += 0.4 * proba[:, 1]
    proba /= proba.sum(axis=1, keepdims=True)
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    return check_sample(labels, proba, sample_weight=weight)
