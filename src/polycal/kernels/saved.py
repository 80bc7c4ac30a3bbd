"""Kernels from the arrays that define them."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from polycal.kernels._base import Kernel
from polycal.kernels.multinomial import Multinomial
from polycal.kernels.radial import Gaussian, Laplace

_FAMILIES: dict[str, Callable[[float], Kernel]] = {
    Multinomial.name: lambda degree: Multinomial(int(degree)),
    Laplace.name: Laplace,
    Gaussian.name: Gaussian,
}


def unpack_kernel(state: dict[str, NDArray[Any]]) -> Kernel:
    """The inverse of a kernel's `state`."""
    name = str(state["kernel"])
    if name not in _FAMILIES:
        raise ValueError(f"kernel is {name!r}, which is not one of {', '.join(map(repr, _FAMILIES))}.")
    return _FAMILIES[name](float(state["kernel_parameter"]))
