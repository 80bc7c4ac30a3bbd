"""Truncated predictions: for each row some classes with their probabilities, and a remainder for all others."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal._validation import check_choice, check_labels, check_weight

Remainder = Literal["unknown", "spread"]


@dataclass(frozen=True, eq=False, repr=False)
class SparseSample:
    """Validated truncated predictions with their labels.

    Attributes
    ----------
    indptr, indices, values : ndarray
        The listed classes and probabilities of row i are at ``indptr[i]:indptr[i + 1]``.
    labels : ndarray of int64, shape (n_samples,)
        Class indices, listed or not.
    sample_weight : ndarray of float64, shape (n_samples,), or None
    n_classes : int
    class_names : tuple of str, or None
    """

    indptr: Ints
    indices: Ints
    values: Float64s
    labels: Ints
    sample_weight: Float64s | None
    n_classes: int
    class_names: tuple[str, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.labels.size)

    @property
    def remainder(self) -> Float64s:
        """Probability of each row that no listed class has."""
        return np.clip(1.0 - self._row_sums(self.values), 0.0, 1.0)

    def subset_range(self, subset: Ints, remainder: Remainder) -> tuple[Float64s, Float64s]:
        """The least and the most that the probability of ``subset`` can be; equal where nothing is unknown.

        "spread" shares the remainder equally among the classes not listed. "unknown" lets it fall in or out of the
        subset, as far as there are classes not listed in it and outside of it.
        """
        member = np.zeros(self.n_classes, dtype=np.bool_)
        member[subset] = True
        inside = member[self.indices]
        listed = self._row_sums(np.where(inside, self.values, 0.0))
        n_listed, n_inside = np.diff(self.indptr), self._row_sums(inside.astype(np.float64))
        free_inside = subset.size - n_inside
        free_outside = self.n_classes - subset.size - (n_listed - n_inside)
        rest = self.remainder
        if remainder == "spread":
            share = free_inside / np.maximum(free_inside + free_outside, 1.0)
            low = high = listed + rest * share
        else:
            low = listed + np.where(free_outside > 0, 0.0, np.where(free_inside > 0, rest, 0.0))
            high = listed + np.where(free_inside > 0, rest, 0.0)
        return np.minimum(low, 1.0), np.minimum(high, 1.0)

    def subset_hits(self, subset: Ints) -> Bools:
        """Whether each label lies in ``subset``."""
        member = np.zeros(self.n_classes, dtype=np.bool_)
        member[subset] = True
        return member[self.labels]

    def _row_sums(self, values: Float64s) -> Float64s:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        return np.diff(sums[self.indptr])


def check_sparse_sample(
    y_true: Any, y_proba: Any, *, sample_weight: Any = None, class_names: Any = None
) -> SparseSample:
    """Validate truncated predictions: a SciPy sparse matrix whose rows sum to at most 1."""
    if not (hasattr(y_proba, "tocsr") and getattr(y_proba, "ndim", 2) == 2):
        raise TypeError(
            f"y_proba must be a SciPy sparse matrix of shape (n, k); got {type(y_proba).__name__}."
        )
    matrix = y_proba.tocsr(copy=True)
    matrix.sum_duplicates()
    n_rows, n_classes = matrix.shape
    values = matrix.data.astype(np.float64)
    names = None if class_names is None else tuple(map(str, class_names))
    if names is not None and len(names) != n_classes:
        raise ValueError(
            f"class_names has {len(names)} names but y_proba has {n_classes} columns; give one per class."
        )
    labels = check_labels(y_true, n_classes, names) if n_rows else np.empty(0, dtype=np.int64)
    if labels.size != n_rows:
        raise ValueError(f"y_true has {labels.size} entries but y_proba has {n_rows} rows; give one per row.")
    weight = None if sample_weight is None or not n_rows else check_weight(sample_weight)
    if weight is not None and weight.size != n_rows:
        raise ValueError(
            f"sample_weight has {weight.size} entries but y_proba has {n_rows} rows; give one per row."
        )
    _check_values(values, matrix.indptr, float(np.finfo(matrix.dtype).eps))
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    return SparseSample(indptr, indices, values, labels, weight, int(n_classes), names)


def check_remainder(remainder: Any) -> Remainder:
    """Validate what is said of the classes not listed."""
    return "spread" if check_choice(remainder, "remainder", ("unknown", "spread")) == "spread" else "unknown"


def _check_values(values: Float64s, indptr: Ints, eps: float) -> None:
    """Refuse what is no probability, and rows that sum to more than 1."""
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    bad = ~((values >= 0) & (values <= 1 + eps**0.5))
    if bad.any():
        place = int(np.argmax(bad))
        raise ValueError(f"y_proba[{rows[place]}] holds {values[place]:.9g}, which is not a probability.")
    sums = np.bincount(rows, weights=values, minlength=indptr.size - 1)
    if sums.size and sums.max() > 1 + eps**0.5:
        row = int(np.argmax(sums))
        raise ValueError(f"y_proba[{row}] sums to {sums[row]:.9g}, more than 1.")
