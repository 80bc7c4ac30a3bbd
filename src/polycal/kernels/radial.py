"""Kernels of the Euclidean distance: nearby predictions count as alike."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Floats
from polycal._validation import check_real
from polycal.kernels._base import Kernel, cached_rows, pack_kernel

Scale = float | Literal["median"]

# The median distance is taken over the pairs of this many rows, evenly spaced.
_MEDIAN_ROWS = 1000


@dataclass(frozen=True)
class Radial(Kernel):
    """A decreasing function of ``||v - v'||_2 / scale``, 1 at distance 0."""

    scale: Scale = 1.0
    bound: float = field(default=1.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.scale, str):
            if self.scale != "median":
                raise ValueError(f"scale must be a positive number or 'median'; got {self.scale!r}.")
        elif check_real(self.scale, "scale", low=0) == 0:
            raise ValueError("scale must be positive; got 0.")

    def resolve(self, points: Floats) -> "Radial":
        """The kernel with its scale fixed: "median" becomes the median distance of these predictions."""
        return replace(self, scale=median_distance(points)) if self.scale == "median" else self

    def block(self, left: Floats, right: Floats) -> Floats:
        """The kernel of all pairs of rows, from their inner products."""
        if self.scale == "median":
            raise ValueError("scale is 'median': call resolve(points) first.")
        left, right = left / self.scale, right / self.scale
        norms = _square_norms(right)
        squares = _square_norms(left) - _tolerance(left.dtype) / self.scale**2
        block: Floats = (-2 * left) @ right.T
        for rows in cached_rows(block):
            part = block[rows]
            part += squares[rows, None]
            part += norms
            np.maximum(part, 0, out=part)
            self._decay(part)
        return block

    @staticmethod
    @abstractmethod
    def _decay(squares: Floats) -> None:
        """Turn squared distances, in units of the scale, into kernel values in place."""

    def state(self) -> dict[str, NDArray[Any]]:
        """The scale."""
        return pack_kernel(self, float(self.scale))


@dataclass(frozen=True)
class Laplace(Radial):
    r"""The Laplace kernel :math:`\exp(-\|v - v'\|_2 / \text{scale})`, with the Euclidean norm.

    The kernel used for calibration tests in the literature [1]_.

    Parameters
    ----------
    scale : float or "median", default 1.0
        The distance at which likeness falls to 1/e; "median": the median distance between predictions.

    Notes
    -----
    ``bound`` is 1. Distances come from inner products, so that in float32 those below about 1e-3 read as 0.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019), "Calibration tests in multi-class classification".

    Examples
    --------
    >>> import numpy as np
    >>> from polycal.kernels.radial import Laplace
    >>> Laplace(scale=0.5).block(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [0.8, 0.1]])).round(4)
    array([[1.    , 0.3679]])
    """

    name: ClassVar[str] = "laplace"

    @staticmethod
    def _decay(squares: Floats) -> None:
        np.sqrt(squares, out=squares)
        np.negative(squares, out=squares)
        np.exp(squares, out=squares)

    def describe(self) -> str:
        """The kernel in words."""
        return f"Laplace kernel of scale {self.scale:.3g}"


@dataclass(frozen=True)
class Gaussian(Radial):
    r"""The Gaussian kernel :math:`\exp(-\|v - v'\|_2^2 / (2\,\text{scale}^2))`.

    Parameters
    ----------
    scale : float or "median", default 1.0
        The standard deviation of the bell; "median": the median distance between predictions.

    Notes
    -----
    ``bound`` is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from polycal.kernels.radial import Gaussian
    >>> Gaussian(scale=0.5).block(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [0.8, 0.1]])).round(4)
    array([[1.    , 0.6065]])
    """

    name: ClassVar[str] = "gaussian"

    @staticmethod
    def _decay(squares: Floats) -> None:
        squares *= -0.5
        np.exp(squares, out=squares)

    def describe(self) -> str:
        """The kernel in words."""
        return f"Gaussian kernel of scale {self.scale:.3g}"


def median_distance(points: Floats) -> float:
    """The median distance between distinct rows; 1 when all rows are equal."""
    n = points.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, _MEDIAN_ROWS)).astype(np.int64))
    some = points[rows].astype(np.float64)
    norms = _square_norms(some)
    squares = norms[:, None] + norms - 2 * (some @ some.T) - _tolerance(some.dtype)
    upper: Float64s = squares[np.triu_indices(rows.size, 1)]
    positive = upper[upper > 0]
    return float(np.sqrt(np.median(positive))) if positive.size else 1.0


def _square_norms(points: Floats) -> Floats:
    norms: Floats = np.einsum("ij,ij->i", points, points)
    return norms


def _tolerance(dtype: np.dtype[Any]) -> float:
    """Taken off every squared distance, so that rounding does not set equal predictions apart."""
    return 8.0 * float(np.finfo(dtype).eps)
