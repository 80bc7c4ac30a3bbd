"""What a search sees of a sample: its distinct predictions, each with its total residual."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Floats, Ints
from polycal.sample import Sample, row_blocks, row_sums

# A search looks at no more than this; what it finds is then valued on the whole sample.
_MAX_POINTS = 1 << 15
_MAX_CELLS = 1 << 22
# Residuals are rounded to this part of their typical size.
_GRID = 2.0**-40


@dataclass(frozen=True, eq=False)
class Points:
    """The distinct predictions of a sample and their total residuals, in an order of their own.

    Weights depend on the prediction only, so nothing else of a sample matters to them. Classes are ordered by
    how they are used, rows by a hash of their content: samples that differ only in the order of rows or
    classes, or in how often a row is written down, have the same points, and so the same search.

    Attributes
    ----------
    proba : ndarray of shape (n_points, n_classes)
        The distinct predictions, columns in the order `classes`.
    residual : ndarray of shape (n_points, n_classes)
        The sum of mass * (y - v) over the rows with that prediction.
    classes : ndarray of int64, shape (n_classes,)
        The class of each column.
    """

    proba: Float64s
    residual: Float64s
    classes: Ints

    @property
    def n_points(self) -> int:
        """Number of distinct predictions."""
        return int(self.proba.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(self.proba.shape[1])

    def take(self, rows: NDArray[np.bool_]) -> "Points":
        """Some of the points."""
        return Points(self.proba[rows], self.residual[rows], self.classes)

    def by_class(self, columns: Float64s) -> Float64s:
        """Columns put back into the sample's order of classes."""
        out = np.empty_like(columns)
        out[..., self.classes] = columns
        return out

    def by_class_square(self, rows: Float64s) -> Float64s:
        """A matrix with a row and a column for each class put back into the sample's order."""
        out = np.empty_like(rows)
        out[self.classes] = self.by_class(rows)
        return out


def distinct_points(sample: Sample) -> Points:
    """The points of a sample; of a large one, a part that its content picks at random."""
    mass = sample.mass
    classes = _class_order(sample, mass)
    rows = np.flatnonzero(mass > 0)
    keys = _row_keys(sample.proba, rows, classes)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[0]]))
    limit = min(_MAX_POINTS, max(1, _MAX_CELLS // sample.n_classes))
    if starts.size > limit:
        order, starts = order[: starts[limit]], starts[:limit]
    rows = rows[order]
    group = np.repeat(np.arange(starts.size), np.diff(starts, append=rows.size))
    proba = sample.proba[rows[starts]][:, classes].astype(np.float64)
    residual = -proba * np.bincount(group, weights=mass[rows])[:, None]
    np.add.at(residual, (group, np.argsort(classes)[sample.labels[rows]]), mass[rows])
    # Searches take for granted that predictions sum to 1; those in single precision nearly do.
    proba /= row_sums(proba)[:, None]
    # On a grid, sums do not depend on their order, nor on how a weight is split over rows.
    grid = _GRID / starts.size
    return Points(proba, np.rint(residual / grid) * grid, classes)


def _class_order(sample: Sample, mass: Float64s) -> Ints:
    """Classes by mean prediction, then frequency, then mean square; ties by position."""
    mean, square = np.zeros((2, sample.n_classes))
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        block = sample.proba[rows].astype(np.float64)
        mean += mass[rows] @ block
        square += mass[rows] @ np.square(block, out=block)
    frequency = np.bincount(sample.labels, weights=mass, minlength=sample.n_classes)
    return np.lexsort([np.round(key, 12) for key in (square, frequency, mean)])


def _row_keys(proba: Floats, rows: Ints, classes: Ints) -> NDArray[np.uint64]:
    """A 64-bit hash of each row: whole-number arithmetic, so equal rows have equal keys wherever they stand."""
    odd = np.random.default_rng(0).integers(0, 1 << 63, classes.size, dtype=np.uint64) * 2 + 1
    keys = np.empty(rows.size, dtype=np.uint64)
    for block in row_blocks(rows.size, classes.size):
        # Adding 0.0 turns -0.0 into 0.0.
        bits = (proba[rows[block]][:, classes].astype(np.float64) + 0.0).view(np.uint64)
        bits ^= bits >> np.uint64(32)
        bits *= odd
        bits ^= bits >> np.uint64(29)
        bits *= np.uint64(0xBF58476D1CE4E5B9)
        bits ^= bits >> np.uint64(32)
        keys[block] = bits.sum(axis=1, dtype=np.uint64)
    return keys
