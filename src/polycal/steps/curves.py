"""Steps with a function of one number for each column, given by its knots."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.steps._base import Step
from polycal.storage.rules import Array, expect


class Curves(Step):
    """A step with a function for each column: `Interpolate` and `Lookup`."""

    knots: Annotated[Float64s, Array("float64", "n_knots", low=-np.inf)]
    heights: Annotated[Float64s, Array("float64", "n_knots")]
    starts: Annotated[Ints, Array("int64", "n_columns+1", low=0, rises=True)]

    def _check(self) -> None:
        super()._check()
        ends = self.starts[0] == 0 and self.starts[-1] == self.knots.size
        expect(ends, "starts must lead from the first knot to the last")
        # Knots increase, but for those that begin a column.
        increasing = self.knots[1:] >= self.knots[:-1]
        increasing[self.starts[1:-1] - 1] = True
        expect(increasing.all(), "knots must increase")

    def _room(self, rows: Float64s) -> Float64s:
        """Room for the values of these rows, column by column."""
        if self.starts.size - 1 != rows.shape[1]:
            raise ValueError(f"{self.starts.size - 1} functions do not fit {rows.shape[1]} columns.")
        return np.empty(rows.shape[::-1])


@dataclass(frozen=True, eq=False)
class Interpolate(Curves):
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
    family: ClassVar[str] = "interpolate"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = self._room(rows)
        for column, values in enumerate(np.ascontiguousarray(rows.T)):
            own = slice(self.starts[column], self.starts[column + 1])
            out[column] = np.interp(values, self.knots[own], self.heights[own])
        return np.ascontiguousarray(out.T)


@dataclass(frozen=True, eq=False)
class Lookup(Curves):
    """One step function per column: ``heights[j]`` from after ``knots[j]`` to the next knot, inclusive.

    Attributes
    ----------
    knots, heights, starts : ndarray
        As for `Interpolate`; each column's first knot is minus infinity.
    """

    knots: Float64s
    heights: Float64s
    starts: Ints
    family: ClassVar[str] = "lookup"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = self._room(rows)
        for column, values in enumerate(np.ascontiguousarray(rows.T)):
            own = slice(self.starts[column], self.starts[column + 1])
            out[column] = self.heights[own][np.searchsorted(self.knots[own], values) - 1]
        return np.ascontiguousarray(out.T)
