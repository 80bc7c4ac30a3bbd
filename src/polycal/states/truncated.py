"""The smooth calibration error of one question, from predictions that list only some classes."""

from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_choice, check_real, class_set
from polycal.sparse._gate import REMAINDERS
from polycal.sparse._sample import Remainder
from polycal.sparse.smooth import SmoothInterval
from polycal.states._cells import Cells
from polycal.states._lists import ListState
from polycal.storage.model import Arrays


class TruncatedQuestionState(ListState):
    r"""The smooth calibration error of "is the label in `subset`?", from lists of the most likely classes.

    Parameters
    ----------
    subset : list of class indices
        The classes that count as "yes".
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        What is said of the probability that a list leaves over, as for `polycal.sparse.sparse_sample`.
    resolution : float, default 2**-16
        Width of the cells in which predictions are compacted, as for `QuestionState`.

    See Also
    --------
    polycal.sparse.smooth_calibration_error : The same for lists that fit into memory.

    Notes
    -----
    `update` takes a SciPy sparse matrix of shape (n, k), whose rows sum to at most 1, and never makes it dense. A
    stored 0 is a listed class of probability 0. `finish` returns a `SmoothInterval`.

    See `polycal.sparse.smooth_calibration_error` for what lists tell of a set of classes and what not. Its interval
    is the sharper one, because it looks at all rows at once; here those for references at the middles of the
    intervals, for constant weight functions and for the mean of :math:`|y - u|` are left, all of which are sums, and
    the bound for the cells is added. Cost: O(listed entries); memory: 2 / `resolution` numbers, whatever k.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from polycal.states.truncated import TruncatedQuestionState
    >>> top = csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]])
    >>> summary = TruncatedQuestionState([0, 1]).update([1, 2], top).finish()
    >>> round(summary.low, 3), round(summary.high, 3), round(summary.unknown, 3)
    (0.25, 0.353, 0.075)
    """

    family: ClassVar[str] = "truncated"

    def __init__(
        self, subset: Any, *, remainder: Remainder = "unknown", resolution: float = 2.0**-16
    ) -> None:
        super().__init__()
        self.subset = [int(c) for c in np.unique(np.asarray(subset, dtype=np.int64))]
        check_choice(remainder, "remainder", REMAINDERS)
        self.remainder = remainder
        self.resolution = check_real(resolution, "resolution", low=1e-6, high=0.5)
        self._members: Ints = np.array(self.subset, dtype=np.int64)
        self._cells = Cells.empty(1, int(np.ceil(1.0 / self.resolution)))
        # Sums of weight times: the length of the interval, what leaving its middle changes at most, the least and the
        # negative of the most that the residual can be, and the most that its absolute value can be.
        self._sums = np.zeros(5)

    def finish(self) -> SmoothInterval:
        """The question's error over all rows, as far as it is known."""
        self._seen()
        summary = self._cells.summary(0, self.total_weight)
        unknown, slack, more, less, most = (float(total) for total in self._sums / self.total_weight)
        slack += summary.bound
        low = max(0.0, more, less, summary.value - slack)
        return SmoothInterval(low, max(low, min(most, summary.value + slack)), summary.value, unknown)

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
        low, high = sample.subset_range(self._members)
        hits = sample.subset_hits(self._members)
        middle, length = (low + high) / 2.0, high - low
        self._cells.add(middle[:, None], ~hits, weight)
        change = length / 2.0 * (1.0 + np.abs(hits - middle))
        most = np.maximum(np.abs(hits - low), np.abs(hits - high))
        self._sums += np.stack([length, change, hits - high, low - hits, most]) @ weight

    def _merge(self, other: "TruncatedQuestionState") -> None:
        self._cells.merge(other._cells)
        self._sums += other._sums
