"""Maps ``softmax(log v W + b)`` with a full matrix, fitted with a quadratic penalty."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._base import Calibrator
from polycal.calibrators._likelihood import (
    log_proba,
    loss_and_proba,
    to_residual,
    total_weight,
    working_dtype,
)
from polycal.calibrators._matrix_blocks import MatrixBlocks
from polycal.calibrators._matrix_ridge import MatrixRidge
from polycal.calibrators._newton_cg import ConvexProblem, Evaluation, Preconditioner, newton_minimise
from polycal.calibrators.temperature import fit_inverse_temperature
from polycal.sample import Sample, row_blocks
from polycal.steps import Linear, Log, Program, Softmax

# How far the objective, per unit of weight, may be above its minimum.
TOLERANCE = 1e-9


class LogLinearCalibrator(Calibrator):
    """A calibrator that mixes all classes' log probabilities; subclasses say how W and b are held.

    Attributes
    ----------
    weight_ : ndarray of shape (n_classes, n_classes)
        W; ``weight_[i, j]`` is what class i's log probability counts for class j.
    bias_ : ndarray of shape (n_classes,)
        b.
    """

    saved_attributes: ClassVar[tuple[str, ...]] = ("weight_", "bias_")
    weight_: Float64s
    bias_: Float64s

    @abstractmethod
    def _ridge(self, per: float) -> MatrixRidge:
        """The penalty, its strengths divided by ``per``."""

    def _fit(self, sample: Sample) -> Program:
        self.weight_, self.bias_ = fit_log_linear(sample, self._ridge(total_weight(sample)))
        return Log(), Linear(self.weight_, self.bias_), Softmax()


def fit_log_linear(sample: Sample, ridge: MatrixRidge) -> tuple[Float64s, Float64s]:
    """The W of shape (k, k) and b of least penalised log loss per unit of weight, from temperature scaling."""
    logs, k = log_proba(sample), sample.n_classes
    start = np.zeros((k + 1, k))
    np.fill_diagonal(start, fit_inverse_temperature(sample, logs))
    point = newton_minimise(LogLinearProblem(sample, logs, ridge), start, TOLERANCE)
    return point[:-1].copy(), point[-1].copy()


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
