"""The trusted arrays of truncated predictions: some classes of each row, and a remainder for all others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from polycal._typing import Bools, Float64s, Ints

Remainder = Literal["unknown", "spread", "anywhere", "class"]
# The name of the class that stands for all classes which a row does not list.
NOT_LISTED = "(not listed)"


def sums_at(places: Ints, values: Float64s, size: int) -> Float64s:
    """The sum of the values at each of the places 0 to size - 1."""
    return np.bincount(places, weights=values, minlength=size).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class SparseSample:
    """Validated lists of classes with their labels. Made by `sparse_sample`, `open_lists` and states only.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_samples + 1,)
        Row i lists the classes ``indices[indptr[i]:indptr[i + 1]]``.
    indices : ndarray of int64
        Listed classes, increasing in each row.
    values : ndarray of float64
        Their probabilities.
    rest : ndarray of float64, shape (n_samples,)
        What the listed probabilities leave over; 0 if all is known.
    labels : ndarray of int64, shape (n_samples,)
        Class indices, listed or not.
    n_classes : int
        Number of classes, k.
    remainder : {"unknown", "spread", "anywhere", "class"}
        What is said of the rest; see `sparse_sample`. With "class" there is none, and one class more.
    sample_weight : ndarray of float64, shape (n_samples,), or None
        Weights of the rows; None means equal.
    class_names : tuple of str, or None
        Distinct names, one per class.
    """

    indptr: Ints
    indices: Ints
    values: Float64s
    rest: Float64s
    labels: Ints
    n_classes: int
    remainder: Remainder = "unknown"
    sample_weight: Float64s | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.labels.size)

    @property
    def mass(self) -> Float64s:
        """The weight of each row, summing to 1."""
        weight = np.ones(self.n_samples) if self.sample_weight is None else self.sample_weight
        mass: Float64s = weight / weight.sum()
        return mass

    @property
    def proba(self) -> Any:
        """The lists as a SciPy CSR array of shape (n_samples, n_classes), as other functions take them."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

        return csr_array((self.values, self.indices, self.indptr), shape=(self.n_samples, self.n_classes))

    @property
    def n_listed(self) -> Ints:
        """How many classes each row lists."""
        return np.diff(self.indptr)

    @property
    def rows(self) -> Ints:
        """The row of each listed class."""
        return np.repeat(np.arange(self.n_samples), self.n_listed)

    @property
    def share(self) -> Float64s:
        """What each class that is not listed gets if the rest is shared equally."""
        share: Float64s = self.rest / np.maximum(self.n_classes - self.n_listed, 1)
        return share

    @cached_property
    def label_entry(self) -> Ints:
        """Where the label stands among the listed classes; -1 if it is not listed."""
        entry = np.full(self.n_samples, -1, dtype=np.int64)
        found = np.flatnonzero(self.indices == np.repeat(self.labels, self.n_listed))
        entry[np.searchsorted(self.indptr, found, side="right") - 1] = found
        return entry

    def name(self, class_index: int) -> str:
        """The class's name, or its index as text."""
        return str(class_index) if self.class_names is None else self.class_names[class_index]

    def take(self, rows: Ints | Bools) -> "SparseSample":
        """The rows selected, as a sample of their own."""
        chosen = np.arange(self.n_samples)[rows]
        counts = self.n_listed[chosen]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], counts)
        weight = None if self.sample_weight is None else self.sample_weight[chosen]
        return replace(
            self,
            indptr=indptr,
            indices=self.indices[entries],
            values=self.values[entries],
            rest=self.rest[chosen],
            labels=self.labels[chosen],
            sample_weight=weight,
        )

    def closed(self) -> "SparseSample":
        """The sample with one class more, "not listed", which takes the rest of each row and the labels outside it."""
        place = np.flatnonzero(self.rest > 0)
        at = self.indptr[place + 1]
        added = np.zeros(self.n_samples + 1, dtype=np.int64)
        added[place + 1] = 1
        return replace(
            self,
            indptr=self.indptr + np.cumsum(added),
            indices=np.insert(self.indices, at, self.n_classes),
            values=np.insert(self.values, at, self.rest[place]),
            rest=np.zeros(self.n_samples),
            labels=np.where(self.label_entry >= 0, self.labels, self.n_classes),
            n_classes=self.n_classes + 1,
            remainder="class",
            class_names=None if self.class_names is None else (*self.class_names, NOT_LISTED),
        )

    def row_sums(self, values: Float64s) -> Float64s:
        """Sum one number per listed class over each row."""
        return sums_at(self.rows, values, self.n_samples)

    def subset_range(self, subset: Ints) -> tuple[Float64s, Float64s]:
        """The least and the most that the probability of ``subset`` can be; equal where nothing is unknown."""
        inside = self._member(subset)[self.indices]
        listed = self.row_sums(np.where(inside, self.values, 0.0))
        n_inside = self.row_sums(inside.astype(np.float64))
        free_inside = subset.size - n_inside
        free_outside = self.n_classes - self.n_listed - free_inside
        if self.remainder == "spread":
            low = high = listed + self.share * free_inside
        else:
            most = self._most_unlisted()
            low = listed + np.maximum(self.rest - free_outside * most, 0.0)
            high = listed + np.minimum(self.rest, free_inside * most)
        return np.minimum(low, 1.0), np.minimum(high, 1.0)

    def subset_hits(self, subset: Ints) -> Bools:
        """Whether each label lies in ``subset``."""
        return self._member(subset)[self.labels]

    def _most_unlisted(self) -> Float64s:
        """The most that one class can have that is not listed: the rest, and as much as the least listed one."""
        most = self.rest.copy()
        if self.remainder == "unknown":
            some = self.n_listed > 0
            least = np.minimum.reduceat(self.values, self.indptr[:-1][some]) if some.any() else most[:0]
            # Rounding aside, the rest fits under the least listed class; the gate has seen to that.
            most[some] = np.minimum(most[some], np.maximum(least, self.share[some]))
        return most

    def _member(self, subset: Ints) -> Bools:
        member = np.zeros(self.n_classes, dtype=np.bool_)
        member[subset] = True
        return member

    def __repr__(self) -> str:
        return (
            f"SparseSample(n_samples={self.n_samples}, n_classes={self.n_classes}, "
            f"n_listed={self.indices.size}, remainder={self.remainder!r})"
        )


def joined(parts: Sequence[SparseSample]) -> SparseSample:
    """The rows of several samples of the same classes, one after the other."""
    weights = [np.ones(p.n_samples) if p.sample_weight is None else p.sample_weight for p in parts]
    weighted = any(part.sample_weight is not None for part in parts)
    counts = np.concatenate([part.n_listed for part in parts])
    return replace(
        parts[0],
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        indices=np.concatenate([part.indices for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        rest=np.concatenate([part.rest for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        sample_weight=np.concatenate(weights) if weighted else None,
    )
