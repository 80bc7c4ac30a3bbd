"""Drawing labels from predictions."""

import numpy as np

from polycal._compiled import compiled


@compiled
def draw(proba, uniform):
    """For each row the first class whose cumulative probability exceeds the row's uniform number."""
    n, k = proba.shape
    labels = np.empty(n, dtype=np.int64)
    for i in range(n):
        total = 0.0
        for c in range(k):
            total += proba[i, c]
        # Rows sum to 1 up to rounding only.
        threshold = uniform[i] * total
        cumulative = 0.0
        for c in range(k):
            if proba[i, c] > 0:
                labels[i] = c
                cumulative += proba[i, c]
                if cumulative > threshold:
                    break
    return labels
