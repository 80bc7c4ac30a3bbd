"""Lists as points for kernels, and their residuals as far as lists tell them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.kernels.kernels import Kernel
from polycal.sample import row_blocks
from polycal.sparse._sample import SparseSample
from polycal.storage.rules import Array, Rows, Whole, expect
from polycal.storage.saved import Checked


@dataclass(frozen=True, eq=False)
class Landmarks(Checked):
    """Lists to which others are compared, kept in the columns of the classes that any of them lists.

    Attributes
    ----------
    columns : ndarray of int64
        These classes, increasing.
    points : ndarray of shape (n_landmarks, n_columns + 1)
        The listed probabilities, and a last column of zeros.
    n_classes : int
        Number of all classes.

    Notes
    -----
    Kernels here look at inner products only. Those with a landmark need no other class than the landmark's; the
    norm of a list is kept by putting that of all its other classes into one more column.
    """

    columns: Annotated[Ints, Array("int64", "n_columns", low=0, below="n_classes", rises=True)]
    points: Annotated[Floats, Rows("float64", "n_landmarks n_columns+1", listed=True)]
    n_classes: Annotated[int, Whole(low=2)]
    role: ClassVar[str] = "part"
    family: ClassVar[str] = "lists"

    def _check(self) -> None:
        super()._check()
        expect(self.points.size and not self.points[:, -1].any(), "the last column must be of zeros")

    @classmethod
    def of(cls, indptr: Ints, indices: Ints, values: Float64s, n_classes: int) -> "Landmarks":
        """From lists, each kept once."""
        columns = np.unique(indices)
        points = np.zeros((indptr.size - 1, columns.size + 1))
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        points[rows, np.searchsorted(columns, indices)] = values
        return cls(columns, np.unique(points, axis=0), n_classes)

    @property
    def size(self) -> int:
        """How many landmarks there are."""
        return int(self.points.shape[0])

    def blocks(self, sample: SparseSample) -> list[slice]:
        """Rows that can be compared at once."""
        return list(row_blocks(sample.n_samples, max(self.points.shape)))

    def likeness(self, kernel: Kernel, sample: SparseSample) -> Float64s:
        """The kernel of each row with each landmark: a few rows at a time, see `blocks`."""
        place = np.searchsorted(self.columns, sample.indices)
        found = self.columns[np.minimum(place, self.columns.size - 1)] == sample.indices
        points = np.zeros((sample.n_samples, self.points.shape[1]))
        points[sample.rows[found], place[found]] = sample.values[found]
        points[:, -1] = np.sqrt(sample.row_sums(np.where(found, 0.0, sample.values**2)))
        return self._block(kernel, points)

    def dense_likeness(self, kernel: Kernel, proba: Floats) -> Float64s:
        """The same for full predictions."""
        other: Bools = np.ones(self.n_classes, dtype=np.bool_)
        other[self.columns] = False
        norms = np.sqrt(np.einsum("ij,ij->i", proba[:, other], proba[:, other], dtype=np.float64))
        return self._block(kernel, np.column_stack([proba[:, self.columns], norms]).astype(np.float64))

    def _block(self, kernel: Kernel, points: Float64s) -> Float64s:
        block: Float64s = kernel.block(points, self.points).astype(np.float64)
        return block


def known_residual(sample: SparseSample, weight: Float64s) -> tuple[Ints, Ints, Float64s]:
    """The residuals that lists tell, as CSR arrays of k + 1 columns, times the weight of the row.

    Column j holds ``y_j - v_j`` where j is listed. The last one holds the sum over all classes that are not listed,
    ``[label not listed] - rest``; rows without a rest know those classes too, and have the label among them in its
    own column.
    """
    missing = sample.label_entry < 0
    extra = np.flatnonzero(missing | (sample.rest > 0))
    whole = sample.rest[extra] == 0
    columns = np.where(whole, sample.labels[extra], sample.n_classes)
    places = sample.indptr[extra + 1]
    indices = np.insert(sample.indices, places, columns)
    values = -sample.values
    listed = sample.label_entry[~missing]
    values[listed] += 1.0
    values = np.insert(values, places, missing[extra] - sample.rest[extra])
    added = np.zeros(sample.n_samples + 1, dtype=np.int64)
    added[extra + 1] = 1
    indptr = sample.indptr + np.cumsum(added)
    values *= np.repeat(weight, np.diff(indptr))
    return indptr, indices, values
