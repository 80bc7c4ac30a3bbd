"""The trusted arrays: predictions with labels, as every other part of polycal receives them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Floats, Ints

# Rows handled at once: keeps float64 temporaries small whatever n is.
_BLOCK_CELLS = 1 << 20


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of consecutive rows, about 8 MiB of float64 each."""
    step = max(1, _BLOCK_CELLS // max(1, n_columns))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def row_sums(block: Floats) -> Float64s:
    """Row sums accumulated in float64; several times faster than ``sum(axis=1)`` for short rows."""
    sums: Float64s = np.einsum("ij->i", block, dtype=np.float64)
    return sums


def subset_sums(proba: Floats, subset: Ints) -> Float64s:
    """Row sums over the classes of ``subset`` in float64, at most 1 (float32 rows may sum to a little more)."""
    from polycal._compiled import rows as kernels  # noqa: PLC0415 - imports numba

    total: Float64s = kernels.subset_sums(proba, subset)
    return total


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Validated predictions with their labels. Made by the gate (`polycal._validation`) only.

    Attributes
    ----------
    proba : ndarray of shape (n_samples, n_classes)
        Float32 or float64, C-contiguous, rows non-negative and summing to 1.
    labels : ndarray of int64, shape (n_samples,)
        Class indices, 0 to n_classes - 1.
    sample_weight : ndarray of float64, shape (n_samples,), or None
        Non-negative with a positive sum; None means equal weights.
    class_names : tuple of str, or None
        Distinct names, one per class.
    """

    proba: Floats
    labels: Ints
    sample_weight: Float64s | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.proba.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(self.proba.shape[1])

    @property
    def mass(self) -> Float64s:
        """The weight of each row, summing to 1 (an O(n) array, made anew)."""
        if self.sample_weight is None:
            return np.full(self.n_samples, 1.0 / self.n_samples)
        mass: Float64s = self.sample_weight / self.sample_weight.sum()
        return mass

    def name(self, class_index: int) -> str:
        """The class's name, or its index as text."""
        return str(class_index) if self.class_names is None else self.class_names[class_index]

    def take(self, rows: Ints | Bools | slice) -> "Sample":
        """The rows selected, as a sample of their own."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Sample(_taken(self.proba, rows), self.labels[rows], weight, self.class_names)

    def subset_proba(self, subset: Ints) -> Float64s:
        """Predicted probability that the label lies in ``subset``: float64, in [0, 1]."""
        return subset_sums(self.proba, subset)

    def subset_hits(self, subset: Ints) -> Bools:
        """Whether each label lies in ``subset``."""
        member = np.zeros(self.n_classes, dtype=np.bool_)
        member[subset] = True
        return member[self.labels]

    def __repr__(self) -> str:
        weighted = "" if self.sample_weight is None else ", weighted"
        return f"Sample(n_samples={self.n_samples}, n_classes={self.n_classes}, {self.proba.dtype}{weighted})"


def _taken(proba: Floats, rows: Ints | Bools | slice) -> Floats:
    """``proba[rows]``, in half the time where rows are copied."""
    if isinstance(rows, slice):
        return proba[rows]
    places: NDArray[Any] = np.asarray(rows)
    return proba.compress(places, axis=0) if places.dtype == np.bool_ else proba.take(places, axis=0)
