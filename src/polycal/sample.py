"""The trusted arrays: predictions with labels, the questions put to them, and parts of their rows."""

import math
from collections.abc import Callable, Iterator
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


# Parts of numbers up to 1 at this scale add up without rounding, whatever their order.
GRID = 2.0**27


def exact_row_sums(block: Float64s) -> Float64s:
    """Row sums of probabilities, rounded once: the same in any order of adding, hence in other runtimes."""
    coarse = np.rint(block * GRID) / GRID
    return row_sums(coarse) + row_sums(block - coarse)


def drift_allowed(dtype: Any, n_classes: int) -> float:
    """What the rounding of a softmax and of the sum itself leave of 1 - sum; rows further off are renormalised."""
    return float(np.finfo(dtype).eps) * max(2.0, math.sqrt(n_classes))


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


@dataclass(frozen=True, eq=False)
class Question:
    """One yes/no question put to every row of a sample.

    Attributes
    ----------
    predicted : ndarray of float64, shape (n_samples,)
        The predicted probability of "yes", in [0, 1].
    hits : ndarray of bool, shape (n_samples,)
        Whether the answer was "yes".
    weight : ndarray of float64, shape (n_samples,), or None
        Weights of the rows; None means equal.
    text : str
        The question in words.
    """

    predicted: Float64s
    hits: Bools
    weight: Float64s | None
    text: str


def ask(sample: Sample, subset: Ints | None = None) -> Question:
    """The question "is the label in `subset`?"; by default class 1 of two, else confidence."""
    if subset is not None:
        return ask_subset(sample, subset)
    return ask_subset(sample, np.array([1])) if sample.n_classes == 2 else ask_confidence(sample)


def ask_subset(sample: Sample, subset: Ints) -> Question:
    """Is the label one of these classes?"""
    return Question(
        sample.subset_proba(subset),
        sample.subset_hits(subset),
        sample.sample_weight,
        subset_words(subset, sample.name),
    )


def ask_confidence(sample: Sample) -> Question:
    """Is the most likely class the right one? (The first of equals, as NumPy's argmax.)"""
    top, confidence = top_class(sample)
    return Question(confidence, top == sample.labels, sample.sample_weight, "is the most likely class right?")


def top_class(sample: Sample) -> tuple[Ints, Float64s]:
    """The most likely class of each row and its probability."""
    from polycal._compiled.rows import top_classes  # noqa: PLC0415 - imports numba

    top, confidence = top_classes(sample.proba)
    return top, confidence


def subset_words(subset: Ints, name: Callable[[int], str], limit: int = 4) -> str:
    """The subset question in words, with at most ``limit`` class names."""
    names = [name(int(c)) for c in subset[:limit]]
    if subset.size > limit:
        return f"is it one of {', '.join(names)} and {subset.size - limit} more?"
    if subset.size == 1:
        return f"is it {names[0]}?"
    return f"is it {', '.join(names[:-1])} or {names[-1]}?"


def split_rows(sample: Sample, shares: tuple[float, ...], seed: int) -> list[Ints]:
    """Random parts of the rows with about these shares of them, each increasing.

    The parts depend on the seed and on the contents of the rows, not on the order of rows or classes, so that
    shuffled or relabelled data give the same result. (Among rows that no symmetric function tells apart, it
    is their order that decides.)
    """
    order = _canonical_order(sample)
    shuffled = order[np.random.default_rng(seed).permutation(order.size)]
    cuts = np.round(np.cumsum(shares) / np.sum(shares) * order.size).astype(np.int64)
    return [np.sort(part) for part in np.split(shuffled, cuts[:-1])]


def _canonical_order(sample: Sample) -> Ints:
    """The rows sorted by functions of their contents that do not change when classes are renamed."""
    frequency = np.bincount(sample.labels, weights=sample.mass, minlength=sample.n_classes).astype(np.float64)
    true_proba = np.take_along_axis(sample.proba, sample.labels[:, None], axis=1)[:, 0]
    weight = np.zeros(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    keys = [*_row_moments(sample, frequency), frequency[sample.labels], weight, true_proba]
    # Rounded: renaming classes changes the order of sums, hence their last digits.
    return np.lexsort([np.round(key, 9) for key in keys])


def _row_moments(sample: Sample, frequency: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Largest probability, sum of squares, and mean frequency of the predicted classes, of each row."""
    top, square, common = (np.empty(sample.n_samples) for _ in range(3))
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        block = sample.proba[rows].astype(np.float64)
        top[rows] = block.max(axis=1)
        square[rows] = np.einsum("ij,ij->i", block, block)
        common[rows] = block @ frequency
    return top, square, common
