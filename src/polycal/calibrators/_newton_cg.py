"""Newton's method for large convex problems: steps by conjugate gradients, well preconditioned."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s, Floats

_MAX_STEPS = 60
_MAX_PRODUCTS = 200
_SUFFICIENT = 1e-4
_SMALLEST_STEP = 1e-4
# Far from the minimum, a hundredth of the squared residual is all that a step is good for.
_ROUGH = 1e-2
# A preconditioner that needed more products than this is made anew at the next point.
_STALE = 12

Preconditioner = Callable[[Float64s], Float64s]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What is known at a point.

    Attributes
    ----------
    value : float
    gradient : ndarray
    proba : ndarray
        What the curvature depends on.
    """

    value: float
    gradient: Float64s
    proba: Floats


class ConvexProblem(ABC):
    """A smooth convex function of an array."""

    @abstractmethod
    def evaluate(self, point: Float64s) -> Evaluation:
        """Value, gradient, and what `product` needs."""

    @abstractmethod
    def product(self, at: Evaluation, direction: Float64s) -> Float64s:
        """The Hessian times a direction."""

    @abstractmethod
    def preconditioner(self, at: Evaluation) -> Preconditioner:
        """Something like the inverse of the Hessian: symmetric, and positive on gradients."""


def newton_minimise(problem: ConvexProblem, start: Float64s, tolerance: float) -> Float64s:
    """A point whose value is about ``tolerance`` above the minimum, or closer.

    The end is reached when the quadratic model promises no more than that; the last step is taken still.
    """
    point, at = start, problem.evaluate(start)
    precondition, products = problem.preconditioner(at), 0
    for _ in range(_MAX_STEPS):
        if products > _STALE:
            precondition = problem.preconditioner(at)
        step, products = _newton_step(problem, at, precondition, tolerance)
        slope = float(np.vdot(step, at.gradient))
        if abs(0.5 * slope) <= tolerance:
            return point + step
        length, ahead = _search(problem, point, at, step, slope)
        if not ahead.value < at.value:
            break
        point, at = point + length * step, ahead
    return point


def _search(
    problem: ConvexProblem, point: Float64s, at: Evaluation, step: Float64s, slope: float
) -> tuple[float, Evaluation]:
    """How far to go, halving until the value is low enough."""
    length = 1.0
    while True:
        ahead = problem.evaluate(point + length * step)
        if ahead.value <= at.value + _SUFFICIENT * length * slope or length < _SMALLEST_STEP:
            return length, ahead
        length *= 0.5


def _newton_step(
    problem: ConvexProblem, at: Evaluation, precondition: Preconditioner, tolerance: float
) -> tuple[Float64s, int]:
    """About minus the inverse Hessian times the gradient, and how many products it took."""
    step, rest = np.zeros_like(at.gradient), -at.gradient
    ahead = precondition(rest)
    size = float(np.vdot(rest, ahead))
    enough = size * _accuracy(size, tolerance)
    way, products = ahead, 0
    while products < _MAX_PRODUCTS:
        products += 1
        bent = problem.product(at, way)
        curvature = float(np.vdot(way, bent))
        # Nothing is left but rounding.
        if curvature <= 0.0:
            break
        step += (size / curvature) * way
        rest -= (size / curvature) * bent
        ahead = precondition(rest)
        size, before = float(np.vdot(rest, ahead)), size
        if size <= enough:
            break
        way = ahead + (size / before) * way
    return step, products


def _accuracy(size: float, tolerance: float) -> float:
    """The part of the squared residual that may be left: small near the minimum, but no smaller than of use."""
    near = max(10.0 * size, 0.1 * tolerance / max(size, tolerance))
    return min(_ROUGH, near)
