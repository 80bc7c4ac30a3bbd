"""Predictions that list only some classes of each row: samples where full rows would fit nowhere."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.features import joined_features
from polycal.sample import Remainder, Sample, TopSets, sums_at

# The name of the class that stands for all classes which a row does not list.
NOT_LISTED = "(not listed)"


@dataclass(frozen=True, eq=False, repr=False)
class ListedSample(Sample):
    """Validated predictions that list only some classes of each row. Made by the gate only.

    Attributes
    ----------
    proba : SciPy CSR array of shape (n_samples, n_classes)
        Listed classes, increasing in each row, with their probabilities; a stored 0 is listed.
    labels, sample_weight, class_names
        As for `Sample`; a label need not be listed.
    rest : ndarray of float64, shape (n_samples,)
        What the listed probabilities leave over; 0 if all is known.
    remainder : {"unknown", "spread", "anywhere", "class"}
        What is said of the rest; see `smooth_calibration_error`. With "class" there is none, and one class more.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> import polycal as pc
    >>> from polycal.sparse import sparse_sample
    >>> sample = sparse_sample([1, 2], csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]]))
    >>> sample
    ListedSample(n_samples=2, n_classes=4, n_listed=4, remainder='unknown')
    """

    proba: Any
    _: KW_ONLY
    rest: Float64s
    remainder: Remainder = "unknown"
    is_listed: ClassVar[bool] = True

    @property
    def indptr(self) -> Ints:
        """Row i lists the classes ``indices[indptr[i]:indptr[i + 1]]``."""
        return self.proba.indptr  # type: ignore[no-any-return]

    @property
    def indices(self) -> Ints:
        """The listed classes, row after row."""
        return self.proba.indices  # type: ignore[no-any-return]

    @property
    def values(self) -> Float64s:
        """Their probabilities."""
        return self.proba.data  # type: ignore[no-any-return]

    @property
    def n_listed(self) -> Ints:
        """How many classes each row lists."""
        return np.diff(self.indptr)

    @property
    def rows(self) -> Ints:
        """The row of each listed class."""
        return np.repeat(np.arange(self.n_samples), self.n_listed)

    @property
    def hides(self) -> bool:  # type: ignore[override]  # a constant of full predictions
        """Whether the probabilities of some classes are not known."""
        return self.remainder in {"unknown", "anywhere"} and bool(self.rest.any())

    @property
    def share(self) -> Float64s:
        """What each class that is not listed gets if the rest is shared equally."""
        share: Float64s = self.rest / np.maximum(self.n_classes - self.n_listed, 1)
        return share

    @property
    def most(self) -> Float64s:
        """The most that one class can have that is not listed: the rest, and as much as the least listed one."""
        if self.remainder == "spread":
            return self.share
        most = self.rest.copy()
        some = self.n_listed > 0
        if self.remainder == "unknown" and some.any():
            least = np.minimum.reduceat(self.values, self.indptr[:-1][some])
            # Rounding aside, the rest fits under the least listed class; the gate has seen to that.
            most[some] = np.minimum(most[some], np.maximum(least, self.share[some]))
        return most

    @cached_property
    def label_entry(self) -> Ints:
        """Where the label stands among the listed classes; -1 if it is not listed."""
        entry = np.full(self.n_samples, -1, dtype=np.int64)
        found = np.flatnonzero(self.indices == np.repeat(self.labels, self.n_listed))
        entry[np.searchsorted(self.indptr, found, side="right") - 1] = found
        return entry

    def take(self, rows: Ints | Bools | slice) -> "ListedSample":
        """The rows selected, as a sample of their own."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(
            self,
            proba=self.proba[rows],
            labels=self.labels[rows],
            sample_weight=weight,
            features=None if self.features is None else self.features.take(rows),
            rest=self.rest[rows],
        )

    def closed(self) -> "ListedSample":
        """The sample with one class more, "not listed", which takes the rest of each row and the labels outside it."""
        place = np.flatnonzero(self.rest > 0)
        lists = with_entries(self, place, np.full(place.size, self.n_classes), self.rest[place])
        return replace(
            self,
            proba=csr(*lists, self.n_classes + 1),
            labels=np.where(self.label_entry >= 0, self.labels, self.n_classes),
            class_names=None if self.class_names is None else (*self.class_names, NOT_LISTED),
            rest=np.zeros(self.n_samples),
            remainder="class",
        )

    def filled(self) -> Sample:
        """Full predictions, with the rest of each row shared equally."""
        proba = np.repeat(self.share[:, None], self.n_classes, axis=1)
        proba[self.rows, self.indices] = self.values
        return Sample(proba, self.labels, self.sample_weight, self.class_names)

    def row_sums(self, values: Float64s) -> Float64s:
        """Sum one number per listed class over each row."""
        return sums_at(self.rows, values, self.n_samples)

    def subset_range(self, subset: Ints) -> tuple[Float64s, Float64s]:
        """The least and the most that the probability of ``subset`` can be; equal where nothing is unknown."""
        member = np.zeros(self.n_classes, dtype=np.bool_)
        member[subset] = True
        inside = member[self.indices]
        listed = self.row_sums(np.where(inside, self.values, 0.0))
        free_inside = subset.size - self.row_sums(inside.astype(np.float64))
        if self.remainder == "spread":
            low = high = listed + self.share * free_inside
        else:
            most = self.most
            free_outside = self.n_classes - self.n_listed - free_inside
            low = listed + np.maximum(self.rest - free_outside * most, 0.0)
            high = listed + np.minimum(self.rest, free_inside * most)
        return np.minimum(low, 1.0), np.minimum(high, 1.0)

    def class_ranges(self, classes: Ints) -> tuple[Float64s, Float64s]:
        """`subset_range` of each of some classes alone, of shape (n_samples, n)."""
        column = np.full(self.n_classes, -1)
        column[classes] = np.arange(classes.size)
        place = column[self.indices]
        wanted = place >= 0
        entries = self.rows[wanted], place[wanted]
        low, high = (np.repeat(end[:, None], classes.size, axis=1) for end in self._other_range())
        low[entries] = high[entries] = self.values[wanted]
        return low, high

    def _other_range(self) -> tuple[Float64s, Float64s]:
        """The least and the most that the probability of a class can be that is not listed."""
        most = np.minimum(self.rest, self.most)
        n_others = self.n_classes - self.n_listed - 1
        return (most if self.remainder == "spread" else np.maximum(self.rest - n_others * most, 0.0)), most

    def subset_proba(self, subset: Ints) -> Float64s:
        """The probability of ``subset``; the middle of its range where it is not known."""
        low, high = self.subset_range(subset)
        return (low + high) / 2.0

    def top_class(self) -> tuple[Ints, Float64s]:
        """The most likely class of each row and its probability.

        Lists of the most likely classes tell both; other lists only if no class that is left out can be more likely.
        """
        top, confidence, doubt = self.likely_class()
        if doubt.any():
            row = int(np.argmax(doubt))
            raise ValueError(
                f"y_proba[{row}] leaves {self.rest[row]:.3g} to classes that are not listed, so its most likely "
                "class is not known; list the most likely classes, and pass remainder='unknown'."
            )
        return top, confidence

    def likely_class(self) -> tuple[Ints, Float64s, Bools]:
        """The most likely class as far as is known, its probability, and whether one not listed may be more likely."""
        from polycal._compiled.rows import top_listed  # noqa: PLC0415 - imports numba

        # Where the probability of classes that are not listed is not known, listed ones come first.
        other = np.zeros(self.n_samples) if self.hides else self.share
        top, confidence = top_listed(self.indptr, self.indices, self.values, other)
        can_be = (self.n_listed == 0) | (self.remainder == "anywhere")
        doubt: Bools = (self.rest > confidence) & can_be & self.hides
        return top, confidence, doubt

    def top_set(self, m: int) -> TopSets:
        """The m most likely classes of each row, as far as lists tell: exactly if they are long enough."""
        from polycal._compiled.rows import top_sets_listed  # noqa: PLC0415 - imports numba

        lists = self.indptr, self.indices, self.values, self.labels, self.n_classes
        anywhere = self.remainder == "anywhere"
        return TopSets(*top_sets_listed(*lists, m, self.rest, self.most, self.hides, anywhere))

    def true_proba(self) -> Float64s:
        """The probability given to the true class; an equal share of the rest where it is not listed."""
        entry = self.label_entry
        return np.where(entry >= 0, np.append(self.values, 0.0)[entry], self.share)

    def true_range(self) -> tuple[Float64s, Float64s]:
        """The least and the most that the probability of the true class can be."""
        listed, true = self.label_entry >= 0, self.true_proba()
        least, most = (np.where(listed, true, end) for end in self._other_range())
        return least, most

    def mean_proba(self) -> Float64s:
        """The mean predicted probability of each class, with the rest of each row shared equally."""
        return self._mean(self.share)

    def mean_most(self) -> Float64s:
        """The mean of the most that the probability of each class can be."""
        return self._mean(self.most)

    def _mean(self, other: Float64s) -> Float64s:
        mass, rows = self.mass, self.rows
        excess = (self.values - other[rows]) * mass[rows]
        return sums_at(self.indices, excess, self.n_classes) + float(other @ mass)

    def row_moments(self, values: Float64s) -> tuple[Float64s, Float64s, Float64s]:
        """Largest probability, sum of squares, and mean of one number per class, over the listed ones."""
        top = np.zeros(self.n_samples)
        np.maximum.at(top, self.rows, self.values)
        return top, self.row_sums(self.values**2), self.row_sums(self.values * values[self.indices])

    def __repr__(self) -> str:
        return (
            f"ListedSample(n_samples={self.n_samples}, n_classes={self.n_classes}, "
            f"n_listed={self.indices.size}, remainder={self.remainder!r})"
        )


def csr(indptr: Ints, indices: Ints, values: Float64s, n_classes: int) -> Any:
    """Lists as a SciPy CSR array."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

    return csr_array((values, indices, indptr), shape=(indptr.size - 1, n_classes))


def with_entries(
    sample: ListedSample, rows: Ints, classes: Ints, values: Float64s
) -> tuple[Ints, Ints, Float64s]:
    """Pointers, classes and probabilities of the lists with one entry more at the end of some rows."""
    places = sample.indptr[rows + 1]
    added = np.zeros_like(sample.indptr)
    added[rows + 1] = 1
    return (
        sample.indptr + np.cumsum(added),
        np.insert(sample.indices, places, classes),
        np.insert(sample.values, places, values),
    )


def joined(parts: Sequence[ListedSample]) -> ListedSample:
    """The rows of several samples of the same classes, one after the other."""
    from scipy.sparse import vstack  # noqa: PLC0415 - slow to import

    weights = [np.ones(p.n_samples) if p.sample_weight is None else p.sample_weight for p in parts]
    weighted = any(part.sample_weight is not None for part in parts)
    return replace(
        parts[0],
        proba=vstack([part.proba for part in parts], format="csr"),
        labels=np.concatenate([part.labels for part in parts]),
        sample_weight=np.concatenate(weights) if weighted else None,
        features=joined_features([part.features for part in parts]),
        rest=np.concatenate([part.rest for part in parts]),
    )
