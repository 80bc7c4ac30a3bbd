"""Projected gradient ascent of many starts at once, none of which ever loses value."""

from collections.abc import Callable

import numpy as np

from polycal._typing import Float64s, Ints

# (positions (m, d), which starts they belong to (m,)) -> (values (m,), gradients (m, d)).
Objective = Callable[[Float64s, Ints], tuple[Float64s, Float64s]]
Projection = Callable[[Float64s], Float64s]

# A move shorter than this part of the first one no longer matters.
_SHORT = 1e-6


def ascend(
    objective: Objective,
    project: Projection,
    start: Float64s,
    n_steps: int,
    metric: Float64s,
    reach: float = 0.5,
) -> tuple[Float64s, Float64s]:
    """Climb from each row of `start`; the positions reached and their values.

    A move is ``step * gradient / metric``; the metric (d,) makes up for coordinates of unequal size. Each row
    has its own step: after a gain the one that fits the curvature just seen (Barzilai and Borwein), after
    a loss a quarter, and the move is taken back. The first move changes no coordinate by more than `reach`.
    """
    position = project(start)
    value, gradient = objective(position, np.arange(start.shape[0]))
    step = reach / np.maximum(np.abs(gradient / metric).max(axis=1), 1e-300)
    for _ in range(n_steps):
        rows = np.flatnonzero(step * np.abs(gradient / metric).max(axis=1) > _SHORT * reach)
        if rows.size == 0:
            break
        trial = project(position[rows] + step[rows, None] * gradient[rows] / metric)
        new_value, new_gradient = objective(trial, rows)
        gain = new_value > value[rows]
        move, bend = trial - position[rows], gradient[rows] - new_gradient
        step[rows] = np.where(gain, _fitted_step(move, bend, step[rows], metric), step[rows] / 4)
        won = rows[gain]
        position[won], value[won], gradient[won] = trial[gain], new_value[gain], new_gradient[gain]
    return position, value


def _fitted_step(move: Float64s, bend: Float64s, step: Float64s, metric: Float64s) -> Float64s:
    """The inverse curvature along the move, within a factor of 8 of the last step."""
    curvature = np.einsum("ij,ij->i", move, bend)
    length = np.einsum("ij,ij,j->i", move, move, metric)
    fitted: Float64s = np.divide(length, curvature, out=8 * step, where=curvature > 0)
    return np.clip(fitted, step / 8, 8 * step)


def spread(proba: Float64s) -> Float64s:
    """The mean square of each class's probability: the metric for directions in class space."""
    square: Float64s = np.einsum("ij,ij->j", proba, proba) / proba.shape[0]
    return np.maximum(square, 1e-9)
