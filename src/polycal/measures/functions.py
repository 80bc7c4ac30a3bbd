"""Functions of one variable: the weight functions that witnesses are made of."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.storage.rules import Array, expect
from polycal.storage.saved import Checked

# Slopes are differences of rounded numbers over such differences.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class LipschitzFunction(Checked):
    """A 1-Lipschitz function into [-1, 1]: linear between knots, constant outside them.

    Attributes
    ----------
    knots, heights : ndarray of shape (n_knots,)
        Increasing arguments and the function's values there.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> phi = pc.witnesses.LipschitzFunction(np.array([0.0, 1.0]), np.array([-0.5, 0.5]))
    >>> phi(np.array([0.0, 0.5, 1.0])).tolist()
    [-0.5, 0.0, 0.5]
    """

    knots: Annotated[Float64s, Array("float64", "n_knots")]
    heights: Annotated[Float64s, Array("float64", "n_knots", low=-1, high=1)]
    role: ClassVar[str] = "function"
    family: ClassVar[str] = "lipschitz"

    def _check(self) -> None:
        super()._check()
        expect(self.knots.size, "a function must have at least one knot")
        steps = np.diff(self.knots)
        expect((steps >= 0).all(), "knots must increase")
        expect((np.abs(np.diff(self.heights)) <= steps + _ROUNDING).all(), "slopes must lie in -1 to 1")

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
class StepFunction(Checked):
    """A function constant on bins; a bin holds its upper edge, and the first bin also its lower one.

    Attributes
    ----------
    knots : ndarray of shape (n_bins - 1,)
        The inner edges, increasing.
    heights : ndarray of shape (n_bins,)
        The values.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> phi = pc.witnesses.StepFunction(np.array([0.5]), np.array([-1.0, 1.0]))
    >>> phi(np.array([0.0, 0.5, 0.6])).tolist()
    [-1.0, -1.0, 1.0]
    """

    knots: Annotated[Float64s, Array("float64", "n_knots")]
    heights: Annotated[Float64s, Array("float64", "n_knots+1", low=-1, high=1)]
    role: ClassVar[str] = "function"
    family: ClassVar[str] = "step"

    def _check(self) -> None:
        super()._check()
        expect((np.diff(self.knots) >= 0).all(), "knots must increase")

    def __call__(self, values: Any) -> Float64s:
        """Evaluate at any array of numbers."""
        return self.heights[np.searchsorted(self.knots, np.asarray(values, dtype=np.float64), side="left")]


ScalarFunction = LipschitzFunction | StepFunction
