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
    # The multiple of squared distances, in units of the scale, that `_decay` starts from; a power of 2, up to sign.
    _multiple: ClassVar[float]

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
        k, c = left.shape[1], self._multiple
        # (-2 c u, c (|u|^2 - t), 1) times (v, 1, c |v|^2) is c (|u - v|^2 - t): one product instead of several passes.
        rows = _with_room(left, self.scale / (-2 * c))
        rows[:, k] = _square_norms(rows[:, :k]) / (4 * c) - c * _tolerance(rows.dtype) / self.scale**2
        rows[:, k + 1] = 1
        columns = _with_room(right, self.scale)
        columns[:, k] = 1
        columns[:, k + 1] = c * _square_norms(columns[:, :k])
        block: Floats = rows @ columns.T
        for few in cached_rows(block):
            self._decay(block[few])
        return block

    @staticmethod
    @abstractmethod
    def _decay(multiples: Floats) -> None:
        """Turn multiples of squared distances, some of the wrong sign by rounding, into kernel values in place."""

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
    _multiple: ClassVar[float] = 1.0

    @staticmethod
    def _decay(multiples: Floats) -> None:
        np.maximum(multiples, 0, out=multiples)
        np.sqrt(multiples, out=multiples)
        np.negative(multiples, out=multiples)
        np.exp(multiples, out=multiples)

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
    _multiple: ClassVar[float] = -0.5

    @staticmethod
    def _decay(multiples: Floats) -> None:
        np.minimum(multiples, 0, out=multiples)
        np.exp(multiples, out=multiples)

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


def _with_room(points: Floats, unit: float) -> Floats:
    """The points in this unit, with room for two more columns."""
    n, k = points.shape
    wider: Floats = np.empty((n, k + 2), dtype=np.promote_types(points.dtype, np.float32))
    np.divide(points, unit, out=wider[:, :k])
    return wider


def _square_norms(points: Floats) -> Floats:
    norms: Floats = np.vecdot(points, points)
    return norms


def _tolerance(dtype: np.dtype[Any]) -> float:
    """Taken off every squared distance, so that rounding does not set equal predictions apart."""
    return 8.0 * float(np.finfo(dtype).eps)
