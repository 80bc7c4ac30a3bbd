"""The smooth calibration error of one question: exact by sorted runs, or bounded in memory by cells."""

from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_real, class_set
from polycal.question import ask_confidence, ask_subset
from polycal.sample import Sample
from polycal.smooth import projected_curve
from polycal.states._base import State
from polycal.states._cells import CellNoise, Cells, QuestionSummary
from polycal.states._runs import Runs
from polycal.storage.model import Arrays


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

    Examples
    --------
    >>> from polycal.states.question import QuestionState
    >>> state = QuestionState([0, 1]).update([2, 2], [[0.2, 0.3, 0.5]] * 2).update([0, 1], [[0.7, 0.2, 0.1]] * 2)
    >>> round(state.finish().value, 6)
    0.22
    """

    family: ClassVar[str] = "question"

    def __init__(self, subset: Any = None, *, resolution: float = 0.0, class_names: Any = None) -> None:
        super().__init__()
        self.resolution = check_real(resolution, "resolution", low=0, high=0.5)
        self._given = subset
        self.class_names = None if class_names is None else tuple(map(str, class_names))
        self._members: Ints | None = None
        n_cells = 0 if self.resolution == 0 else int(np.ceil(1.0 / self.resolution))
        self._cells = Cells.empty(1, n_cells)
        self._runs = Runs(1, np.zeros((4, 0)))

    def finish(self) -> QuestionSummary:
        """The question's error and averages over all rows."""
        self._seen()
        if self.resolution > 0:
            return self._cells.summary(0, self.total_weight)
        predicted, weight, hits, square = self._runs.whole()
        total = self.total_weight
        curve = projected_curve(predicted, (hits - weight * predicted) / total)
        chance = float(np.sqrt(square @ (predicted * (1.0 - predicted)))) / total
        mean, frequency = float(weight @ predicted) / total, float(hits.sum()) / total
        return QuestionSummary(curve.value, 0.0, mean, frequency, chance, curve)

    def noise(self, n_draws: int, seed: int = 0) -> Float64s:
        """Errors that right predictions would have shown (compacted only), with normal residuals."""
        self._compacted()
        return self._cells.noise(0, self.total_weight, n_draws, np.random.default_rng(seed))

    def in_cells(self, most: int) -> CellNoise:
        """The question in at most so many cells (compacted only): its error there, and its noise."""
        self._compacted()
        return self._cells.in_cells(0, self.total_weight, most)

    def parameters(self) -> dict[str, Any]:
        """The question and the resolution."""
        members = self._given if self._members is None else self._members.tolist()
        return {
            "subset": None if members is None else [m if isinstance(m, str) else int(m) for m in members],
            "resolution": self.resolution,
        }

    def arrays(self) -> Arrays:
        """The run, or the cells."""
        return {"run": self._runs.whole(), "cells": self._cells.cells, "totals": self._cells.totals}

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        state = cls(**parameters)
        state._runs = Runs(1, arrays["run"])
        state._cells = Cells(arrays["cells"], arrays["totals"])
        members = parameters["subset"]
        if members is not None and not any(isinstance(member, str) for member in members):
            state._members = np.array(members, dtype=np.int64)
        return state

    def _compacted(self) -> None:
        if self.resolution == 0:
            raise ValueError("noise needs a resolution above 0.")
        self._seen()

    def _open(self, n_classes: int) -> None:
        if self._given is not None:
            self._members = class_set(self._given, n_classes, self.class_names, "subset")

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        question = ask_confidence(sample) if self._members is None else ask_subset(sample, self._members)
        if self.resolution > 0:
            self._cells.add(question.predicted[:, None], ~question.hits, weight)
        else:
            self._runs.add(np.stack([question.predicted, weight, weight * question.hits, weight**2]))

    def _merge(self, other: "QuestionState") -> None:
        self._runs.merge(other._runs)
        self._cells.merge(other._cells)
