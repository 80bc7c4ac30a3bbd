"""Elementary steps: a calibrator's map written once, as data.

A fitted calibrator is a short program, a tuple of steps applied one after the other to blocks of rows. Evaluation
by NumPy, the saved file, the ONNX graph and the torch module all follow from the same steps.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import row_sums

# Probabilities below this count as this in a logarithm, as in scikit-learn: exact zeros stay usable.
FLOOR = float(np.finfo(np.float64).eps)


class Step:
    """A function of rows: ``(m, a)`` float64 in, ``(m, b)`` float64 out. The input is never changed."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type["Step"]]] = {}

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            Step.kinds[cls.kind] = cls

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        raise NotImplementedError


Program = tuple[Step, ...]


def run(steps: Iterable[Step], rows: Float64s) -> Float64s:
    """Apply the steps in order."""
    for step in steps:
        rows = step(rows)
    return rows


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


@dataclass(frozen=True, eq=False)
class Sum(Step):
    """The sum of what several programs make of the same rows; the empty program is the rows themselves."""

    branches: tuple[Program, ...]
    kind: ClassVar[str] = "sum"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        total = np.array(run(self.branches[0], rows))
        for branch in self.branches[1:]:
            total += run(branch, rows)
        return total


@dataclass(frozen=True, eq=False)
class Softmax(Step):
    """``exp(x) / sum(exp(x))`` along each row."""

    kind: ClassVar[str] = "softmax"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out: Float64s = rows - rows.max(axis=1, keepdims=True)
        np.exp(out, out=out)
        out /= row_sums(out)[:, None]
        return out


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
class Normalise(Step):
    """Rows divided by their sums; a row whose sum is 0 becomes ``fallback``, a probability vector."""

    fallback: Float64s
    kind: ClassVar[str] = "normalise"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        total = row_sums(rows)
        empty = total <= 0.0
        out: Float64s = rows / np.where(empty, 1.0, total)[:, None]
        out[empty] = self.fallback
        return out


@dataclass(frozen=True, eq=False)
class Interpolate(Step):
    """One function per column: linear between its knots, constant outside them.

    Attributes
    ----------
    knots, heights : ndarray of shape (n_knots,)
        The functions' knots, increasing, and their values there; one column after the other.
    starts : ndarray of int64, shape (n_columns + 1,)
        Column c owns knots ``starts[c]`` to ``starts[c + 1] - 1``, at least one.
    """

    knots: Float64s
    heights: Float64s
    starts: Ints
    kind: ClassVar[str] = "interpolate"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.empty((self.starts.size - 1, rows.shape[0]))
        for column, values in enumerate(np.ascontiguousarray(rows.T)):
            own = slice(self.starts[column], self.starts[column + 1])
            out[column] = np.interp(values, self.knots[own], self.heights[own])
        return np.ascontiguousarray(out.T)


@dataclass(frozen=True, eq=False)
class Lookup(Step):
    """One step function per column: ``heights[j]`` from after ``knots[j]`` to the next knot, inclusive.

    Attributes
    ----------
    knots, heights, starts : ndarray
        As for `Interpolate`; each column's first knot is minus infinity.
    """

    knots: Float64s
    heights: Float64s
    starts: Ints
    kind: ClassVar[str] = "lookup"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.empty((self.starts.size - 1, rows.shape[0]))
        for column, values in enumerate(np.ascontiguousarray(rows.T)):
            own = slice(self.starts[column], self.starts[column + 1])
            out[column] = self.heights[own][np.searchsorted(self.knots[own], values) - 1]
        return np.ascontiguousarray(out.T)


@dataclass(frozen=True, eq=False)
class Project(Step):
    """The nearest point of the simplex in Euclidean distance."""

    kind: ClassVar[str] = "project"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        ordered = -np.sort(-rows, axis=1)
        excess = np.cumsum(ordered, axis=1)
        excess -= 1.0
        counts = np.arange(1.0, rows.shape[1] + 1.0)
        # The largest entries share the excess equally, as many as stay positive: a prefix of the order.
        kept = np.count_nonzero(ordered * counts > excess, axis=1)
        shift = excess[np.arange(rows.shape[0]), kept - 1] / kept
        out: Float64s = np.maximum(rows - shift[:, None], 0.0)
        return out
