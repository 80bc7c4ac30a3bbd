"""The smooth calibration error of questions: exact by sorted runs, or bounded in memory by cells."""

from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer, check_real, class_set
from polycal.inference.question_bounds import Residuals
from polycal.measures.smooth import projected_curve
from polycal.sample import Sample, ask_members, row_blocks
from polycal.states.base import State, plain_set
from polycal.states.cells import CellNoise, Cells, Doubt, QuestionSummary, Weights, summary_of
from polycal.states.sums import Runs
from polycal.storage.rules import ClassSet, Part, Real, Whole, expect


class QuestionState(State):
    r"""The smooth calibration error of one yes/no question, exact or compacted.

    Parameters
    ----------
    subset : list of class indices or names, optional
        The classes that count as "yes". By default the question of confidence: "is the most likely class right?".
    top : int, default 1
        How many most likely classes count as "yes" if no `subset` is given.
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
    top: Annotated[int, Whole(low=1)]
    _runs: Annotated[Runs, Part((Runs,))]
    _cells: Annotated[Cells, Part((Cells,))]
    _doubt: Annotated[Doubt, Part((Doubt,))]

    def __init__(
        self, subset: Any = None, *, top: int = 1, resolution: float = 0.0, class_names: Any = None
    ) -> None:
        super().__init__()
        self.top = check_integer(top, "top", minimum=1)
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
        return summary_of(curve, 0.0, mean, frequency, chance)

    def residuals(self, weights: Weights) -> Residuals | None:
        """What bounds need to know of rows with these weights (compacted only); None if that is not known any more."""
        self._compacted()
        return self._cells.residuals(0, self._middles().value, weights)

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
        question = ask_members(sample, self.top if subset is None else np.array(subset))
        if self.resolution > 0:
            self._cells.add(question.predicted[:, None], ~question.hits, weight)
        else:
            self._runs.add(np.stack([question.predicted, weight, weight * question.hits, weight**2]))
        if sample.is_listed:
            low, high = (end[:, None] for end in question.ranges)
            unsure = None if question.unsure is None else question.unsure[:, None]
            self._doubt.add(low, high, question.hits[:, None], weight, unsure)

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

    def residuals(self, question: int, error: float, weights: Weights) -> Residuals | None:
        """What bounds need to know of one of the classes followed, of this error, in rows with these weights."""
        return self._cells.residuals(question, error, weights)

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
