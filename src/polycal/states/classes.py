"""The smooth calibration error of every class, in bounded memory."""

from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_real
from polycal.sample import Sample
from polycal.states._base import State
from polycal.states._cells import Cells, QuestionSummary
from polycal.storage.model import Arrays


class ClassesState(State):
    """The smooth calibration error of every class, compacted as in `QuestionState`.

    Parameters
    ----------
    resolution : float, default 1/1024
        Width of the cells.

    Notes
    -----
    `finish` returns one `QuestionSummary` per class, each within its ``bound`` of the exact error on all rows: at
    most half a `resolution` times the mean absolute residual of the class, which is small where there are many
    classes. Cost: one pass, O(nk); memory: 2 k / `resolution` numbers.

    Examples
    --------
    >>> from polycal.states.classes import ClassesState
    >>> state = ClassesState().update([0, 0, 1, 0], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
    >>> [round(summary.value, 3) for summary in state.finish()]
    [0.25, 0.25]
    """

    family: ClassVar[str] = "classes"

    def __init__(self, *, resolution: float = 1.0 / 1024.0) -> None:
        super().__init__()
        self.resolution = check_real(resolution, "resolution", low=1e-6, high=0.5)
        self._cells = Cells.empty(0, self._n_cells)

    @property
    def _n_cells(self) -> int:
        return int(np.ceil(1.0 / self.resolution))

    def finish(self) -> tuple[QuestionSummary, ...]:
        """The error and averages of each class over all rows."""
        n_classes = self._seen()
        return tuple(self._cells.summary(c, self.total_weight) for c in range(n_classes))

    def noise(self, n_draws: int, seed: int = 0) -> Float64s:
        """Errors that right predictions would have shown: (n_classes, n_draws), with independent normal residuals."""
        rng = np.random.default_rng(seed)
        rows = [self._cells.noise(c, self.total_weight, n_draws, rng) for c in range(self._seen())]
        return np.array(rows)

    def parameters(self) -> dict[str, Any]:
        """The resolution."""
        return {"resolution": self.resolution}

    def arrays(self) -> Arrays:
        """The cells."""
        return {"cells": self._cells.cells, "totals": self._cells.totals}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        state = cls(**parameters)
        state._cells = Cells(arrays["cells"], arrays["totals"])
        return state

    def _open(self, n_classes: int) -> None:
        self._cells = Cells.empty(n_classes, self._n_cells)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        self._cells.add(sample.proba, sample.labels, weight)

    def _merge(self, other: "ClassesState") -> None:
        self._cells.merge(other._cells)
