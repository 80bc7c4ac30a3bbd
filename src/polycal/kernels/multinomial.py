"""The multinomial kernel: all monomials up to a degree."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Floats
from polycal._validation import check_integer
from polycal.kernels._base import Kernel, pack_kernel


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
    >>> from polycal.kernels.multinomial import Multinomial
    >>> Multinomial(degree=2).block(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))
    array([[1.75]])
    """

    degree: int = 8
    bound: float = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "multinomial"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", check_integer(self.degree, "degree", minimum=0) + 1.0)

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

    def state(self) -> dict[str, NDArray[Any]]:
        """The degree."""
        return pack_kernel(self, self.degree)
