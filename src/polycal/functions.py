"""Functions of one number into [-1, 1], from which question witnesses are built."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Float64s


@dataclass(frozen=True, eq=False)
class LipschitzFunction:
    """A 1-Lipschitz function into [-1, 1]: linear between knots, constant outside them.

    Attributes
    ----------
    knots, heights : ndarray of shape (n_knots,)
        Increasing arguments and the function's values there.
    """

    knots: Float64s
    heights: Float64s

    def __call__(self, values: Any) -> Float64s:
        """Evaluate at any array of numbers."""
        return np.interp(np.asarray(values, dtype=np.float64), self.knots, self.heights)

    def simplified(self) -> "LipschitzFunction":
        """The same function without the knots on straight pieces: what is worth keeping or saving."""
        knots, first = np.unique(self.knots, return_index=True)
        heights = self.heights[first]
        slopes = np.diff(heights) / np.diff(knots)
        turns = np.flatnonzero(np.abs(np.diff(slopes)) > 1e-9) + 1
        keep = np.unique(np.concatenate([[0], turns, [knots.size - 1]]))
        return LipschitzFunction(knots[keep], heights[keep])


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function constant on bins; a bin holds its upper edge, and the first bin also its lower one.

    Attributes
    ----------
    knots : ndarray of shape (n_bins - 1,)
        The inner edges, increasing.
    heights : ndarray of shape (n_bins,)
        The values.
    """

    knots: Float64s
    heights: Float64s

    def __call__(self, values: Any) -> Float64s:
        """Evaluate at any array of numbers."""
        return self.heights[np.searchsorted(self.knots, np.asarray(values, dtype=np.float64), side="left")]


ScalarFunction = LipschitzFunction | StepFunction
