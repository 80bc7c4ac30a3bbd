"""A set of classes with its error, and the worst of all sets by trying every one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Float64s, Ints
from polycal.families.questions import SubsetWitness
from polycal.listed import ListedSample
from polycal.measures.functions import LipschitzFunction
from polycal.measures.smooth import SmoothInterval, smooth_error, smooth_interval
from polycal.sample import Sample, ask_subset


@dataclass(frozen=True, eq=False)
class FoundSubset:
    """A set of classes, the error of its question, and what it took to find it.

    Attributes
    ----------
    members : ndarray of int64
        The classes, increasing.
    interval : SmoothInterval
        The smooth calibration error of "is the label one of `members`?": one number, unless lists hide something.
    phi : LipschitzFunction
        The weight function that shows its lower end.
    n_evaluated : int
        How many sets were looked at.
    """

    members: Ints
    interval: SmoothInterval
    phi: LipschitzFunction
    n_evaluated: int

    @property
    def value(self) -> float:
        """The error, or the least that it can be."""
        return self.interval.low

    def witness(self, sample: Sample) -> SubsetWitness:
        """The set with its optimal weight function."""
        return SubsetWitness(self.members, self.phi.simplified(), sample.n_classes, sample.class_names)


def size_limit(n_classes: int, max_size: int | None) -> int:
    """How many classes a search may choose: all but one, if of every split one side is small enough."""
    return n_classes - 1 if max_size is None or max_size >= n_classes // 2 else max_size


def found_subset(sample: Sample, members: Ints, limit: int, n_evaluated: int) -> FoundSubset:
    """Value a set exactly. Where its complement is as good an answer, take the smaller of the two."""
    if limit == sample.n_classes - 1:
        members = smaller_side(sample, members)
    return FoundSubset(members, *smooth_interval(ask_subset(sample, members)), n_evaluated)


def smaller_side(sample: Sample, members: Ints) -> Ints:
    """The set or its complement (their errors are equal): fewer classes, then less predicted probability."""
    others = np.setdiff1d(np.arange(sample.n_classes), members)
    if members.size != others.size:
        return members if members.size < others.size else others
    mean = sample.mean_proba()
    return members if mean[members].sum() <= mean[others].sum() else others


# Subsets times rows: about a second on two cores. The cells of a subset cost as much as some rows.
_BUDGET = 1e9
_ROWS_OF_CELLS = 1500
_N_CELLS = 128
_N_CHUNKS = 64
# Lists that take more room when filled are not.
_MOST_CELLS = 1 << 25
# Bounds on sums of rounded numbers.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class _Branch:
    """The subsets made of ``prefix`` and at most ``room`` of the classes from ``start`` to before ``stop``.

    They form a tree, each being its parent and one later class, and are counted parents first.
    """

    prefix: tuple[int, ...]
    start: int
    stop: int
    room: int

    def size(self) -> int:
        """How many subsets these are."""
        return sum(comb(self.stop - self.start, extra) for extra in range(self.room + 1))

    def sizes(self) -> Ints:
        """How many classes each subset has."""
        return len(self.prefix) + _counts(self.stop - self.start, self.room)

    def children(self) -> "Iterator[_Branch]":
        """The branches with one more class fixed."""
        if self.room:
            for label in range(self.start, self.stop):
                yield _Branch((*self.prefix, label), label + 1, self.stop, self.room - 1)

    def split(self, grain: int) -> "Iterator[_Branch]":
        """Branches of at most ``grain`` subsets, and single subsets, that make up this one in its order."""
        if self.room == 0 or self.size() <= grain:
            yield self
        else:
            yield _Branch(self.prefix, self.start, self.stop, 0)
            for child in self.children():
                yield from child.split(grain)

    def subset(self, number: int) -> Ints:
        """The subset of this number."""
        if number == 0:
            return np.array(self.prefix, dtype=np.int64)
        number -= 1
        for child in self.children():
            if number < child.size():
                return child.subset(number)
            number -= child.size()
        raise IndexError("there are fewer subsets")


@cache
def _counts(n_classes: int, room: int) -> Ints:
    """The sizes of the subsets of at most ``room`` of some classes, in the order of a branch."""
    rests = [1 + _counts(n_classes - label - 1, room - 1) for label in range(n_classes if room else 0)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *rests])


class SubsetValues(NamedTuple):
    """The errors of all subsets, computed in cells of the prediction.

    Attributes
    ----------
    tree : _Branch
        The subsets; the first is empty.
    value : ndarray of shape (n_subsets,)
        The smooth calibration error with each prediction moved to the middle of its cell.
    slack : ndarray of shape (n_subsets,)
        By how much this can be off.
    centred : ndarray of shape (n_subsets,)
        The same as `value`, of residuals less their mean.
    """

    tree: _Branch
    value: Float64s
    slack: Float64s
    centred: Float64s


def count_subsets(n_classes: int, max_size: int | None = None) -> int:
    """How many subsets there are to try; a subset and its complement are one where both are allowed."""
    return _tree(n_classes, max_size).size() - 1


def affordable(sample: Sample, max_size: int | None = None, effort: float = 1.0) -> bool:
    """Whether `enumerate_subsets` takes about a second on two cores, times ``effort``, and lists fit if filled."""
    if sample.is_listed and sample.n_samples * sample.n_classes > _MOST_CELLS:
        return False
    return sample.n_samples <= affordable_rows(sample.n_classes, max_size, effort)


def affordable_rows(n_classes: int, max_size: int | None = None, effort: float = 1.0) -> int:
    """Of how many rows all subsets can be tried in that time."""
    return max(0, int(effort * _BUDGET / count_subsets(n_classes, max_size)) - _ROWS_OF_CELLS)


def enumerate_subsets(sample: Sample, max_size: int | None = None) -> FoundSubset:
    """The subset of at most ``max_size`` classes (default: any) with the largest smooth calibration error.

    Every subset is valued in cells, which says how large its error can be at most. Those for which this is more than
    the largest error found, a handful, are valued exactly.
    """
    sample = sample.filled() if isinstance(sample, ListedSample) else sample
    tree, value, slack, _ = value_subsets(sample, max_size)
    value[0] = -1.0
    bound = value + slack + _ROUNDING
    best, found = -1.0, tree.subset(1)
    for number in np.argsort(-bound, kind="stable"):
        if bound[number] <= best + 2 * _ROUNDING:
            break
        members = tree.subset(number)
        error = smooth_error(ask_subset(sample, members))
        if error > best:
            best, found = error, members
    return found_subset(sample, found, size_limit(sample.n_classes, max_size), value.size - 1)


def value_subsets(sample: Sample, max_size: int | None = None) -> SubsetValues:
    """Value every subset in cells, on all cores."""
    from polycal._compiled.subset import branch_errors  # noqa: PLC0415 - imports numba

    tree, mass = _tree(sample.n_classes, max_size), sample.mass
    columns = np.ascontiguousarray(sample.proba.T, dtype=np.float64)

    def errors(branch: _Branch) -> tuple[Float64s, ...]:
        prefix = np.array(branch.prefix, dtype=np.int64)
        start = columns[prefix].sum(axis=0), sample.subset_hits(prefix)
        size = branch.size()
        deepest = min(branch.room, branch.stop - branch.start)
        found: tuple[Float64s, ...] = branch_errors(
            columns, sample.labels, mass, *start, branch.start, branch.stop, deepest, size, _N_CELLS
        )
        return found

    parts = map_threads(errors, list(tree.split(max(1, tree.size() // _N_CHUNKS))))
    return SubsetValues(tree, *(np.concatenate(kind) for kind in zip(*parts, strict=True)))


def _tree(n_classes: int, max_size: int | None) -> _Branch:
    """The branch of all subsets to try.

    Where a subset and its complement are both allowed, the side without the last class stands for both.
    """
    limit = size_limit(n_classes, max_size)
    return _Branch((), 0, n_classes - 1 if limit == n_classes - 1 else n_classes, limit)
