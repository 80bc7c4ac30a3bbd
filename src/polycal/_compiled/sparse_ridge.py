"""Multinomial regression on sparse features, row by row: nothing of size (n, k) is made."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sparse_log_loss(starts, columns, values, offset, labels, mass, weight, gradient):
    """Return the log loss of ``softmax(offset + X weight)``, and add its gradient to ``gradient``.

    Row i of X has the entries ``values[starts[i]:starts[i + 1]]`` in the columns of the same positions.
    """
    k = weight.shape[1]
    loss = 0.0
    logits = np.empty(k, dtype=np.float32)
    for i in range(mass.size):
        if mass[i] == 0.0:
            continue
        logits[:] = offset[i]
        for e in range(starts[i], starts[i + 1]):
            row, value = weight[columns[e]], values[e]
            for c in range(k):
                logits[c] += value * row[c]
        top = logits.max()
        at_label = logits[labels[i]]
        for c in range(k):
            logits[c] = np.exp(logits[c] - top)
        total = logits.sum()
        loss += mass[i] * (np.log(total) + top - at_label)
        scale = mass[i] / total
        for c in range(k):
            logits[c] *= scale
        logits[labels[i]] -= mass[i]
        for e in range(starts[i], starts[i + 1]):
            row, value = gradient[columns[e]], values[e]
            for c in range(k):
                row[c] += value * logits[c]
    return loss
