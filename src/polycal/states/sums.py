"""States that are sums over rows: scores, errors in bins, and tallies of values."""

from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer
from polycal.measures.binned import Norm, ReliabilityCurve
from polycal.measures.scores import SCORES, named_scores, score_sums
from polycal.sample import Sample, refuse_lists, subset_words
from polycal.states.base import State
from polycal.storage.rules import Array, Sizes, Whole, expect
from polycal.storage.saved import Saved


class Runs(Saved):
    """Columns of numbers whose first few rows are keys, each once and in increasing order; the rest add up.

    As in a log-structured store, runs are merged when a newer one has grown to the size of the one before, so
    that n columns cost O(n log n) in all, however small the chunks.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "runs"

    n_keys: Annotated[int, Whole(low=1, high=2)]

    def __init__(self, n_keys: int, run: Float64s) -> None:
        self.n_keys = n_keys
        self._empty = np.ascontiguousarray(run[:, :0])
        self._runs = [np.ascontiguousarray(run)] if run.shape[1] else []

    def add(self, columns: Float64s) -> None:
        """Take in columns in any order."""
        self._push(self._combined(columns))

    def merge(self, other: "Runs") -> None:
        """Take in the runs of another."""
        for run in other._runs:
            self._push(run)

    def whole(self) -> Float64s:
        """Everything as one run."""
        return reduce(self._joined, reversed(self._runs), self._empty)

    def _saved_values(self) -> dict[str, Any]:
        return {"n_keys": self.n_keys, "run": self.whole()}

    def check_columns(self, height: int) -> Float64s:
        """The whole run, refused unless it has so many rows, and keys each once and in increasing order."""
        run = self.whole()
        Array("float64", "height n_columns", high=np.inf).check(run, "run", Sizes(None))
        expect(run.shape[0] == height, "a run must have the right number of rows")
        steps = np.diff(run[: self.n_keys])
        later = steps[-1] > 0
        expect(
            (later if self.n_keys == 1 else (steps[0] > 0) | ((steps[0] == 0) & later)).all(),
            "keys must increase",
        )
        return run

    def _push(self, run: Float64s) -> None:
        while self._runs and self._runs[-1].shape[1] <= run.shape[1]:
            run = self._joined(self._runs.pop(), run)
        self._runs.append(run)

    def _joined(self, left: Float64s, right: Float64s) -> Float64s:
        from polycal._compiled.runs import merged  # noqa: PLC0415 - imports numba

        run: Float64s = merged(left, right, self.n_keys)
        return run

    def _combined(self, columns: Float64s) -> Float64s:
        """Sorted, and equal keys added up."""
        from polycal._compiled.runs import add_up  # noqa: PLC0415 - imports numba

        first, *others = columns[: self.n_keys]
        # Keys after the first are weights, which mostly are all 1.
        plain = all((key == key[:1]).all() for key in others)
        order = np.argsort(first) if plain else np.lexsort((*others[::-1], first))
        run: Float64s = add_up(columns, order, self.n_keys)
        return run


class ScoreState(State):
    """Accuracy, Brier score and log loss, as running sums.

    Notes
    -----
    `finish` returns what `accuracy`, `brier_score` and `log_loss` give on all rows together. Cost: one pass,
    O(nk); memory: three numbers.

    Examples
    --------
    >>> import polycal as pc
    >>> monday = pc.ScoreState().update([0], [[0.5, 0.5]])
    >>> tuesday = pc.ScoreState().update([1], [[0.0, 1.0]])
    >>> monday.merge(tuesday).finish()["brier_score"]
    0.25
    """

    family: ClassVar[str] = "scores"

    _sums: Annotated[Float64s, Array("float64", f"2 {len(SCORES)}", low=0)]

    def __init__(self) -> None:
        super().__init__()
        # The least and the most that they can be, which lists may leave apart.
        self._sums = np.zeros((2, len(SCORES)))

    def finish(self) -> dict[str, float]:
        """The weighted means over all rows; of lists as `measures.scores.named_scores` says."""
        self._seen()
        return named_scores(self._sums / self.total_weight)

    def _check_sums(self, n_classes: int) -> None:  # noqa: ARG002 - scores do not depend on it
        right, squared, _ = self._sums.max(axis=0)
        most = self.total_weight * (1.0 + 1e-6)
        expect(right <= most and squared <= 2.0 * most, "scores must be at most 1 or 2 for each row")
        expect((self._sums[0] <= self._sums[1]).all(), "the least of a score must be at most the most")

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        self._sums += score_sums(sample, weight)

    def _merge(self, other: "ScoreState") -> None:
        self._sums += other._sums


@dataclass(frozen=True, eq=False)
class BinnedErrors:
    """The reliability of confidence and of every class, in equal-width bins.

    Attributes
    ----------
    confidence : ReliabilityCurve
        Of the question "is the most likely class right?".
    classes : tuple of ReliabilityCurve
        Of each class's own probability.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> binned = pc.states.BinnedState(4).update(made.labels, made.proba).finish()
    >>> len(binned.classes), round(float(binned.confidence.mass.sum()), 6)
    (4, 1.0)
    """

    confidence: ReliabilityCurve
    classes: tuple[ReliabilityCurve, ...]

    def confidence_error(self, norm: Norm = "l1") -> float:
        """The binned error of confidence; "l1" is the ECE."""
        return self.confidence.error(norm)

    def class_errors(self, norm: Norm = "l1") -> Float64s:
        """The binned error of each class."""
        return np.array([curve.error(norm) for curve in self.classes])


class BinnedState(State):
    """Reliability of confidence and of every class in bins of equal width, as a table of sums.

    Parameters
    ----------
    n_bins : int, default 15
        Number of bins. (Bins of equal mass depend on all rows at once, so they do not add up.)

    Notes
    -----
    `finish` returns a `BinnedErrors`, with the numbers of ``Confidence(n_bins)`` and ``Classwise(n_bins)`` on all
    rows together. Cost: one pass, O(nk); memory: 4 (k + 1) `n_bins` numbers.

    Examples
    --------
    >>> import polycal as pc
    >>> state = pc.BinnedState().update([0], [[0.75, 0.25]]).update([1], [[0.75, 0.25]])
    >>> state.finish().confidence_error()
    0.25
    """

    family: ClassVar[str] = "binned"

    n_bins: Annotated[int, Whole(low=1)]
    # Of each question and bin: rows, weight, weighted prediction and weight of "yes".
    _table: Annotated[Float64s, Array("float64", "n_questions n_bins 4", low=0)]

    def __init__(self, n_bins: int = 15) -> None:
        super().__init__()
        self.n_bins = check_integer(n_bins, "n_bins", minimum=1)
        self._table = np.zeros((0, n_bins, 4))

    @property
    def _edges(self) -> Float64s:
        return np.linspace(0.0, 1.0, self.n_bins + 1)

    def finish(self) -> BinnedErrors:
        """The reliability curves of all rows."""
        n_classes = self._seen()
        names = self.class_names or tuple(map(str, range(n_classes)))
        questions = [subset_words(np.array([c]), names.__getitem__) for c in range(n_classes)]
        classes = tuple(map(self._curve, self._table[1:], questions))
        return BinnedErrors(self._curve(self._table[0], "is the most likely class right?"), classes)

    def _check_sums(self, n_classes: int) -> None:
        expect(
            len(self._table) == n_classes + 1,
            "table must have an entry for confidence, and one for each class",
        )
        weight, predicted, hits = (self._table[..., i] for i in (1, 2, 3))
        expect(self._is_total(weight.sum(axis=1)), "the weights of all bins must add up to that of all rows")
        most = weight * (1.0 + 1e-6)
        expect((predicted <= most).all() and (hits <= most).all(), "means in bins must be at most 1")

    def _open(self, n_classes: int) -> None:
        self._table = np.zeros((n_classes + 1, self.n_bins, 4))

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        from polycal._compiled.states import add_to_bins  # noqa: PLC0415 - imports numba

        refuse_lists(sample, "BinnedState")
        top, confidence = sample.top_class()
        add_to_bins(confidence[:, None], top != sample.labels, weight, self._edges, self._table[:1])
        add_to_bins(sample.proba, sample.labels, weight, self._edges, self._table[1:])

    def _merge(self, other: "BinnedState") -> None:
        self._table += other._table

    def _curve(self, table: Float64s, question: str) -> ReliabilityCurve:
        used = table[table[:, 1] > 0]
        count, mass, predicted, hits = used.T
        return ReliabilityCurve(
            predicted=predicted / mass,
            frequency=hits / mass,
            mass=mass / mass.sum(),
            count=count.astype(np.int64),
            edges=self._edges,
            question=question,
        )
