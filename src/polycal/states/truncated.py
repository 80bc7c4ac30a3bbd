"""The smooth calibration error of one question, from predictions that list only some classes."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_real, class_set
from polycal.states._base import State
from polycal.states._cells import Cells
from polycal.states._sparse import Remainder, check_remainder, check_sparse_sample
from polycal.storage.model import Arrays


@dataclass(frozen=True)
class TruncatedSummary:
    """What truncated predictions tell about a question.

    Attributes
    ----------
    value : float
        The smooth calibration error if each unknown share fell half into the set of classes.
    low, high : float
        The error of the predictions before they were truncated lies between these.
    unknown : float
        The mean probability of which it is not known whether it belongs to the set.
    """

    value: float
    low: float
    high: float
    unknown: float


class TruncatedQuestionState(State):
    r"""The smooth calibration error of "is the label in `subset`?", from lists of the most likely classes.

    Parameters
    ----------
    subset : list of class indices
        The classes that count as "yes".
    remainder : {"unknown", "spread"}
        What is said of the probability that a list leaves over: nothing, or that it is shared equally by the
        classes that are not listed.
    resolution : float, default 2**-16
        Width of the cells in which predictions are compacted, as for `QuestionState`.

    Notes
    -----
    `update` takes a SciPy sparse matrix of shape (n, k), whose rows sum to at most 1, and never makes it dense. A
    stored 0 is a listed class of probability 0. `finish` returns a `TruncatedSummary`.

    What a truncated prediction cannot tell: the remainder :math:`\rho` of a row may belong to the set or not, unless
    all classes of one side are listed. The probability of the set is then only known to lie in an interval of middle
    :math:`u` and half-length :math:`\delta = \rho/2`. For every 1-Lipschitz :math:`\varphi` into [-1, 1] and every
    :math:`u'` of the interval, with :math:`r = y - u`,

    .. math:: |(y - u')\,\varphi(u') - r\,\varphi(u)| \le |u' - u|\,|\varphi(u')| + |r|\,|\varphi(u') - \varphi(u)|
              \le \delta\,(1 + |r|),

    so the error lies within the mean of :math:`\delta (1 + |r|)` of that at the middles. That, and the bound for the
    cells, give ``low`` and ``high``. Cost: O(nonzeros); memory: 2 / `resolution` numbers, whatever k.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from polycal.states.truncated import TruncatedQuestionState
    >>> top = csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]])
    >>> summary = TruncatedQuestionState([0, 1]).update([1, 2], top).finish()
    >>> round(summary.low, 3), round(summary.high, 3), round(summary.unknown, 3)
    (0.243, 0.353, 0.075)
    """

    family: ClassVar[str] = "truncated"

    def __init__(
        self, subset: Any, *, remainder: Remainder = "unknown", resolution: float = 2.0**-16
    ) -> None:
        super().__init__()
        self.subset = [int(c) for c in np.unique(np.asarray(subset, dtype=np.int64))]
        self.remainder = check_remainder(remainder)
        self.resolution = check_real(resolution, "resolution", low=1e-6, high=0.5)
        self._members: Ints = np.array(self.subset, dtype=np.int64)
        self._cells = Cells.empty(1, int(np.ceil(1.0 / self.resolution)))
        # Sums of weight times the length of the interval, and times delta (1 + |r|).
        self._sums = np.zeros(2)

    def update(
        self,
        y_true: Any,
        y_proba: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        from_logits: bool = False,
        first_row: int | None = None,
    ) -> Self:
        """Take in a chunk of rows, as a SciPy sparse matrix; otherwise as every state."""
        del first_row
        if from_logits:
            raise ValueError("logits cannot be truncated: a class that is not listed would have logit 0.")
        sample = check_sparse_sample(y_true, y_proba, sample_weight=sample_weight, class_names=class_names)
        self.absorb(sample, np.empty(0, dtype=np.int64))  # type: ignore[arg-type]  # it has what is asked of it
        return self

    def finish(self) -> TruncatedSummary:
        """The question's error over all rows, as far as it is known."""
        self._seen()
        summary = self._cells.summary(0, self.total_weight)
        unknown, slack = (float(total) for total in self._sums / self.total_weight)
        slack += summary.bound
        low, high = max(0.0, summary.value - slack), min(1.0, summary.value + slack)
        return TruncatedSummary(summary.value, low, high, unknown)

    def parameters(self) -> dict[str, Any]:
        """Question, remainder and resolution."""
        return {"subset": self.subset, "remainder": self.remainder, "resolution": self.resolution}

    def arrays(self) -> Arrays:
        """The cells and the sums."""
        return {"cells": self._cells.cells, "totals": self._cells.totals, "sums": self._sums}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        state = cls(**parameters)
        state._cells, state._sums = Cells(arrays["cells"], arrays["totals"]), arrays["sums"]
        return state

    def _open(self, n_classes: int) -> None:
        self._members = class_set(self.subset, n_classes, None, "subset")

    def _add(self, sample: Any, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        low, high = sample.subset_range(self._members, self.remainder)
        hits = sample.subset_hits(self._members)
        middle, length = (low + high) / 2.0, high - low
        self._cells.add(middle[:, None], ~hits, weight)
        self._sums += [weight @ length, weight @ (length / 2.0 * (1.0 + np.abs(hits - middle)))]

    def _merge(self, other: "TruncatedQuestionState") -> None:
        self._cells.merge(other._cells)
        self._sums += other._sums
