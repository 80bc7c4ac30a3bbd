"""Binned errors of confidence and of every class, as one table of sums."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer
from polycal.binned import Norm, ReliabilityCurve
from polycal.question import subset_words, top_class
from polycal.sample import Sample
from polycal.states._base import State
from polycal.storage.model import Arrays


@dataclass(frozen=True, eq=False)
class BinnedErrors:
    """The reliability of confidence and of every class, in equal-width bins.

    Attributes
    ----------
    confidence : ReliabilityCurve
        Of the question "is the most likely class right?".
    classes : tuple of ReliabilityCurve
        Of each class's own probability.
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
    >>> from polycal.states.binned import BinnedState
    >>> state = BinnedState().update([0], [[0.75, 0.25]]).update([1], [[0.75, 0.25]])
    >>> state.finish().confidence_error()
    0.25
    """

    family: ClassVar[str] = "binned"

    def __init__(self, n_bins: int = 15) -> None:
        super().__init__()
        self.n_bins = check_integer(n_bins, "n_bins", minimum=1)
        self._edges = np.linspace(0.0, 1.0, n_bins + 1)
        self._table = np.zeros((0, n_bins, 4))

    def finish(self) -> BinnedErrors:
        """The reliability curves of all rows."""
        n_classes = self._seen()
        names = self.class_names or tuple(map(str, range(n_classes)))
        questions = [subset_words(np.array([c]), names.__getitem__) for c in range(n_classes)]
        classes = tuple(map(self._curve, self._table[1:], questions))
        return BinnedErrors(self._curve(self._table[0], "is the most likely class right?"), classes)

    def parameters(self) -> dict[str, Any]:
        """The number of bins."""
        return {"n_bins": self.n_bins}

    def arrays(self) -> Arrays:
        """The table."""
        return {"table": self._table}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        state = cls(**parameters)
        state._table = arrays["table"]
        return state

    def _open(self, n_classes: int) -> None:
        self._table = np.zeros((n_classes + 1, self.n_bins, 4))

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        from polycal._compiled.states import add_to_bins  # noqa: PLC0415 - imports numba

        top, confidence = top_class(sample)
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
