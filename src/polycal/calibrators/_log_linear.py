"""Maps ``softmax(log v W + b)`` with a full matrix, fitted with a quadratic penalty."""

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._likelihood import log_proba, loss_and_residual, minimise, spreads
from polycal.calibrators.temperature import fit_inverse_temperature
from polycal.sample import Sample, row_blocks


def fit_log_linear(sample: Sample, weight_ridge: Float64s, bias_ridge: float) -> tuple[Float64s, Float64s]:
    """The W of shape (k, k) and b of least penalised log loss per unit of weight.

    ``weight_ridge`` is the penalty on each entry of W minus a multiple of the identity; the multiple is free.
    """
    logs, k = log_proba(sample), sample.n_classes
    inverse = fit_inverse_temperature(sample, logs)
    # The bias is counted at the mean input, not at log v = 0 where no prediction is: the search needs far fewer steps.
    centre: Float64s = sample.mass @ logs

    def objective(point: Float64s) -> tuple[float, Float64s]:
        own, shift = point[1:-k].reshape(k, k), point[-k:]
        bias = shift - centre @ own
        loss, by_weight, by_bias = _loss(sample, logs, own + point[0] * np.eye(k), bias)
        loss += 0.5 * (float(np.vdot(weight_ridge * own, own)) + bias_ridge * float(bias @ bias))
        by_shift = by_bias + bias_ridge * bias
        by_own = by_weight - np.outer(centre, by_shift) + weight_ridge * own
        return loss, np.concatenate([[np.trace(by_weight)], by_own.ravel(), by_shift])

    curvature = _curvature(sample, logs, inverse, centre)
    sizes = np.concatenate(
        [[np.trace(curvature[:k])], (curvature[:k] + weight_ridge).ravel(), curvature[k] + bias_ridge]
    )
    start = np.concatenate([[inverse], np.zeros(k * k + k)])
    point = minimise(objective, start, sizes)
    own = point[1:-k].reshape(k, k)
    return own + point[0] * np.eye(k), point[-k:] - centre @ own


def _loss(sample: Sample, logs: Floats, weight: Float64s, bias: Float64s) -> tuple[float, Float64s, Float64s]:
    """Log loss, and its gradients by the matrix and the bias."""
    loss, by_weight, by_bias, mass = 0.0, np.zeros_like(weight), np.zeros_like(bias), sample.mass
    for rows in row_blocks(*logs.shape):
        block = logs[rows].astype(np.float64)
        logits = block @ weight
        logits += bias
        part, residual = loss_and_residual(logits, sample.labels[rows], mass[rows])
        loss += part
        by_weight += block.T @ residual
        by_bias += np.einsum("ij->j", residual)
    return loss, by_weight, by_bias


def _curvature(sample: Sample, logs: Floats, inverse: float, centre: Float64s) -> Float64s:
    """The diagonal of the Hessian at temperature scaling: a row for each input, and one for the bias."""
    diagonal, mass = np.zeros((sample.n_classes + 1, sample.n_classes)), sample.mass
    for rows, spread in spreads(logs, inverse):
        weighted = spread * mass[rows, None]
        diagonal[:-1] += np.square(logs[rows] - centre).T @ weighted
        diagonal[-1] += np.einsum("ij->j", weighted)
    return diagonal
