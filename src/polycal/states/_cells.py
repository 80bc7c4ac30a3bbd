r"""Questions compacted into cells of their predicted probability, with a bound on what that changes."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.smooth import SmoothCurve, projected_curve


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
        middles, residual, variance = self._used(question)
        curve = projected_curve(middles, residual / total_weight)
        predicted, frequency, bound = (float(total) for total in self.totals[question] / total_weight)
        chance = float(np.sqrt(variance.sum())) / total_weight
        return QuestionSummary(curve.value, bound, predicted, frequency, chance, curve)

    def noise(self, question: int, total_weight: float, n_draws: int, rng: np.random.Generator) -> Float64s:
        """Errors that right predictions would have shown: residuals drawn as normal, with their true variance."""
        middles, _, variance = self._used(question)
        scale = np.sqrt(variance) / total_weight
        draws = rng.standard_normal((n_draws, middles.size)) * scale
        return np.array([projected_curve(middles, draw).value for draw in draws])

    def _used(self, question: int) -> tuple[Float64s, Float64s, Float64s]:
        """Middle, residual and variance of the cells with any."""
        residual, variance = self.cells[question].T
        middles = (np.arange(residual.size) + 0.5) / residual.size
        used = (residual != 0) | (variance != 0)
        # All predictions may be 0 or 1, and right.
        used[0] |= not used.any()
        return middles[used], residual[used], variance[used]
