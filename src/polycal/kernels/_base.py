"""What a kernel is: an inner product of predictions, computed in blocks, with a bound."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Floats

_CACHE_BYTES = 1 << 22


class Kernel(ABC):
    """A positive definite function of two predictions, ``ker(v, v') = <phi(v), phi(v')>``.

    Kernels are small frozen dataclasses, so they compare, hash and print by their parameters.

    Attributes
    ----------
    bound : float
        s^2: no value ``ker(v, v)`` on the simplex is larger.
    """

    name: ClassVar[str]
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

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that define the kernel."""


def pack_kernel(kernel: Kernel, parameter: float) -> dict[str, NDArray[Any]]:
    """Name and parameter as arrays, for a kernel defined by one number."""
    return {"kernel": np.array(kernel.name), "kernel_parameter": np.array(float(parameter))}


def cached_rows(block: Floats) -> Iterator[slice]:
    """A few rows at a time, about 4 MiB: several passes over them then read the cache, not the memory."""
    height = max(1, _CACHE_BYTES // max(1, block.shape[1] * block.itemsize))
    return (slice(start, start + height) for start in range(0, block.shape[0], height))
