"""Predictions whose true calibration map is known."""

import numpy as np
from scipy.special import softmax


def tempered(temperature, n=4000, k=4, seed=0):
    """Labels drawn from ``p``; predictions proportional to ``p ** temperature``, so that T restores p."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, k))
    truth = softmax(logits, axis=1)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return softmax(logits * temperature, axis=1), labels, truth
