"""Few numbers for all rows and classes: tilting predictions along given directions, by Newton's method."""

from collections.abc import Callable

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._likelihood import total_weight
from polycal.sample import Sample, row_blocks

Directions = Callable[[slice], Floats]

_MAX_STEPS = 30
_TOLERANCE = 1e-6
_SUFFICIENT = 1e-4
_SMALLEST_STEP = 1e-3


def fit_tilt(sample: Sample, offset: Floats, directions: Directions, n_directions: int) -> Float64s:
    """The c of least log loss of ``softmax(offset + sum_j c_j direction_j)``, each with a standard normal prior.

    Parameters
    ----------
    sample : Sample
        Labels and weights.
    offset : ndarray of float, shape (n_samples, n_classes)
    directions : callable
        Gives the directions of a block of rows, of shape (n_directions, n_rows, n_classes).
    n_directions : int
    """
    amount = np.zeros(n_directions)
    value, gradient, hessian = tilt_derivatives(sample, offset, directions, amount)
    for _ in range(_MAX_STEPS):
        step = np.linalg.solve(hessian, gradient)
        expected = float(step @ gradient)
        if expected < _TOLERANCE * value:
            break
        length, trial = 1.0, tilt_derivatives(sample, offset, directions, amount - step)
        while trial[0] > value - _SUFFICIENT * length * expected and length > _SMALLEST_STEP:
            length *= 0.5
            trial = tilt_derivatives(sample, offset, directions, amount - length * step)
        amount = amount - length * step
        value, gradient, hessian = trial
    return amount


def tilt_derivatives(
    sample: Sample, offset: Floats, directions: Directions, amount: Float64s
) -> tuple[float, Float64s, Float64s]:
    """Log loss with the prior, its gradient and its Hessian."""
    prior = 1.0 / total_weight(sample)
    loss = 0.5 * prior * float(amount @ amount)
    gradient, hessian = prior * amount, prior * np.eye(amount.size)
    mass = sample.mass
    for rows in row_blocks(offset.shape[0], (amount.size + 1) * offset.shape[1]):
        labels, weight, along = sample.labels[rows], mass[rows], directions(rows)
        proba = offset[rows] + np.einsum("jic,j->ic", along, amount.astype(offset.dtype))
        proba -= proba.max(axis=1, keepdims=True)
        own = np.arange(labels.size), labels
        at_label = proba[own]
        np.exp(proba, out=proba)
        total = np.einsum("ij->i", proba)
        proba /= total[:, None]
        tilted = along * proba
        mean = np.einsum("jic->ji", tilted).astype(np.float64)
        loss += float(weight @ (np.log(total) - at_label))
        gradient += (mean - along[:, *own]) @ weight
        tilted *= weight.astype(offset.dtype)[:, None]
        flat = tilted.reshape(amount.size, -1) @ along.reshape(amount.size, -1).T
        hessian += flat - (mean * weight) @ mean.T
    return loss, gradient, hessian
