"""How alike two predictions are: multinomial, Laplace and Gaussian kernels, and kernels given by a function."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from polycal._typing import Float64s, Floats
from polycal._validation import check_choice, check_function, check_integer, check_positive
from polycal.storage.rules import Kept
from polycal.storage.saved import Saved

_CACHE_BYTES = 1 << 22
# Every degree costs a pass over all pairs.
_LARGEST_DEGREE = 100_000
# Scales beyond these cannot be squared in single precision, and tell no two predictions apart, or all.
_SCALES = (1e-9, 1e9)


class Kernel(Saved, ABC):
    """A positive definite function of two predictions, ``ker(v, v') = <phi(v), phi(v')>``.

    Kernels are small frozen dataclasses, so they compare, hash and print by their parameters.

    Attributes
    ----------
    bound : float
        s^2: no value ``ker(v, v)`` on the simplex is larger.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> kernel = pc.kernels.Gaussian(scale=0.5)
    >>> isinstance(kernel, pc.kernels.Kernel)
    True
    >>> pc.kernel_test(made.labels, made.proba, kernel=kernel).p_value < 0.01
    True
    """

    role: ClassVar[str] = "kernel"
    bound: float

    @abstractmethod
    def block(self, left: Floats, right: Floats) -> Floats:
        """``ker`` of every row of ``left`` (m, k) with every row of ``right`` (n, k): (m, n), in their dtype."""

    @abstractmethod
    def describe(self) -> str:
        """The kernel in words."""

    def resolve(self, points: Floats) -> "Kernel":  # noqa: ARG002 - for kernels that look at the points
        """The kernel with every parameter fixed, given the predictions it will be used on."""
        return self


def cached_rows(block: Floats) -> Iterator[slice]:
    """A few rows at a time, about 4 MiB: several passes over them then read the cache, not the memory."""
    height = max(1, _CACHE_BYTES // max(1, block.shape[1] * block.itemsize))
    return (slice(start, start + height) for start in range(0, block.shape[0], height))


@dataclass(frozen=True)
class Multinomial(Kernel):
    r"""The multinomial kernel :math:`\sum_{i=0}^d \langle v, v'\rangle^i`: all monomials of degree at most d.

    Its unit ball holds every polynomial of degree d whose coefficients' absolute sum is at most 1, and its balls
    of radius :math:`(4\sqrt m)^d` hold the bounded polynomials of :math:`\langle a, v\rangle` for
    :math:`\|a\|_2^2 \le m` [1]_.

    Parameters
    ----------
    degree : int, default 8
        d, at least 0.

    Notes
    -----
    ``bound`` is d + 1, reached at the corners of the simplex. Cost of a block: one matrix product and d
    multiply-adds per entry.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Section "Auditing for the Multinomial Kernel".

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> pc.Multinomial(degree=2).block(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))
    array([[1.75]])
    """

    degree: Annotated[int, Kept()] = 8
    bound: float = field(init=False, repr=False, compare=False)
    family: ClassVar[str] = "multinomial"

    def __post_init__(self) -> None:
        degree = check_integer(self.degree, "degree", minimum=0)
        if degree > _LARGEST_DEGREE:
            raise ValueError(f"degree must be at most {_LARGEST_DEGREE:,}; got {degree:,}.")
        object.__setattr__(self, "bound", degree + 1.0)

    def block(self, left: Floats, right: Floats) -> Floats:
        """The kernel of all pairs of rows, by Horner's rule on their inner products."""
        if self.degree == 0:
            return np.ones((left.shape[0], right.shape[0]), dtype=left.dtype)
        products: Floats = left @ right.T
        if self.degree == 1:
            products += 1
            return products
        from polycal._compiled.kernels import geometric_sum  # noqa: PLC0415 - imports numba

        geometric_sum(products, self.degree)
        return products

    def describe(self) -> str:
        """The kernel in words."""
        return f"multinomial kernel of degree {self.degree}"


Scale = float | Literal["median"]

# The median distance is taken over the pairs of this many rows, evenly spaced.
_MEDIAN_ROWS = 1000


@dataclass(frozen=True)
class Radial(Kernel):
    """A decreasing function of ``||v - v'||_2 / scale``, 1 at distance 0."""

    scale: Annotated[Scale, Kept()] = 1.0
    bound: float = field(default=1.0, init=False, repr=False, compare=False)
    # The multiple of squared distances, in units of the scale, that `_decay` starts from; a power of 2, up to sign.
    _multiple: ClassVar[float]

    def __post_init__(self) -> None:
        if isinstance(self.scale, str):
            check_choice(self.scale, "scale, unless it is a number,", ("median",))
        elif not _SCALES[0] <= check_positive(self.scale, "scale") <= _SCALES[1]:
            raise ValueError(f"scale must lie in {_SCALES[0]:g} to {_SCALES[1]:g}; got {self.scale:g}.")

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
    >>> import polycal as pc
    >>> pc.Laplace(scale=0.5).block(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [0.8, 0.1]])).round(4)
    array([[1.    , 0.3679]])
    """

    family: ClassVar[str] = "laplace"
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
    >>> import polycal as pc
    >>> pc.Gaussian(scale=0.5).block(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [0.8, 0.1]])).round(4)
    array([[1.    , 0.6065]])
    """

    family: ClassVar[str] = "gaussian"
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
    rounding = _tolerance(some.dtype) * max(1.0, float(norms.max()))
    squares = norms[:, None] + norms - 2 * (some @ some.T) - rounding
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


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A kernel given by any function of two sets of predictions.

    Parameters
    ----------
    function : callable
        Takes arrays of shape (m, k) and (n, k) and returns the (m, n) array of kernel values. It must be
        positive definite, which is not checked.
    bound : float
        s^2: no value ``ker(v, v)`` on the simplex may be larger.

    Notes
    -----
    A witness with such a kernel cannot be saved, because code is never saved.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> linear = pc.CallableKernel(lambda left, right: left @ right.T, bound=1.0)
    >>> linear.block(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))
    array([[0.5]])
    """

    function: Callable[[Floats, Floats], Any]
    bound: float

    def __post_init__(self) -> None:
        check_function(self.function, "function", "two arrays")
        check_positive(self.bound, "bound")

    def block(self, left: Floats, right: Floats) -> Floats:
        """The function's values, checked for shape and finiteness."""
        values = np.array(self.function(left, right), dtype=left.dtype)
        if values.shape != (left.shape[0], right.shape[0]) or not np.isfinite(values).all():
            raise ValueError(
                f"function must return finite values of shape {(left.shape[0], right.shape[0])}, one per pair of "
                f"rows; got shape {values.shape}."
            )
        return values

    def describe(self) -> str:
        """The function's name."""
        return f"kernel {getattr(self.function, '__name__', type(self.function).__name__)}"

    def _saved_values(self) -> dict[str, Any]:
        raise TypeError(
            "A kernel given by a function cannot be saved, because code never is; use Multinomial, Laplace or Gaussian."
        )


# A form this small beside the largest it could be is rounding.
_RELATIVE_ZERO = 1e-8


def ball_norms(kernel: Kernel, values: Floats, forms: Float64s) -> Float64s:
    """lambda, the norm of ``sum_i values_i ker(v_i, .)``, per column: the root of the form, or 0 for rounding."""
    largest = np.abs(values).sum(axis=0, dtype=np.float64) ** 2 * kernel.bound
    norms: Float64s = np.sqrt(np.where(forms > _RELATIVE_ZERO * largest, forms, 0.0))
    return norms


def ball_scale(kernel: Kernel, norms: Float64s) -> Float64s:
    """1 / (lambda s), which brings the sum into [-1, 1]; 0 where lambda is 0."""
    scale: Float64s = np.zeros_like(norms)
    np.divide(kernel.bound**-0.5, norms, out=scale, where=norms > 0)
    return scale
