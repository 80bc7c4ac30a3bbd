"""Steps that treat every entry, or every column, by itself; and linear maps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.steps._base import Step

# Probabilities below this count as this in a logarithm, as in scikit-learn: exact zeros stay usable.
FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Log(Step):
    """``log(max(x, floor))``."""

    floor: float = FLOOR
    kind: ClassVar[str] = "log"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.maximum(rows, self.floor)
        return np.log(out, out=out)


@dataclass(frozen=True, eq=False)
class Exp(Step):
    """``exp(x)``."""

    kind: ClassVar[str] = "exp"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        return np.exp(rows)


@dataclass(frozen=True, eq=False)
class Sigmoid(Step):
    """``1 / (1 + exp(-x))``."""

    kind: ClassVar[str] = "sigmoid"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        # Below -700 exp overflows, and the result is 0 to all digits.
        out = np.exp(-np.maximum(rows, -700.0))
        out += 1.0
        return np.reciprocal(out, out=out)


@dataclass(frozen=True, eq=False)
class Clip(Step):
    """``min(max(x, low), high)``."""

    low: float
    high: float
    kind: ClassVar[str] = "clip"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        return np.clip(rows, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Polynomial(Step):
    """``c_0 + c_1 x + ... + c_d x^d``, by Horner's rule, with at least one coefficient."""

    coefficients: Float64s
    kind: ClassVar[str] = "polynomial"

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

    scale: Float64s
    shift: Float64s
    kind: ClassVar[str] = "affine"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out: Float64s = rows * self.scale
        out += self.shift
        return out


@dataclass(frozen=True, eq=False)
class Linear(Step):
    """``x @ weight + bias``, with ``weight`` of shape (inputs, outputs)."""

    weight: Float64s
    bias: Float64s
    kind: ClassVar[str] = "linear"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out: Float64s = rows @ self.weight
        out += self.bias
        return out
