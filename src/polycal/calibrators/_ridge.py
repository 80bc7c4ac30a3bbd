"""Multinomial regression on top of given predictions, with a weighted ridge: preconditioned L-BFGS."""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass

import numpy as np

from polycal._typing import Floats, Ints
from polycal.calibrators._newton_blocks import NewtonBlocks

_MEMORY = 8
# Stopping early does no harm on rows not seen: what is left to gain is mostly noise.
_MAX_STEPS = 12
_SUFFICIENT = 1e-4
_SMALLEST_STEP = 1e-3
_SHORTER, _LONGER = 0.4, 1.6
# Changes of the loss below this are rounding.
_ROUNDING = 1e-7


class RidgeProblem(ABC):
    """Minimise ``log loss of softmax(offset + X W) + strength/2 sum penalty W^2`` over W.

    Attributes
    ----------
    penalty : ndarray of float, shape (n_features, n_classes)
        Relative weights of the ridge.
    """

    penalty: Floats

    @abstractmethod
    def log_loss(self, weight: Floats) -> tuple[float, Floats]:
        """The mean log loss and its gradient (a new array)."""

    def loss(self, weight: Floats, strength: float) -> tuple[float, Floats]:
        """The objective and its gradient."""
        value, gradient = self.log_loss(weight)
        shrunk = self.penalty * weight
        shrunk *= float(strength)
        value += 0.5 * float(np.vdot(shrunk, weight))
        gradient += shrunk
        return value, gradient

    def solve(self, start: Floats, strength: float, blocks: NewtonBlocks, tolerance: float) -> Floats:
        """A minimiser from a start, to a relative accuracy of the objective of about ``tolerance``."""
        weight = start
        value, gradient = self.loss(weight, strength)
        memory: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
        length = 1.0
        for _ in range(_MAX_STEPS):
            step = self._centred(_direction(gradient, memory, blocks, strength))
            slope = float(np.vdot(step, gradient))
            if slope < tolerance * value:
                break
            found = self._search(weight, value, step, slope, strength, length)
            if found is None:
                break
            new_weight, new_value, new_gradient, length = found
            moved, bent = new_weight - weight, new_gradient - gradient
            curvature = float(np.vdot(moved, bent))
            if curvature > 0.0:
                memory.append((moved, bent, 1.0 / curvature))
            gain, weight, value, gradient = value - new_value, new_weight, new_value, new_gradient
            if gain < 0.3 * tolerance * value:
                break
        return weight

    def _centred(self, step: Floats) -> Floats:
        """The step without what the softmax does not see: a shift of all classes, feature by feature.

        Of all shifts, the ridge is least for the one whose penalty-weighted mean is 0.
        """
        shift = np.einsum("jc,jc->j", self.penalty, step) / np.einsum("jc->j", self.penalty)
        step -= shift[:, None]
        return step

    def _search(
        self, weight: Floats, value: float, step: Floats, slope: float, strength: float, length: float
    ) -> tuple[Floats, float, Floats, float] | None:
        """The first point along the step whose objective is low enough; None when there is none."""
        while length > _SMALLEST_STEP:
            candidate = weight - float(length) * step
            new_value, new_gradient = self.loss(candidate, strength)
            if new_value <= value - _SUFFICIENT * length * slope + _ROUNDING:
                return candidate, new_value, new_gradient, min(1.0, _LONGER * length)
            length *= _SHORTER
        return None


@dataclass(frozen=True, eq=False)
class DenseProblem(RidgeProblem):
    """The problem with all features of all rows in one matrix.

    Attributes
    ----------
    features : ndarray of float, shape (n_samples, n_features)
        X.
    offset : ndarray of float, shape (n_samples, n_classes)
        Logits to start from.
    labels : ndarray of int64, shape (n_samples,)
    mass : ndarray of float, shape (n_samples,)
        Weights of the rows, of sum 1.
    penalty : ndarray of float, shape (n_features, n_classes)
        Relative weights of the ridge.
    """

    features: Floats
    offset: Floats
    labels: Ints
    mass: Floats
    penalty: Floats

    def log_loss(self, weight: Floats) -> tuple[float, Floats]:
        """The mean log loss and its gradient."""
        logits = self.features @ weight
        logits += self.offset
        logits -= logits.max(axis=1, keepdims=True)
        rows = np.arange(self.labels.size)
        at_label = logits[rows, self.labels]
        np.exp(logits, out=logits)
        total = np.einsum("ij->i", logits)
        logits *= (self.mass / total)[:, None]
        logits[rows, self.labels] -= self.mass
        value = np.dot((np.log(total) - at_label).astype(np.float64), self.mass)
        return float(value), self.features.T @ logits


def _direction(
    gradient: Floats,
    memory: deque[tuple[Floats, Floats, float]],
    blocks: NewtonBlocks,
    strength: float,
) -> Floats:
    """The two loops of L-BFGS around the preconditioner; descend against it."""
    rest = gradient.copy()
    factors = []
    for moved, bent, inverse in reversed(memory):
        factor = inverse * float(np.vdot(moved, rest))
        factors.append(factor)
        rest -= float(factor) * bent
    step = blocks.solve(rest, strength)
    for (moved, bent, inverse), factor in zip(memory, reversed(factors), strict=True):
        step += float(factor - inverse * float(np.vdot(bent, step))) * moved
    return step
