"""Steps that treat every row as a whole."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import row_sums
from polycal.steps._base import Step


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


@dataclass(frozen=True, eq=False)
class Top(Step):
    """1 at the largest entry of each row, the first of equals, and 0 elsewhere."""

    kind: ClassVar[str] = "top"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        out = np.zeros(rows.shape)
        out[np.arange(rows.shape[0]), rows.argmax(axis=1)] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class Distances(Step):
    """``||x - point||_1`` to each of the points, of shape (n_points, inputs)."""

    points: Float64s
    kind: ClassVar[str] = "distances"

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

    starts: Ints
    kind: ClassVar[str] = "largest-of"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        largest: Float64s = np.maximum.reduceat(rows, self.starts[:-1], axis=1)
        return largest
