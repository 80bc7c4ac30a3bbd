r"""Questions compacted into cells of their predicted probability, with a bound on what that changes."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.smooth import SmoothCurve, projected_curve, projected_error


@dataclass(frozen=True, eq=False)
class QuestionSummary:
    """A question put to all rows that a state has seen.

    Attributes
    ----------
    value : float
        The smooth calibration error, exact or of the compacted rows.
    bound : float
        The exact error differs from `value` by at most this; 0 if nothing was compacted.
    predicted, frequency : float
        Mean predicted probability and share of "yes", exactly.
    chance : float
        Standard deviation that ``frequency - predicted`` would have if the predictions were calibrated.
    curve : SmoothCurve
        The curves behind `value`.
    """

    value: float
    bound: float
    predicted: float
    frequency: float
    chance: float
    curve: SmoothCurve


@dataclass(frozen=True, eq=False)
class CellNoise:
    """A question in cells: its error there, and errors that right predictions would have shown.

    Attributes
    ----------
    middles : ndarray of shape (n_cells,)
        The cells in use.
    residual, scale : ndarray of shape (n_cells,)
        Mean residual, and its standard deviation if the predictions are right.
    """

    middles: Float64s
    residual: Float64s
    scale: Float64s

    def error(self) -> float:
        """The smooth error of the residuals in their cells."""
        return projected_error(self.middles, self.residual)

    def draw(self, rng: np.random.Generator) -> float:
        """The smooth error of residuals drawn as normal, with their true variance."""
        return projected_error(self.middles, rng.standard_normal(self.middles.size) * self.scale)


class Cells:
    """Residuals of several questions, added up in cells of equal width of their predicted probability."""

    def __init__(self, cells: Float64s, totals: Float64s) -> None:
        self.cells = cells
        self.totals = totals

    @classmethod
    def empty(cls, n_questions: int, n_cells: int) -> "Cells":
        """No rows."""
        return cls(np.zeros((n_questions, n_cells, 2)), np.zeros((n_questions, 3)))

    def add(self, predicted: Floats, answer: Ints | Bools, weight: Float64s) -> None:
        """Take in (n, q) predictions; the answer to question j is "yes" on the rows with ``answer == j``."""
        from polycal._compiled.states import add_to_cells  # noqa: PLC0415 - imports numba

        add_to_cells(predicted, answer, weight, self.cells, self.totals)

    def merge(self, other: "Cells") -> None:
        """Take in the rows of another."""
        self.cells += other.cells
        self.totals += other.totals

    def summary(self, question: int, total_weight: float) -> QuestionSummary:
        """One question, finished."""
        used = self.in_cells(question, total_weight)
        curve = projected_curve(used.middles, used.residual)
        predicted, frequency, bound = (float(total) for total in self.totals[question] / total_weight)
        chance = float(np.sqrt(self.cells[question, :, 1].sum())) / total_weight
        return QuestionSummary(curve.value, bound, predicted, frequency, chance, curve)

    def noise(self, question: int, total_weight: float, n_draws: int, rng: np.random.Generator) -> Float64s:
        """Errors that right predictions would have shown."""
        used = self.in_cells(question, total_weight)
        return np.array([used.draw(rng) for _ in range(n_draws)])

    def in_cells(self, question: int, total_weight: float, most: int | None = None) -> CellNoise:
        """The cells with any residual or variance, joined to at most ``most`` of equal width if that is given."""
        n_cells = self.cells.shape[1] if most is None else min(most, self.cells.shape[1])
        place = (2 * np.arange(self.cells.shape[1]) + 1) * n_cells // (2 * self.cells.shape[1])
        residual, variance = (
            np.bincount(place, weights=column, minlength=n_cells) for column in self.cells[question].T
        )
        used = (residual != 0) | (variance != 0)
        # All predictions may be 0 or 1, and right.
        used[0] |= not used.any()
        middles = (np.flatnonzero(used) + 0.5) / n_cells
        return CellNoise(middles, residual[used] / total_weight, np.sqrt(variance[used]) / total_weight)
