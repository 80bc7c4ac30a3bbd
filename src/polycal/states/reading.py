"""What a question says and what happened, over the rows of a range of predictions."""

from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_real
from polycal.inference.reading import Reading
from polycal.question import ask_confidence, ask_subset
from polycal.sample import Sample
from polycal.states._base import State
from polycal.storage.model import Arrays


class ReadingState(State):
    """What a question says and what happened, over the rows whose prediction lies in a range.

    Parameters
    ----------
    members : list of int or None
        The classes that count as "yes"; None: "is the most likely class right?".
    low, high : float
        The range (low, high] of predictions, chosen on other rows.

    Notes
    -----
    `finish` returns a `Reading`. Cost: O(n); memory: four numbers.

    Examples
    --------
    >>> from polycal.states.reading import ReadingState
    >>> reading = ReadingState([1], 0.5, 1.0).update([0, 1, 1, 0], [0.2, 0.6, 0.8, 0.7]).finish()
    >>> round(reading.predicted, 3), round(reading.observed, 3), reading.share
    (0.7, 0.667, 0.75)
    """

    family: ClassVar[str] = "reading"

    def __init__(self, members: Any, low: float, high: float) -> None:
        super().__init__()
        self.members = None if members is None else np.array(members, dtype=np.int64)
        self.low, self.high = check_real(low, "low", low=-1, high=1), check_real(high, "high", low=-1, high=1)
        self._text = ""
        # Weight, weighted prediction and weighted "yes" inside the range.
        self._sums = np.zeros(3)

    def finish(self) -> Reading:
        """The averages over all rows in the range; NaN if there are none."""
        self._seen()
        weight, predicted, observed = self._sums
        if weight > 0:
            predicted, observed = predicted / weight, observed / weight
        else:
            predicted = observed = np.float64("nan")
        share = float(weight / self.total_weight)
        return Reading(self._text, max(self.low, 0.0), self.high, float(predicted), float(observed), share)

    def parameters(self) -> dict[str, Any]:
        """Question and range."""
        members = None if self.members is None else self.members.tolist()
        return {"members": members, "low": self.low, "high": self.high}

    def arrays(self) -> Arrays:
        """The sums, and the question in words."""
        return {"sums": self._sums, "text": np.array(self._text)}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        state = cls(**parameters)
        state._sums, state._text = arrays["sums"], str(arrays["text"])
        return state

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        question = ask_confidence(sample) if self.members is None else ask_subset(sample, self.members)
        inside = (question.predicted > self.low) & (question.predicted <= self.high)
        w = weight * inside
        self._sums += [w.sum(), w @ question.predicted, w @ question.hits.astype(np.float64)]
        self._text = question.text

    def _merge(self, other: "ReadingState") -> None:
        self._sums += other._sums
        self._text = other._text
