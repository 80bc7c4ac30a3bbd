"""A kernel given by any function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Floats
from polycal._validation import check_real
from polycal.kernels._base import Kernel


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
    >>> from polycal.kernels.custom import CallableKernel
    >>> linear = CallableKernel(lambda left, right: left @ right.T, bound=1.0)
    >>> linear.block(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))
    array([[0.5]])
    """

    function: Callable[[Floats, Floats], Any]
    bound: float
    name: ClassVar[str] = "callable"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable with two arrays; got {self.function!r}.")
        if check_real(self.bound, "bound", low=0) == 0:
            raise ValueError("bound must be positive; got 0.")

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

    def state(self) -> dict[str, NDArray[Any]]:
        """Refuse: code is never saved."""
        raise TypeError(
            "A kernel given by a function cannot be saved, because code never is; use Multinomial, Laplace or Gaussian."
        )
