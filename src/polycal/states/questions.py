"""The smooth calibration error of questions: exact by sorted runs, or bounded in memory by cells."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal._validation import check_real, class_set
from polycal.measures.smooth import SmoothCurve, largest_change, projected_curve, projected_error
from polycal.sample import Sample, ask_confidence, ask_subset, row_blocks
from polycal.states.base import State, plain_set
from polycal.states.sums import Runs
from polycal.storage.rules import Array, ClassSet, Part, Real, expect
from polycal.storage.saved import Saved


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
        Of lists: the mean probability of which it is not known whether it belongs to the question's classes.
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

    def add(self, low: Floats, high: Floats, hits: Bools, weight: Float64s) -> None:
        """Take in (n, q) ranges of predictions and whether the answers were "yes"."""
        change = largest_change((low + high) / 2.0, hits, low, high)
        most = np.maximum(np.abs(hits - low), np.abs(hits - high))
        parts = high - low, change, hits - high, low - hits, most, np.ones_like(low)
        self.sums += np.stack([weight @ part for part in parts])

    def check_sums(self, n_questions: int, total_weight: float) -> None:
        """Refuse sums that no rows of this weight have."""
        expect(self.sums.shape[1] == n_questions, "there must be sums for each question")
        within = np.abs(self.sums) <= 2.0 * total_weight * (1.0 + 1e-6)
        expect(within.all() and (self.sums[[0, 1, 4, 5]] >= 0).all(), "intervals must lie in 0 to 1")

    def applied(self, summary: QuestionSummary, question: int, total_weight: float) -> QuestionSummary:
        """The summary of a question's middles, with the interval that its error lies in."""
        unknown, slack, more, less, most, counted = (float(x) for x in self.sums[:, question] / total_weight)
        if unknown == 0.0:
            return summary
        if counted < 1.0 - 1e-9:
            more, less, most = 0.0, 0.0, 1.0
        slack += summary.bound
        low = max(0.0, more, less, summary.value - slack)
        high = max(low, min(most, summary.value + slack))
        return replace(summary, low=low, high=high, unknown=unknown)


def _summary(
    curve: SmoothCurve, bound: float, predicted: float, frequency: float, chance: float
) -> QuestionSummary:
    low, high = max(0.0, curve.value - bound), curve.value + bound
    return QuestionSummary(curve.value, bound, predicted, frequency, chance, curve, low, high)


@dataclass(eq=False)
class Cells(Saved):
    """Residuals of several questions, added up in cells of equal width of their predicted probability."""

    # Of each question and cell: weighted residual, and its variance if predictions are right.
    cells: Annotated[Float64s, Array("float64", "n_questions n_cells 2")]
    # Of each question: weighted prediction, weighted "yes", and how far the cells' middles may be off.
    totals: Annotated[Float64s, Array("float64", "n_questions 3", low=0)]
    role: ClassVar[str] = "part"
    family: ClassVar[str] = "cells"

    @classmethod
    def empty(cls, n_questions: int, n_cells: int) -> "Cells":
        """No rows."""
        return cls(np.zeros((n_questions, n_cells, 2)), np.zeros((n_questions, 3)))

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
            (self.totals <= most).all() and (np.abs(self.cells[..., 0]) <= most).all(),
            "residuals must be at most 1",
        )
        expect((self.cells[..., 1] >= 0).all(), "variances must not be negative")

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
        return _summary(curve, bound, predicted, frequency, chance)

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


class QuestionState(State):
    r"""The smooth calibration error of one yes/no question, exact or compacted.

    Parameters
    ----------
    subset : list of class indices or names, optional
        The classes that count as "yes". By default the question of confidence: "is the most likely class right?".
    resolution : float, default 0
        Width h of the cells in which predictions are compacted. 0: every distinct prediction is kept, the error is
        exact and the memory grows with the number of distinct predictions.
    class_names : list of str, optional
        Needed to give `subset` by name.

    Notes
    -----
    `finish` returns a `QuestionSummary` whose ``value`` is within ``bound`` of `smooth_calibration_error` on all
    rows together.

    The bound: let row i have weight :math:`p_i` (of sum 1), prediction :math:`u_i` and residual
    :math:`r_i = y_i - u_i`, and let :math:`m_i` be the middle of its cell. Compaction keeps each residual and moves
    the place where it is weighed from :math:`u_i` to :math:`m_i`. For every 1-Lipschitz :math:`\varphi`,

    .. math:: \Big| \sum_i p_i r_i \varphi(u_i) - \sum_i p_i r_i \varphi(m_i) \Big|
              \le \sum_i p_i |r_i| |u_i - m_i| =: B .

    A function on the places of either side extends to one on both, so the suprema over all :math:`\varphi`, which are
    the two errors, differ by at most B as well. B is a sum over rows, so it is kept exactly beside the cells and
    reported as ``bound``. As :math:`|u_i - m_i| \le h/2`, it is at most h/2 times the mean of :math:`|r_i|`; in
    practice about half of that.

    Cost: exact, a sort of each chunk and O(n log n) in all; compacted, O(n) and 2/h numbers.

    Chunks may be lists of classes, which are never made dense. What `smooth_calibration_error` says of lists needs all
    rows at once; of it, the bounds for references at the middles, for constant weight functions and for the mean of
    :math:`|y - u|` are left here, which are sums. So the interval is a little wider.

    Examples
    --------
    >>> import polycal as pc
    >>> state = pc.QuestionState([0, 1]).update([2, 2], [[0.2, 0.3, 0.5]] * 2).update([0, 1], [[0.7, 0.2, 0.1]] * 2)
    >>> round(state.finish().value, 6)
    0.22
    """

    family: ClassVar[str] = "question"

    subset: Annotated[Any, ClassSet()]
    resolution: Annotated[float, Real(low=0, high=0.5)]
    _runs: Annotated[Runs, Part((Runs,))]
    _cells: Annotated[Cells, Part((Cells,))]
    _doubt: Annotated[Doubt, Part((Doubt,))]

    def __init__(self, subset: Any = None, *, resolution: float = 0.0, class_names: Any = None) -> None:
        super().__init__()
        self.resolution = check_real(resolution, "resolution", low=0, high=0.5)
        # Names become positions when the classes are known.
        self.subset = plain_set(subset)
        self.class_names = None if class_names is None else tuple(map(str, class_names))
        self._cells = Cells.empty(0, 0)
        self._runs = Runs(1, np.zeros((4, 0)))
        self._doubt = Doubt.none(1)

    def finish(self) -> QuestionSummary:
        """The question's error and averages over all rows."""
        self._seen()
        return self._doubt.applied(self._middles(), 0, self.total_weight)

    def _middles(self) -> QuestionSummary:
        """The summary of the predictions, or of the middles of what they can be."""
        if self.resolution > 0:
            return self._cells.summary(0, self.total_weight)
        predicted, weight, hits, square = self._runs.whole()
        total = self.total_weight
        curve = projected_curve(predicted, (hits - weight * predicted) / total)
        chance = float(np.sqrt(square @ (predicted * (1.0 - predicted)))) / total
        mean, frequency = float(weight @ predicted) / total, float(hits.sum()) / total
        return _summary(curve, 0.0, mean, frequency, chance)

    def noise(self, n_draws: int, seed: int = 0) -> Float64s:
        """Errors that right predictions would have shown (compacted only), with normal residuals."""
        self._compacted()
        return self._cells.noise(0, self.total_weight, n_draws, np.random.default_rng(seed))

    def in_cells(self, most: int) -> CellNoise:
        """The question in at most so many cells (compacted only): its error there, and its noise."""
        self._compacted()
        return self._cells.in_cells(0, self.total_weight, most)

    def _check_sums(self, n_classes: int) -> None:
        self._place(n_classes)
        self._cells.check_sums(1, self.resolution, self.total_weight)
        self._doubt.check_sums(1, self.total_weight)
        expect(self._runs.n_keys == 1, "predictions must be the only key")
        predicted, weight, hits, square = self._runs.check_columns(4)
        expect(
            (predicted >= 0).all() and (predicted <= 1).all() and (square >= 0).all(),
            "predictions must lie in 0 to 1",
        )
        expect((hits >= 0).all() and (hits <= weight * (1.0 + 1e-6)).all(), "frequencies must lie in 0 to 1")
        expect(
            self.resolution > 0 or self._is_total(weight.sum()),
            "the weights of the run must add up to that of all rows",
        )

    def _compacted(self) -> None:
        if self.resolution == 0:
            raise ValueError("noise needs a resolution above 0.")
        self._seen()

    def _open(self, n_classes: int) -> None:
        self._place(n_classes)
        self._cells = Cells.empty(1, 0 if self.resolution == 0 else int(np.ceil(1.0 / self.resolution)))

    def _place(self, n_classes: int) -> None:
        """Turn names of classes into positions."""
        if self.subset is not None:
            self.subset = class_set(self.subset, n_classes, self.class_names, "subset").tolist()

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        subset = self.subset
        question = ask_confidence(sample) if subset is None else ask_subset(sample, np.array(subset))
        if self.resolution > 0:
            self._cells.add(question.predicted[:, None], ~question.hits, weight)
        else:
            self._runs.add(np.stack([question.predicted, weight, weight * question.hits, weight**2]))
        if sample.is_listed:
            low, high = (end[:, None] for end in question.ranges)
            self._doubt.add(low, high, question.hits[:, None], weight)

    def _merge(self, other: "QuestionState") -> None:
        self._doubt.sums += other._doubt.sums
        self._runs.merge(other._runs)
        self._cells.merge(other._cells)


class ClassesState(State):
    """The smooth calibration error of every class, compacted as in `QuestionState`.

    Parameters
    ----------
    resolution : float, default 1/1024
        Width of the cells.
    classes : list of int, optional
        The classes to follow, by default all: of lists with many classes, those that matter (see `likely_classes`).

    Notes
    -----
    `finish` returns one `QuestionSummary` per class, each within its ``bound`` of the exact error on all rows: at
    most half a `resolution` times the mean absolute residual of the class, which is small where there are many
    classes. Cost: one pass, O(nk); memory: 2 k / `resolution` numbers.

    Examples
    --------
    >>> import polycal as pc
    >>> state = pc.ClassesState().update([0, 0, 1, 0], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
    >>> [round(summary.value, 3) for summary in state.finish()]
    [0.25, 0.25]
    """

    family: ClassVar[str] = "classes"

    resolution: Annotated[float, Real(low=1e-6, high=0.5)]
    classes: Annotated[list[int] | None, ClassSet()]
    _cells: Annotated[Cells, Part((Cells,))]
    _doubt: Annotated[Doubt, Part((Doubt,))]

    def __init__(self, *, resolution: float = 1.0 / 1024.0, classes: Any = None) -> None:
        super().__init__()
        self.resolution = check_real(resolution, "resolution", low=1e-6, high=0.5)
        self.classes = plain_set(classes)
        self._cells = Cells.empty(0, self._n_cells)
        self._doubt = Doubt.none(0)

    @property
    def _n_cells(self) -> int:
        return int(np.ceil(1.0 / self.resolution))

    def finish(self) -> tuple[QuestionSummary, ...]:
        """The error and averages of each class over all rows."""
        self._seen()
        total = self.total_weight
        return tuple(
            self._doubt.applied(self._cells.summary(c, total), c, total) for c in range(self._n_followed)
        )

    def noise(self, n_draws: int, seed: int = 0) -> Float64s:
        """Errors that right predictions would have shown: (n_classes, n_draws), with independent normal residuals."""
        rng = np.random.default_rng(seed)
        self._seen()
        rows = [self._cells.noise(c, self.total_weight, n_draws, rng) for c in range(self._n_followed)]
        return np.array(rows)

    def _check_sums(self, n_classes: int) -> None:
        n_followed = self._followed(n_classes).size
        self._cells.check_sums(n_followed, self.resolution, self.total_weight)
        self._doubt.check_sums(n_followed, self.total_weight)

    def _followed(self, n_classes: int) -> Ints:
        """The classes followed, in increasing order."""
        if self.classes is None:
            return np.arange(n_classes)
        return class_set(self.classes, n_classes, self.class_names, "classes")

    @property
    def _n_followed(self) -> int:
        return int(self._cells.cells.shape[0])

    def _open(self, n_classes: int) -> None:
        n_followed = self._followed(n_classes).size
        self._cells = Cells.empty(n_followed, self._n_cells)
        self._doubt = Doubt.none(n_followed)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        if self.classes is None and not sample.is_listed:
            self._cells.add(sample.proba, sample.labels, weight)
            return
        classes = self._followed(sample.n_classes)
        for block in row_blocks(sample.n_samples, 8 * classes.size):
            part = sample.take(block)
            low, high = part.class_ranges(classes)
            hits = part.labels[:, None] == classes
            answer = np.where(hits.any(axis=1), hits.argmax(axis=1), classes.size)
            self._cells.add((low + high) / 2.0, answer, weight[block])
            if sample.is_listed:
                self._doubt.add(low, high, hits, weight[block])

    def _merge(self, other: "ClassesState") -> None:
        self._doubt.sums += other._doubt.sums
        self._cells.merge(other._cells)
