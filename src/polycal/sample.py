"""The trusted arrays: predictions with labels, whole or as lists of classes, and the questions put to them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.features import Features

Remainder = Literal["unknown", "spread", "anywhere", "class"]
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


def sums_at(places: Ints, values: Float64s, size: int) -> Float64s:
    """The sum of the values at each of the places 0 to size - 1."""
    return np.bincount(places, weights=values, minlength=size).astype(np.float64, copy=False)


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
    features : Features, or None
        What else is known of the rows.

    Examples
    --------
    >>> import polycal as pc
    >>> sample = pc.datasets.load_fashion("evaluation")
    >>> sample.n_samples, sample.n_classes, sample.class_names[:2]
    (10000, 10, ('T-shirt/top', 'Trouser'))
    >>> sample.take(slice(100)).proba.shape
    (100, 10)
    """

    proba: Floats
    labels: Ints
    sample_weight: Float64s | None = None
    class_names: tuple[str, ...] | None = None
    features: Features | None = None
    # Whether rows list only some classes, and whether the probabilities of some of the others are not known.
    is_listed: ClassVar[bool] = False
    hides: ClassVar[bool] = False

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
        features = None if self.features is None else self.features.take(rows)
        return Sample(_taken(self.proba, rows), self.labels[rows], weight, self.class_names, features)

    def subset_proba(self, subset: Ints) -> Float64s:
        """Predicted probability that the label lies in ``subset``: float64, in [0, 1]."""
        return subset_sums(self.proba, subset)

    def subset_range(self, subset: Ints) -> tuple[Float64s, Float64s]:
        """The least and the most that the probability of ``subset`` can be: full predictions tell it."""
        predicted = self.subset_proba(subset)
        return predicted, predicted

    def class_ranges(self, classes: Ints) -> tuple[Floats, Floats]:
        """`subset_range` of each of some classes alone, of shape (n_samples, n)."""
        predicted: Floats = self.proba[:, classes]
        return predicted, predicted

    def subset_hits(self, subset: Ints) -> Bools:
        """Whether each label lies in ``subset``."""
        member = np.zeros(self.n_classes, dtype=np.bool_)
        member[subset] = True
        return member[self.labels]

    def top_class(self) -> tuple[Ints, Float64s]:
        """The most likely class of each row (the first of equals) and its probability."""
        from polycal._compiled.rows import top_classes  # noqa: PLC0415 - imports numba

        top, confidence = top_classes(self.proba)
        return top, confidence

    def top_set(self, m: int) -> "TopSets":
        """The m most likely classes of each row (the first of equals)."""
        from polycal._compiled.rows import top_sets  # noqa: PLC0415 - imports numba

        total, hits = top_sets(self.proba, self.labels, m)
        return TopSets(total, total, hits)

    def true_proba(self) -> Floats:
        """The probability given to the true class."""
        proba: Floats = np.take_along_axis(self.proba, self.labels[:, None], axis=1)[:, 0]
        return proba

    def mean_proba(self) -> Float64s:
        """The mean predicted probability of each class."""
        mean: Float64s = self.mass @ self.proba
        return mean

    def frequency(self) -> Float64s:
        """The share of each class among the labels."""
        return sums_at(self.labels, self.mass, self.n_classes)

    def row_moments(self, values: Float64s) -> tuple[Float64s, Float64s, Float64s]:
        """Largest probability, sum of squares, and mean of one number per class, of each row."""
        top, square, mean = (np.empty(self.n_samples) for _ in range(3))
        for rows in row_blocks(self.n_samples, self.n_classes):
            block = self.proba[rows].astype(np.float64)
            top[rows] = block.max(axis=1)
            square[rows] = np.einsum("ij,ij->i", block, block)
            mean[rows] = block @ values
        return top, square, mean

    def __repr__(self) -> str:
        weighted = "" if self.sample_weight is None else ", weighted"
        return f"Sample(n_samples={self.n_samples}, n_classes={self.n_classes}, {self.proba.dtype}{weighted})"


def _taken(proba: Floats, rows: Ints | Bools | slice) -> Floats:
    """``proba[rows]``, in half the time where rows are copied."""
    if isinstance(rows, slice):
        return proba[rows]
    places: NDArray[Any] = np.asarray(rows)
    return proba.compress(places, axis=0) if places.dtype == np.bool_ else proba.take(places, axis=0)


class TopSets(NamedTuple):
    """The m most likely classes of rows: the least and the most that their sum can be, and whether one is true."""

    low: Float64s
    high: Float64s
    hits: Bools
    # Where lists do not tell whether one is, and `hits` says no.
    unsure: Bools | None = None


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
    low, high : ndarray of float64, shape (n_samples,), or None
        Where lists tell the probability of "yes" only to lie between these, with `predicted` in the middle.
    unsure : ndarray of bool, shape (n_samples,), or None
        Where lists do not tell the answer either, and `hits` says no.
    """

    predicted: Float64s
    hits: Bools
    weight: Float64s | None
    text: str
    low: Float64s | None = None
    high: Float64s | None = None
    unsure: Bools | None = None

    @property
    def ranges(self) -> tuple[Float64s, Float64s]:
        """The least and the most that each prediction can be."""
        if self.low is None or self.high is None:
            return self.predicted, self.predicted
        return self.low, self.high

    @property
    def answers(self) -> Float64s:
        """1 for "yes", 0 for "no", 1/2 where that is not known."""
        answers = self.hits.astype(np.float64)
        return answers if self.unsure is None else answers + self.unsure / 2.0

    @property
    def doubt(self) -> Float64s:
        """How far each answer less its prediction may be from that of the middles."""
        low, high = self.ranges
        doubt: Float64s = (high - low) / 2.0
        return doubt if self.unsure is None else doubt + self.unsure / 2.0


def ask(sample: Sample, subset: Ints | None = None) -> Question:
    """The question "is the label in `subset`?"; by default class 1 of two, else confidence."""
    if subset is not None:
        return ask_subset(sample, subset)
    return ask_members(sample, np.array([1]) if sample.n_classes == 2 else None)


def ask_members(sample: Sample, members: Ints | int | None) -> Question:
    """The question "is the label one of `members`?", of so many most likely ones, or that of confidence."""
    if members is None or isinstance(members, int):
        return ask_top_set(sample, members or 1)
    return ask_subset(sample, members)


def ask_subset(sample: Sample, subset: Ints) -> Question:
    """Is the label one of these classes?"""
    low, high = sample.subset_range(subset)
    hits, text = sample.subset_hits(subset), subset_words(subset, sample.name)
    if low is high or not (low < high).any():
        return Question(low, hits, sample.sample_weight, text)
    return Question((low + high) / 2.0, hits, sample.sample_weight, text, low, high)


def ask_confidence(sample: Sample) -> Question:
    """Is the most likely class the right one? (The first of equals, as NumPy's argmax.)"""
    top, confidence = sample.top_class()
    return Question(confidence, top == sample.labels, sample.sample_weight, "is the most likely class right?")


def ask_top_set(sample: Sample, m: int) -> Question:
    """Is the label among the m most likely classes? One is the question of confidence."""
    if m == 1:
        return ask_confidence(sample)
    low, high, hits, unsure = sample.top_set(m)
    text = f"is it among the {m} most likely?"
    if low is high or not ((low < high).any() or (unsure is not None and unsure.any())):
        return Question(low, hits, sample.sample_weight, text)
    return Question((low + high) / 2.0, hits, sample.sample_weight, text, low, high, unsure)


def likely_classes(sample: Sample, most: int) -> Ints:
    """The classes with the largest sum of mean prediction and frequency, at most so many, increasing."""
    if sample.n_classes <= most:
        return np.arange(sample.n_classes)
    use = sample.mean_proba() + sample.frequency()
    return np.sort(np.argsort(-use, kind="stable")[:most])


def refuse_lists(sample: Sample, what: str) -> None:
    """Raise if rows list only some classes, for what needs the probabilities of all."""
    if sample.is_listed:
        raise TypeError(
            f"y_proba lists only some classes, but {what} needs full predictions: pass an array with all classes, or "
            "ask for what lists can tell (Confidence, TopLabel, TopSet, Classwise, SubsetSmooth, KernelAuditor)."
        )


# Classes that a question lists by name; of more it says how many, and the first few.
MOST_NAMES, _FEW_NAMES = 13, 3


def subset_words(subset: Ints, name: Callable[[int], str]) -> str:
    """The subset question in words: every class by name, unless there are very many."""
    if subset.size > MOST_NAMES:
        some = ", ".join(name(int(c)) for c in subset[:_FEW_NAMES])
        return f"is it one of {subset.size:,} classes ({some}, ...)?"
    *first, last = (name(int(c)) for c in subset)
    return f"is it {', '.join(first)} or {last}?" if first else f"is it {last}?"


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
    return np.lexsort(_row_keys(sample))


def _row_keys(sample: Sample) -> list[Float64s]:
    """What tells rows apart, whatever classes are called: functions of the row alone, but for the third and fourth."""
    frequency = sample.frequency()
    weight = np.zeros(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    keys = [*sample.row_moments(frequency), frequency[sample.labels], weight, sample.true_proba()]
    # Rounded: renaming classes changes the order of sums, hence their last digits.
    return [np.round(key, 9) for key in keys]


def row_lots(sample: Sample, seed: int) -> Float64s:
    """A number from 0 to below 1 for each row, drawn by the seed and the row's own contents.

    What is chosen by lot stays chosen when other rows come behind, in whatever order rows are and whatever classes
    are called. Like rows are told apart by how many of them there are before.
    """
    top, square, *others, true = _row_keys(sample)
    own = np.stack([top, square, true], axis=1)
    order = np.lexsort([*others, top, square, true])
    is_new = np.ones(order.size, dtype=np.bool_)
    is_new[1:] = (own[order[1:]] != own[order[:-1]]).any(axis=1)
    starts = np.flatnonzero(is_new)
    before = np.empty((order.size, 1))
    before[order, 0] = np.arange(order.size) - np.repeat(starts, np.diff(starts, append=order.size))
    table = np.hstack([own, before]).astype("<f8")
    key = blake2b(str(seed).encode(), digest_size=16).digest()
    lots = b"".join(blake2b(row, digest_size=8, key=key).digest() for row in table)
    # As many digits as a float has.
    return np.asarray((np.frombuffer(lots, "<u8") >> 11) * 2.0**-53, dtype=np.float64)
