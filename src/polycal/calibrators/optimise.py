"""Minimisers: Newton's method for a few numbers, preconditioned L-BFGS for many, and SciPy's within bounds."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s, Floats

# A step must lower the value by this part of what its slope promises.
_SUFFICIENT = 1e-4
# Shorter steps lead nowhere.
_SMALLEST_STEP = 1e-3
# Newton's method: the part of the value that a last step may promise.
_NEWTON_STEPS, _NEWTON_TOLERANCE = 30, 1e-6
# L-BFGS: pairs remembered, what a step's length is multiplied by at least when it fails, and after it succeeded, and
# how many steps a preconditioner is good for.
_MEMORY, _SHORTEST, _LONGER, _STALE = 8, 0.1, 1.6, 20
# Where the value is below this, accuracy is absolute: separable data have no least loss but 0.
_SMALL_VALUE = 0.01

Objective = Callable[[Floats], tuple[float, Floats]]
Preconditioner = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Effort:
    """When a search ends.

    Attributes
    ----------
    tolerance : float
        Accuracy of the value, as a part of it.
    max_steps : int
        Few steps are a regularisation of their own.
    """

    tolerance: float
    max_steps: int


def newton(derivatives: Callable[[Float64s], tuple[float, Float64s, Float64s]], start: Float64s) -> Float64s:
    """The minimiser of a smooth convex function of a few numbers, given with its gradient and Hessian."""
    point = start
    value, gradient, hessian = derivatives(point)
    for _ in range(_NEWTON_STEPS):
        step = np.linalg.solve(hessian, gradient)
        slope = float(step @ gradient)
        if slope < _NEWTON_TOLERANCE * value:
            break
        length, ahead = 1.0, derivatives(point - step)
        while ahead[0] > value - _SUFFICIENT * length * slope and length > _SMALLEST_STEP:
            length *= 0.5
            ahead = derivatives(point - length * step)
        point = point - length * step
        value, gradient, hessian = ahead
    return point


def lbfgs(
    objective: Objective,
    start: Floats,
    preconditioner_at: Callable[[Floats], Preconditioner],
    effort: Effort,
) -> Floats:
    """A minimiser of a smooth convex function, by preconditioned L-BFGS, in the dtype of ``start``.

    Parameters
    ----------
    objective : callable
        Value, and gradient as a new array.
    start : ndarray of float
        Not changed.
    preconditioner_at : callable
        Makes, at a point, something like the inverse of the Hessian. It is made anew where it has become stale.
    effort : Effort
    """
    point = start
    value, gradient = objective(point)
    precondition, memory, length = preconditioner_at(point), _new_memory(), 1.0
    for number in range(1, effort.max_steps + 1):
        step = _direction(gradient, memory, precondition)
        slope = float(np.vdot(step, gradient))
        enough = effort.tolerance * max(value, _SMALL_VALUE)
        if slope < enough:
            break
        found = _search(objective, point, value, step, slope, length)
        if found is None:
            break
        ahead, new_value, new_gradient, length = found
        _remember(memory, ahead - point, new_gradient - gradient)
        gain, point, value, gradient = value - new_value, ahead, new_value, new_gradient
        if gain < 0.3 * enough:
            break
        if number % _STALE == 0 and number < effort.max_steps:
            precondition, memory = preconditioner_at(point), _new_memory()
    return point


_Memory = deque[tuple[Floats, Floats, float]]


def _new_memory() -> _Memory:
    return deque(maxlen=_MEMORY)


def _remember(memory: _Memory, moved: Floats, bent: Floats) -> None:
    """Keep how the gradient changed with the point, if it did as a convex function's does."""
    curvature = float(np.vdot(moved, bent))
    if curvature > 0.0:
        memory.append((moved, bent, 1.0 / curvature))


def _direction(gradient: Floats, memory: _Memory, precondition: Preconditioner) -> Floats:
    """The two loops of L-BFGS around the preconditioner; descend against it."""
    rest = gradient.copy()
    factors = []
    for moved, bent, inverse in reversed(memory):
        factor = inverse * float(np.vdot(moved, rest))
        factors.append(factor)
        rest -= factor * bent
    step = precondition(rest)
    for (moved, bent, inverse), factor in zip(memory, reversed(factors), strict=True):
        step += (factor - inverse * float(np.vdot(bent, step))) * moved
    return step


def _search(
    objective: Objective, point: Floats, value: float, step: Floats, slope: float, length: float
) -> tuple[Floats, float, Floats, float] | None:
    """The first point along the step whose value is low enough, with the next length; None when there is none."""
    rounding = float(np.finfo(point.dtype).eps)
    # What is not negative cannot fall by more than itself: a promise of more is the preconditioner's error.
    length = min(length, value / slope)
    shortest = _SMALLEST_STEP * length
    while length > shortest:
        ahead = point - length * step
        new_value, new_gradient = objective(ahead)
        if new_value <= value - _SUFFICIENT * length * slope + rounding:
            return ahead, new_value, new_gradient, min(1.0, _LONGER * length)
        # The parabola through what is known has its least value here, before the middle.
        above = new_value - value + length * slope
        length *= max(_SHORTEST, 0.5 * length * slope / above)
    return None


def scipy_lbfgs(
    objective: Callable[[Float64s], tuple[float, Float64s]],
    start: Float64s,
    curvature: Float64s,
    lower: Float64s | None = None,
    tolerance: float = 1e-10,
) -> Float64s:
    """The minimiser of a smooth function of some numbers within lower bounds, by SciPy's L-BFGS.

    ``curvature`` is about the diagonal of the Hessian: variables scaled by its root need far fewer steps. The search
    ends where a step saves no more than ``tolerance``, as a part of the value.
    """
    from scipy.optimize import Bounds, minimize  # noqa: PLC0415 - slow to import

    # A variable without influence must not get an infinite scale.
    scale = 1.0 / np.sqrt(np.maximum(curvature, 1e-9 * curvature.max() + 1e-300))

    def scaled(point: Float64s) -> tuple[float, Float64s]:
        value, gradient = objective(point * scale)
        return value, gradient * scale

    result = minimize(
        scaled,
        start / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=None if lower is None else Bounds(lower / scale, np.inf),
        options={"maxiter": 1000, "maxcor": 20, "ftol": tolerance, "gtol": min(1e-7, 1e3 * tolerance)},
    )
    point: Float64s = result.x * scale
    return point
