"""Proper scores and accuracy as running sums."""

from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import Sample
from polycal.scores import SCORES, score_sums
from polycal.states._base import State
from polycal.storage.model import Arrays


class ScoreState(State):
    """Accuracy, Brier score and log loss, as running sums.

    Notes
    -----
    `finish` returns what `accuracy`, `brier_score` and `log_loss` give on all rows together. Cost: one pass,
    O(nk); memory: three numbers.

    Examples
    --------
    >>> from polycal.states.scores import ScoreState
    >>> monday = ScoreState().update([0], [[0.5, 0.5]])
    >>> tuesday = ScoreState().update([1], [[0.0, 1.0]])
    >>> monday.merge(tuesday).finish()["brier_score"]
    0.25
    """

    family: ClassVar[str] = "scores"

    def __init__(self) -> None:
        super().__init__()
        self._sums = np.zeros(len(SCORES))

    def finish(self) -> dict[str, float]:
        """The weighted means over all rows."""
        self._seen()
        return {name: float(s / self.total_weight) for name, s in zip(SCORES, self._sums, strict=True)}

    def parameters(self) -> dict[str, Any]:
        """Nothing to choose."""
        return {}

    def arrays(self) -> Arrays:
        """The sums."""
        return {"sums": self._sums}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:  # noqa: ARG003 - it has none
        """A state from what was saved."""
        state = cls()
        state._sums = arrays["sums"]
        return state

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        self._sums += score_sums(sample, weight)

    def _merge(self, other: "ScoreState") -> None:
        self._sums += other._sums
