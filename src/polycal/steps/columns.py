"""Steps that treat every entry, or every column, by itself; and linear maps."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.steps._base import Step
from polycal.storage.rules import Array, Real, expect

# Probabilities below this count as this in a logarithm, as in scikit-learn: exact zeros stay usable.
FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Log(Step):
    """``log(max(x, floor))``."""

    floor: Annotated[float, Real(low=1e-300)] = FLOOR
    family: ClassVar[str] = "log"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.maximum(rows, self.floor)
        return np.log(out, out=out)


@dataclass(frozen=True, eq=False)
class Exp(Step):
    """``exp(x)``."""

    family: ClassVar[str] = "exp"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        return np.exp(rows)


@dataclass(frozen=True, eq=False)
class Sigmoid(Step):
    """``1 / (1 + exp(-x))``."""

    family: ClassVar[str] = "sigmoid"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        # Below -700 exp overflows, and the result is 0 to all digits.
        out = np.exp(-np.maximum(rows, -700.0))
        out += 1.0
        return np.reciprocal(out, out=out)


@dataclass(frozen=True, eq=False)
class Clip(Step):
    """``min(max(x, low), high)``."""

    low: Annotated[float, Real()]
    high: Annotated[float, Real()]
    family: ClassVar[str] = "clip"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        return np.clip(rows, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Polynomial(Step):
    """``c_0 + c_1 x + ... + c_d x^d``, by Horner's rule, with at least one coefficient."""

    coefficients: Annotated[Float64s, Array("float64", "n_coefficients")]
    family: ClassVar[str] = "polynomial"

    def _check(self) -> None:
        super()._check()
        expect(self.coefficients.size, "a polynomial must have a coefficient")

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.full(rows.shape, self.coefficients[-1])
        for coefficient in self.coefficients[-2::-1]:
            out *= rows
            out += coefficient
        return out


@dataclass(frozen=True, eq=False)
class Affine(Step):
    """``x * scale + shift``, column by column; either may hold one number for all columns."""

    scale: Annotated[Float64s, Array("float64", "n_scales")]
    shift: Annotated[Float64s, Array("float64", "n_shifts")]
    family: ClassVar[str] = "affine"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out: Float64s = rows * self.scale
        out += self.shift
        return out


@dataclass(frozen=True, eq=False)
class Linear(Step):
    """``x @ weight + bias``, with ``weight`` of shape (inputs, outputs)."""

    weight: Annotated[Float64s, Array("float64", "n_inputs n_outputs")]
    bias: Annotated[Float64s, Array("float64", "n_outputs")]
    family: ClassVar[str] = "linear"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out: Float64s = rows @ self.weight
        out += self.bias
        return out
