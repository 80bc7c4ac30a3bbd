"""Maps ``softmax(log v W + b)`` with a full matrix, fitted with a quadratic penalty."""

from copy import copy
from typing import Self

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._likelihood import (
    log_proba,
    loss_and_proba,
    to_residual,
    working_dtype,
)
from polycal.calibrators._matrix_blocks import MatrixBlocks
from polycal.calibrators._matrix_ridge import MatrixRidge
from polycal.calibrators._newton_cg import ConvexProblem, Evaluation, Preconditioner, newton_minimise
from polycal.calibrators.temperature import fit_inverse_temperature
from polycal.sample import Sample, row_blocks

# How far the objective, per unit of weight, may be above its minimum.
TOLERANCE = 1e-9


def fit_log_linear(
    sample: Sample, ridge: MatrixRidge, start: Float64s | None = None
) -> tuple[Float64s, Float64s]:
    """The W of shape (k, k) and b of least penalised log loss per unit of weight.

    The search starts from temperature scaling, or from ``start``, a map with the bias below the matrix.
    """
    logs = log_proba(sample)
    if start is None:
        start = tempered_start(sample, logs)
    point = newton_minimise(LogLinearProblem(sample, logs, ridge), start, TOLERANCE)
    return point[:-1].copy(), point[-1].copy()


def tempered_start(sample: Sample, logs: Floats) -> Float64s:
    """Temperature scaling as a map of shape (k + 1, k)."""
    start = np.zeros((sample.n_classes + 1, sample.n_classes))
    np.fill_diagonal(start, fit_inverse_temperature(sample, logs))
    return start


class LogLinearProblem(ConvexProblem):
    """The penalised log loss of a map, the bias below the matrix, per unit of weight.

    Values and gradients are in double precision. The curvature decides about the way to the minimum only: for large
    samples it is in single precision, which is twice as fast.

    Parameters
    ----------
    sample : Sample
        Labels and weights.
    logs : ndarray of float, shape (n_samples, n_classes)
        Log probabilities.
    ridge : MatrixRidge
    """

    def __init__(self, sample: Sample, logs: Floats, ridge: MatrixRidge) -> None:
        self._logs, self._labels, self._mass, self._ridge = logs, sample.labels, sample.mass, ridge
        n, k = logs.shape
        self._features: Floats = np.ones((n, k + 1), dtype=working_dtype(sample))
        self._features[:, :k] = logs
        self._thin_mass = self._mass.astype(self._features.dtype)

    def with_ridge(self, ridge: MatrixRidge) -> Self:
        """The same rows, held otherwise."""
        other = copy(self)
        other._ridge = ridge
        return other

    def evaluate(self, point: Float64s) -> Evaluation:
        """Value, gradient and predictions."""
        gradient = self._ridge.gradient(point)
        value = 0.5 * float(np.vdot(gradient, point))
        proba: Floats = np.empty(self._logs.shape, dtype=self._features.dtype)
        for rows in row_blocks(*proba.shape):
            block, labels, mass = self._logs[rows].astype(np.float64), self._labels[rows], self._mass[rows]
            logits = block @ point[:-1]
            logits += point[-1]
            part, proba[rows] = loss_and_proba(logits, labels, mass)
            residual = to_residual(logits, labels, mass)
            value += part
            gradient[:-1] += block.T @ residual
            gradient[-1] += np.einsum("ij->j", residual)
        return Evaluation(value, gradient, proba)

    def product(self, at: Evaluation, direction: Float64s) -> Float64s:
        """The Hessian times a direction."""
        out = self._ridge.gradient(direction)
        thin = direction.astype(self._features.dtype)
        for rows in row_blocks(*self._features.shape):
            features, proba = self._features[rows], at.proba[rows]
            change = features @ thin
            change -= np.einsum("ij,ij->i", proba, change)[:, None]
            change *= proba
            change *= self._thin_mass[rows, None]
            out += features.T @ change
        return out

    def preconditioner(self, at: Evaluation) -> Preconditioner:
        """Blocks of the Hessian, and steps without a shift of all classes: gradients have none either."""
        strengths = self._ridge.strengths(self._logs.shape[1])
        blocks = MatrixBlocks(self._features, at.proba, self._thin_mass, strengths)
        return lambda gradient: self._ridge.centred(blocks.solve(gradient))
