"""Steps with a function of one number for each column, given by its knots."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.steps._base import Step


@dataclass(frozen=True, eq=False)
class Interpolate(Step):
    """One function per column: linear between its knots, constant outside them.

    Attributes
    ----------
    knots, heights : ndarray of shape (n_knots,)
        The functions' knots, increasing, and their values there; one column after the other.
    starts : ndarray of int64, shape (n_columns + 1,)
        Column c owns knots ``starts[c]`` to ``starts[c + 1] - 1``, at least one.
    """

    knots: Float64s
    heights: Float64s
    starts: Ints
    kind: ClassVar[str] = "interpolate"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.empty((self.starts.size - 1, rows.shape[0]))
        for column, values in enumerate(np.ascontiguousarray(rows.T)):
            own = slice(self.starts[column], self.starts[column + 1])
            out[column] = np.interp(values, self.knots[own], self.heights[own])
        return np.ascontiguousarray(out.T)


@dataclass(frozen=True, eq=False)
class Lookup(Step):
    """One step function per column: ``heights[j]`` from after ``knots[j]`` to the next knot, inclusive.

    Attributes
    ----------
    knots, heights, starts : ndarray
        As for `Interpolate`; each column's first knot is minus infinity.
    """

    knots: Float64s
    heights: Float64s
    starts: Ints
    kind: ClassVar[str] = "lookup"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.empty((self.starts.size - 1, rows.shape[0]))
        for column, values in enumerate(np.ascontiguousarray(rows.T)):
            own = slice(self.starts[column], self.starts[column + 1])
            out[column] = self.heights[own][np.searchsorted(self.knots[own], values) - 1]
        return np.ascontiguousarray(out.T)
