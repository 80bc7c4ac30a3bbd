"""The element of a kernel's unit ball that correlates most with given values."""

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.kernels._base import Kernel

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
