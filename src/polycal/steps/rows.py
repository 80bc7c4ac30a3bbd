"""Steps that treat every row as a whole."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import row_sums
from polycal.steps._base import Step
from polycal.storage.rules import Array, Rows, expect


@dataclass(frozen=True, eq=False)
class Softmax(Step):
    """``exp(x) / sum(exp(x))`` along each row."""

    family: ClassVar[str] = "softmax"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out: Float64s = rows - rows.max(axis=1, keepdims=True)
        np.exp(out, out=out)
        out /= row_sums(out)[:, None]
        return out


@dataclass(frozen=True, eq=False)
class Normalise(Step):
    """Rows divided by their sums; a row whose sum is 0 becomes ``fallback``, a probability vector."""

    fallback: Annotated[Float64s, Rows("float64", "n_columns")]
    family: ClassVar[str] = "normalise"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        total = row_sums(rows)
        empty = total <= 0.0
        out: Float64s = rows / np.where(empty, 1.0, total)[:, None]
        out[empty] = self.fallback
        return out


@dataclass(frozen=True, eq=False)
class Others(Step):
    """The sum of the row's other entries: ``1 - x`` for probabilities, with all the digits where x is near 1."""

    family: ClassVar[str] = "others"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        before, after = np.zeros(rows.shape), np.zeros(rows.shape)
        np.cumsum(rows[:, :-1], axis=1, out=before[:, 1:])
        np.cumsum(rows[:, :0:-1], axis=1, out=after[:, -2::-1])
        before += after
        return before


@dataclass(frozen=True, eq=False)
class Project(Step):
    """The nearest point of the simplex in Euclidean distance."""

    family: ClassVar[str] = "project"

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


@dataclass(frozen=True, eq=False)
class Top(Step):
    """1 at the largest entry of each row, the first of equals, and 0 elsewhere."""

    family: ClassVar[str] = "top"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.zeros(rows.shape)
        out[np.arange(rows.shape[0]), rows.argmax(axis=1)] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class Distances(Step):
    """``||x - point||_1`` to each of the points, of shape (n_points, inputs)."""

    points: Annotated[Float64s, Array("float64", "n_points n_inputs")]
    family: ClassVar[str] = "distances"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        from scipy.spatial.distance import cdist  # noqa: PLC0415 - not at `import polycal`

        distances: Float64s = cdist(rows, self.points, "cityblock")
        return distances


@dataclass(frozen=True, eq=False)
class LargestOf(Step):
    """The largest entry of each run of columns.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_runs + 1,)
        Run c is columns ``starts[c]`` to ``starts[c + 1] - 1``, at least one.
    """

    starts: Annotated[Ints, Array("int64", "n_runs+1", low=0, rises=True)]
    family: ClassVar[str] = "largest-of"

    def _check(self) -> None:
        super()._check()
        expect(self.starts[0] == 0, "the first run must start at column 0")

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        if self.starts[-1] != rows.shape[1]:
            raise ValueError(f"runs of {self.starts[-1]} columns do not fit {rows.shape[1]} columns.")
        largest: Float64s = np.maximum.reduceat(rows, self.starts[:-1], axis=1)
        return largest
