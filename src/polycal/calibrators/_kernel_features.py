"""Features of the kernel calibrator, and how strongly each of its weights is held to zero."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.steps import Linear, Log, Program, Sum

# With more classes than this, lower probabilities are left out for speed.
MANY_CLASSES = 512


class Features(Protocol):
    """A map of predictions to numbers that a ridge regression is linear in."""

    def of(self, log_proba: Floats) -> Floats:
        """The features of each row, from log q: first 1 and those of each class, with the class's probability."""

    def penalty(self, n_classes: int) -> Floats:
        """Relative weights of the ridge, of shape (n_features, k)."""

    def steps(self, weight: Float64s) -> Program:
        """The features times weights, as a program from q."""


@dataclass(frozen=True)
class KernelFeatures:
    """``[1, q, log(max(q, floor) / floor) / log(1 / floor)]`` of predictions q: all within [0, 1].

    Attributes
    ----------
    floor : float
        Smaller probabilities are not told apart.
    bias, own_proba, own_log : float
        Relative ridge on the weights that act within a class; all others have 1.
    """

    floor: float
    bias: float
    own_proba: float
    own_log: float

    def of(self, log_proba: Floats) -> Floats:
        """The features of each row, from log q."""
        n, k = log_proba.shape
        out = np.empty((n, 1 + 2 * k), dtype=log_proba.dtype)
        out[:, 0] = 1.0
        np.exp(log_proba, out=out[:, 1 : k + 1])
        lowest = np.log(self.floor)
        logs = np.maximum(log_proba, float(lowest), out=out[:, k + 1 :])
        logs *= float(-1.0 / lowest)
        logs += 1.0
        # Exactly 0 at the floor, whatever the rounding.
        logs[log_proba <= float(lowest)] = 0.0
        return out

    def penalty(self, n_classes: int) -> Floats:
        """Relative weights of the ridge, of shape (1 + 2k, k): what a class says of itself is cheap."""
        out = np.ones((1 + 2 * n_classes, n_classes), dtype=np.float32)
        classes = np.arange(n_classes)
        out[0] = self.bias
        out[1 + classes, classes] = self.own_proba
        out[1 + n_classes + classes, classes] = self.own_log
        return out

    def steps(self, weight: Float64s) -> Program:
        """The features times weights, as a program from q."""
        k = weight.shape[1]
        by_proba, by_log = weight[1 : k + 1], weight[k + 1 :]
        linear = Linear(by_proba, weight[0])
        logs = Linear(by_log / -np.log(self.floor), by_log.sum(axis=0))
        return (Sum(((linear,), (Log(self.floor), logs))),)


def features_of_base(n_classes: int) -> KernelFeatures:
    """Of the base: below the floor its probabilities are noise more than news."""
    floor = 1e-4 if n_classes <= MANY_CLASSES else 1e-3
    return KernelFeatures(floor, bias=0.1, own_proba=0.1, own_log=0.01)


# Of the input, at the base's temperature. Where the base hides small probabilities behind a background, these are the
# news, and what they say of the class itself is little held back: the base no longer says it.
FEATURES_OF_INPUT = KernelFeatures(1e-20, bias=0.001, own_proba=0.1, own_log=0.003)
