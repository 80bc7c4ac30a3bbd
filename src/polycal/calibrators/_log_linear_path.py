"""Choosing how strongly a map is held to temperature scaling, by the log loss of rows kept aside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polycal._split import split_rows
from polycal._typing import Float64s, Ints
from polycal.calibrators._likelihood import log_proba, losses_and_proba, total_weight
from polycal.calibrators._log_linear import LogLinearProblem, tempered_start
from polycal.calibrators._matrix_ridge import MatrixRidge
from polycal.calibrators._newton_cg import newton_minimise
from polycal.calibrators.base import counted_rows
from polycal.sample import Sample, row_blocks

# For each unit of weight: the first is temperature scaling for all purposes, the last is not felt.
RELATIVE_STRENGTHS = 10.0 ** np.arange(4.0, -5.5, -0.5)
N_FOLDS = 4
# Multiplications in a product of the Hessian up to which every fold is kept aside in turn; with more, one is.
_MUCH_WORK = 2**24
# How far the objective may be above its minimum while choosing; losses that differ by less are the same.
_TOLERANCE = 1e-5
# The path ends after so many strengths in a row that are worse than the best.
_PATIENCE = 2
_SEED = 0


@dataclass(frozen=True, eq=False)
class StrengthChoice:
    """A strength, and how it was chosen.

    Attributes
    ----------
    strength : float
    start : ndarray of shape (n_classes + 1, n_classes), or None
        A map near that of this strength, the bias below the matrix.
    table : sequence
        Every strength tried, and its log loss on rows kept aside.
    """

    strength: float
    start: Float64s | None = None
    table: Sequence[tuple[float, float]] = ()


def choose_strength(sample: Sample, ridge: Callable[[float], MatrixRidge]) -> StrengthChoice:
    """The strongest of those whose log loss on rows kept aside is within its noise of the least.

    From strong to weak, until two in a row are worse than the best. Too few rows to part get the strongest.

    Parameters
    ----------
    sample : Sample
    ridge : callable
        The penalty of the sum of losses that goes with a strength.
    """
    sample = counted_rows(sample)
    strengths = (total_weight(sample) * RELATIVE_STRENGTHS).tolist()
    if sample.n_samples < 2 * N_FOLDS:
        return StrengthChoice(strengths[0])
    folds = _make_folds(sample)
    mass = np.concatenate([fold.weight_aside for fold in folds])
    mass /= mass.sum()
    losses: list[Float64s] = []
    points: list[Float64s] = []
    for strength in strengths:
        losses.append(np.concatenate([fold.move(ridge(strength)) for fold in folds]))
        points.append(folds[0].point)
        means = [float(mass @ of_rows) for of_rows in losses]
        if min(means[-_PATIENCE:]) > min(means) + _TOLERANCE:
            break
    chosen = _strongest_good(losses, mass)
    return StrengthChoice(strengths[chosen], points[chosen], list(zip(strengths, means, strict=False)))


def _strongest_good(losses: Sequence[Float64s], mass: Float64s) -> int:
    """The first whose mean is above the least by no more than the standard error of their difference.

    Weaker ridges win by luck where rows are few, and only those do harm.
    """
    best = min(losses, key=lambda of_rows: float(mass @ of_rows))
    return next(i for i, of_rows in enumerate(losses) if _is_noise(of_rows - best, mass))


def _is_noise(excess: Float64s, mass: Float64s) -> bool:
    """Whether the mean is no more than its standard error."""
    mean = float(mass @ excess)
    return mean <= float(np.linalg.norm(mass * (excess - mean)))


def _make_folds(sample: Sample) -> list["_Fold"]:
    parts = split_rows(sample, (1.0,) * N_FOLDS, _SEED)
    much_work = sample.proba.size * sample.n_classes > _MUCH_WORK
    return [_Fold(sample, aside) for aside in (parts[:1] if much_work else parts)]


class _Fold:
    """Rows to fit on, rows kept aside, and the map fitted last.

    Parameters
    ----------
    sample : Sample
        All rows.
    aside : ndarray of int64
        Those kept aside.
    """

    def __init__(self, sample: Sample, aside: Ints) -> None:
        fitted = sample.take(np.delete(np.arange(sample.n_samples), aside))
        logs = log_proba(fitted)
        self._problem = LogLinearProblem(fitted, logs, MatrixRidge(0.0, 0.0, 0.0))
        self._weight = total_weight(fitted)
        self.point = tempered_start(fitted, logs)
        self._aside = sample.take(aside)
        self._aside_logs = log_proba(self._aside)
        self.weight_aside: Float64s = self._aside.mass * total_weight(self._aside)

    def move(self, ridge: MatrixRidge) -> Float64s:
        """Fit anew, from the map before; the log loss of each row kept aside."""
        problem = self._problem.with_ridge(ridge.per(self._weight))
        self.point = newton_minimise(problem, self.point, _TOLERANCE)
        losses = np.empty(self._aside.n_samples)
        for rows in row_blocks(*self._aside_logs.shape):
            logits = self._aside_logs[rows].astype(np.float64) @ self.point[:-1]
            logits += self.point[-1]
            losses[rows], _ = losses_and_proba(logits, self._aside.labels[rows])
        return losses
