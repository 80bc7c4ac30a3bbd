"""Residuals of questions added up in cells of their predicted probability, and what they say of the questions."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.inference.question_bounds import Residuals
from polycal.measures.smooth import (
    SmoothCurve,
    largest_change,
    largest_residual,
    projected_curve,
    projected_error,
)
from polycal.storage.rules import Array, expect
from polycal.storage.saved import Saved


class Weights(NamedTuple):
    """The weights of rows: how many are positive, their sum, the sum of their squares, and the largest."""

    n_rows: int = 0
    total: float = 0.0
    square: float = 0.0
    largest: float = 0.0

    @classmethod
    def of(cls, weight: Float64s) -> "Weights":
        """Of some rows."""
        n_rows, largest = int(np.count_nonzero(weight)), float(weight.max(initial=0.0))
        return cls(n_rows, float(weight.sum()), float(weight @ weight), largest)

    def merged(self, other: "Weights") -> "Weights":
        """Both together."""
        return Weights(
            self.n_rows + other.n_rows,
            self.total + other.total,
            self.square + other.square,
            max(self.largest, other.largest),
        )


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
    low, high : float
        The exact error lies between these. Of lists it is that of the full predictions, and `value`, `predicted` and
        `chance` are those of the middles of what each prediction can be.
    unknown : float
        Of lists: the mean probability of which it is not known whether it belongs to the question's classes, and the
        share of rows of which the answer is not known.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> summary = pc.states.QuestionState(None).update(made.labels, made.proba).finish()
    >>> summary.frequency < summary.predicted, summary.value > 0.1
    (True, True)
    """

    value: float
    bound: float
    predicted: float
    frequency: float
    chance: float
    curve: SmoothCurve
    low: float
    high: float
    unknown: float = 0.0


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


@dataclass(eq=False)
class Doubt(Saved):
    """What lists hide of several questions, as sums over rows.

    They are the sums of weight times: the length of the interval that the prediction lies in; what leaving its middle
    changes at most; the least and the negative of the most that the residual can be; the most that its absolute value
    can be; and 1, because full predictions are not counted here.
    """

    sums: Annotated[Float64s, Array("float64", "6 n_questions")]
    role: ClassVar[str] = "part"
    family: ClassVar[str] = "doubt"

    @classmethod
    def none(cls, n_questions: int) -> "Doubt":
        """No rows."""
        return cls(np.zeros((6, n_questions)))

    def add(
        self, low: Floats, high: Floats, hits: Bools, weight: Float64s, unsure: Bools | None = None
    ) -> None:
        """Take in (n, q) ranges of predictions, whether the answers were "yes", and where that is not known."""
        unsure = np.zeros_like(hits) if unsure is None else unsure
        change = largest_change((low + high) / 2.0, hits, low, high, unsure)
        most = largest_residual(hits, low, high, unsure)
        parts = high - low, change, hits - high, low - (hits | unsure), most, np.ones_like(low)
        self.sums += np.stack([weight @ part for part in parts])

    def check_sums(self, n_questions: int, total_weight: float) -> None:
        """Refuse sums that no rows of this weight have."""
        expect(self.sums.shape[1] == n_questions, "there must be sums for each question")
        within = np.abs(self.sums) <= 2.0 * total_weight * (1.0 + 1e-6)
        expect(within.all() and (self.sums[[0, 1, 4, 5]] >= 0).all(), "intervals must lie in 0 to 1")

    def applied(self, summary: QuestionSummary, question: int, total_weight: float) -> QuestionSummary:
        """The summary of a question's middles, with the interval that its error lies in."""
        width, slack, more, less, most, counted = (float(x) for x in self.sums[:, question] / total_weight)
        if slack == 0.0:
            return summary
        # An answer that is not known takes "no" for the least and "yes" for the most.
        unsure = max(0.0, -(more + less) - width)
        if counted < 1.0 - 1e-9:
            more, less, most = 0.0, 0.0, 1.0
        slack += summary.bound
        low = max(0.0, more, less, summary.value - slack)
        high = max(low, min(most, summary.value + slack))
        frequency = summary.frequency + unsure / 2.0
        return replace(summary, low=low, high=high, unknown=width + unsure, frequency=frequency)


def summary_of(
    curve: SmoothCurve, bound: float, predicted: float, frequency: float, chance: float
) -> QuestionSummary:
    """The summary of full predictions."""
    low, high = max(0.0, curve.value - bound), curve.value + bound
    return QuestionSummary(curve.value, bound, predicted, frequency, chance, curve, low, high)


@dataclass(eq=False)
class Cells(Saved):
    """Residuals of several questions, added up in cells of equal width of their predicted probability."""

    # Of each question and cell: weighted residual, and its variance if predictions are right.
    cells: Annotated[Float64s, Array("float64", "n_questions n_cells 2")]
    # Of each question: weighted prediction, weighted "yes", how far the cells' middles may be off, and the square of
    # the weighted residual, which files of earlier versions do not have.
    totals: Annotated[Float64s, Array("float64", "n_questions n_totals", low=0)]
    role: ClassVar[str] = "part"
    family: ClassVar[str] = "cells"

    @classmethod
    def empty(cls, n_questions: int, n_cells: int) -> "Cells":
        """No rows."""
        return cls(np.zeros((n_questions, n_cells, 2)), np.zeros((n_questions, 4)))

    def add(self, predicted: Floats, answer: Ints | Bools, weight: Float64s) -> None:
        """Take in (n, q) predictions; the answer to question j is "yes" on the rows with ``answer == j``."""
        from polycal._compiled.states import add_to_cells  # noqa: PLC0415 - imports numba

        add_to_cells(predicted, answer, weight, self.cells, self.totals)

    def check_sums(self, n_questions: int, resolution: float, total_weight: float) -> None:
        """Refuse sums that no rows of this weight have."""
        n_cells = 0 if resolution == 0 else np.ceil(1.0 / resolution)
        expect(self.cells.shape[:2] == (n_questions, n_cells), "there must be cells for each question")
        most = total_weight * (1.0 + 1e-6)
        expect(
            (self.totals[:, :3] <= most).all() and (np.abs(self.cells[..., 0]) <= most).all(),
            "residuals must be at most 1",
        )
        expect((self.cells[..., 1] >= 0).all(), "variances must not be negative")
        expect(self.totals.shape[1] in {3, 4}, "there must be three or four totals of each question")

    def merge(self, other: "Cells") -> None:
        """Take in the rows of another."""
        self.cells += other.cells
        n_totals = min(self.totals.shape[1], other.totals.shape[1])
        self.totals = self.totals[:, :n_totals] + other.totals[:, :n_totals]

    def summary(self, question: int, total_weight: float) -> QuestionSummary:
        """One question, finished."""
        used = self.in_cells(question, total_weight)
        curve = projected_curve(used.middles, used.residual)
        predicted, frequency, bound = (float(total) for total in self.totals[question, :3] / total_weight)
        chance = float(np.sqrt(self.cells[question, :, 1].sum())) / total_weight
        return summary_of(curve, bound, predicted, frequency, chance)

    def residuals(self, question: int, error: float, weights: Weights) -> Residuals | None:
        """What bounds need to know of one question; None if it was read from a file of an earlier version."""
        if self.totals.shape[1] < 4:
            return None
        residual, variance = self.cells[question].T
        tilt = 1.0 - (2.0 * np.arange(residual.size) + 1.0) / residual.size
        off, square = self.totals[question, 2:]
        n, largest = weights.n_rows, weights.largest
        return Residuals(
            n_samples=n,
            error=error,
            doubt=float(off) / weights.total,
            stake=weights.total / (n * largest),
            stake_square=weights.square / (n * largest**2),
            mean=float(residual.sum()) / (n * largest),
            tilted=float(residual @ tilt) / (n * largest),
            square=float(square) / (n * largest**2),
            variance=float(variance.sum()) / (n * largest**2),
        )

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
