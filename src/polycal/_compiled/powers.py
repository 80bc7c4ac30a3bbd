"""Label distributions of the form p_j ~ v_j^a pi_j^b: their log loss with derivatives, and their values."""

import numpy as np

from polycal._compiled import compiled


@compiled
def power_row(log_row, log_use, a, b, out):
    """Fill ``out`` with softmax(a log v + b log pi)."""
    top = -np.inf
    for j in range(out.size):
        out[j] = a * log_row[j] + b * log_use[j]
        top = max(top, out[j])
    total = 0.0
    for j in range(out.size):
        out[j] = np.exp(out[j] - top)
        total += out[j]
    for j in range(out.size):
        out[j] /= total


@compiled
def power_loss(log_proba, log_use, labels, mass, a, b):
    """The log loss, its gradient and its Hessian by (a, b): an exponential family's means and covariances."""
    n, k = log_proba.shape
    p = np.empty(k)
    loss, slope, bend = 0.0, np.zeros(2), np.zeros((2, 2))
    for i in range(n):
        power_row(log_proba[i], log_use, a, b, p)
        x = y = xx = xy = yy = 0.0
        for j in range(k):
            u, v = log_proba[i, j], log_use[j]
            x += p[j] * u
            y += p[j] * v
            xx += p[j] * u * u
            xy += p[j] * u * v
            yy += p[j] * v * v
        label = labels[i]
        loss -= mass[i] * np.log(max(p[label], 1e-300))
        slope[0] += mass[i] * (x - log_proba[i, label])
        slope[1] += mass[i] * (y - log_use[label])
        bend[0, 0] += mass[i] * (xx - x * x)
        bend[0, 1] += mass[i] * (xy - x * y)
        bend[1, 1] += mass[i] * (yy - y * y)
    bend[1, 0] = bend[0, 1]
    return loss, slope, bend


@compiled
def power_labels(log_proba, log_use, a, b):
    """The distributions themselves, in single precision."""
    n, k = log_proba.shape
    out = np.empty((n, k), np.float32)
    p = np.empty(k)
    for i in range(n):
        power_row(log_proba[i], log_use, a, b, p)
        out[i] = p
    return out
