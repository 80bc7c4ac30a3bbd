"""Parts of witnesses as elementary steps."""

from collections.abc import Sequence

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.functions import LipschitzFunction, ScalarFunction, StepFunction
from polycal.kernels._base import Kernel
from polycal.kernels.multinomial import Multinomial
from polycal.kernels.radial import Gaussian, Laplace
from polycal.steps import (
    Affine,
    Exp,
    Interpolate,
    Linear,
    Log,
    Lookup,
    Polynomial,
    Program,
    Sum,
    gaussian_exponents,
)

# What a column has in the sum of two kinds of functions where its own function is of the other kind.
_ZERO = LipschitzFunction(np.zeros(1), np.zeros(1))
_NO_STEPS = StepFunction(np.empty(0), np.zeros(1))
# No distance between predictions exceeds the square root of 2.
_LARGEST = 3.0


def linear(weight: Float64s) -> Linear:
    """``x @ weight``."""
    return Linear(weight, np.zeros(weight.shape[1]))


def scaled(scale: float, shift: float = 0.0) -> Affine:
    """``scale * x + shift``."""
    return Affine(np.array([scale]), np.array([shift]))


def function_steps(functions: Sequence[ScalarFunction]) -> Program:
    """One function for each column."""
    functions = [_constant(f) if f.heights.size == 1 else f for f in functions]
    smooth = [f.simplified() if isinstance(f, LipschitzFunction) else _ZERO for f in functions]
    if not any(isinstance(f, StepFunction) for f in functions):
        return (_interpolate(smooth),)
    stepped = [f if isinstance(f, StepFunction) else _NO_STEPS for f in functions]
    if all(isinstance(f, StepFunction) for f in functions):
        return (_look_up(stepped),)
    return (Sum(((_interpolate(smooth),), (_look_up(stepped),))),)


def kernel_steps(kernel: Kernel, points: Floats) -> Program | None:
    """From a prediction to its kernel with each of the points; None for kernels that are code."""
    places: Float64s = points.astype(np.float64)
    match kernel:
        case Multinomial():
            return linear(places.T), Polynomial(np.ones(kernel.degree + 1))
        case Gaussian():
            return *gaussian_exponents(places, float(kernel.scale), _LARGEST), Exp()
        case Laplace():
            root = scaled(-2.0), Log(), scaled(0.5), Exp()
            return *gaussian_exponents(places, float(kernel.scale), _LARGEST), *root, scaled(-1.0), Exp()
        case _:
            return None


def _interpolate(functions: Sequence[LipschitzFunction]) -> Interpolate:
    return Interpolate(
        np.concatenate([f.knots for f in functions]),
        np.concatenate([f.heights for f in functions]),
        _starts(functions),
    )


def _look_up(functions: Sequence[StepFunction]) -> Lookup:
    return Lookup(
        np.concatenate([np.append(-np.inf, f.knots) for f in functions]),
        np.concatenate([f.heights for f in functions]),
        _starts(functions),
    )


def _starts(functions: Sequence[ScalarFunction]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where each function's heights begin, and the end of the last."""
    return np.concatenate([[0], np.cumsum([f.heights.size for f in functions])])


def _constant(function: ScalarFunction) -> LipschitzFunction:
    return LipschitzFunction(np.zeros(1), function.heights)
