"""Features of the kernel calibrator, and how strongly each of its weights is held to zero."""

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.steps import Linear, Log, Program, Sum

# With more classes than this, lower probabilities are left out for speed.
_MANY_CLASSES = 512

# Relative ridge on the weights that act within a class; all others have 1.
_BIAS, _OWN_PROBA, _OWN_LOG = 0.1, 0.1, 0.01


def log_floor(n_classes: int) -> float:
    """Below this, probabilities are told apart by the base only: their logarithms are noise more than news."""
    return 1e-4 if n_classes <= _MANY_CLASSES else 1e-3


def kernel_features(log_proba: Floats) -> Floats:
    """``[1, q, log(max(q, floor) / floor) / log(1 / floor)]`` of each row, from log q: all within [0, 1]."""
    n, k = log_proba.shape
    out = np.empty((n, 1 + 2 * k), dtype=log_proba.dtype)
    out[:, 0] = 1.0
    np.exp(log_proba, out=out[:, 1 : k + 1])
    lowest = np.log(log_floor(k))
    logs = np.maximum(log_proba, float(lowest), out=out[:, k + 1 :])
    logs *= float(-1.0 / lowest)
    logs += 1.0
    # Exactly 0 at the floor, whatever the rounding.
    logs[log_proba <= float(lowest)] = 0.0
    return out


def ridge_penalty(n_classes: int) -> Floats:
    """Relative weights of the ridge, of shape (1 + 2k, k): what a class says of itself is cheap."""
    out = np.ones((1 + 2 * n_classes, n_classes), dtype=np.float32)
    classes = np.arange(n_classes)
    out[0] = _BIAS
    out[1 + classes, classes] = _OWN_PROBA
    out[1 + n_classes + classes, classes] = _OWN_LOG
    return out


def kernel_steps(weight: Float64s) -> Program:
    """``X W`` as a program from q."""
    k = weight.shape[1]
    by_proba, by_log = weight[1 : k + 1], weight[k + 1 :]
    linear = Linear(by_proba, weight[0])
    floor = log_floor(k)
    logs = Linear(by_log / -np.log(floor), by_log.sum(axis=0))
    return (Sum(((linear,), (Log(floor), logs))),)
