"""A set of classes with its error, and the worst of all sets by trying every one."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Bools, Float64s, Ints
from polycal.families.questions import SubsetWitness
from polycal.listed import ListedSample
from polycal.measures.functions import LipschitzFunction
from polycal.measures.smooth import SmoothInterval, smooth_error, smooth_interval
from polycal.sample import Question, Sample, ask_subset


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


# Subsets times rows: about 25 seconds on two cores. A subset costs something even without rows.
_BUDGET = 1e9
# Lists that take more room when filled are not.
_MOST_CELLS = 1 << 25
_ROWS_OF_OVERHEAD = 500
_N_CHUNKS = 64


@dataclass(frozen=True)
class _Branch:
    """The subsets made of ``prefix`` and at most ``room`` of the classes from ``start`` on."""

    prefix: tuple[int, ...]
    start: int
    room: int

    def size(self, stop: int) -> int:
        """How many subsets these are, of classes before ``stop``."""
        return sum(comb(stop - self.start, extra) for extra in range(self.room + 1))

    def children(self, stop: int) -> "Iterator[_Branch]":
        """The branches with one more class fixed."""
        if self.room:
            for label in range(self.start, stop):
                yield _Branch((*self.prefix, label), label + 1, self.room - 1)


def affordable(sample: Sample, max_size: int | None = None) -> bool:
    """Whether `enumerate_subsets` takes less than about half a minute on two cores, and lists would fit if filled."""
    if sample.is_listed and sample.n_samples * sample.n_classes > _MOST_CELLS:
        return False
    cost = count_subsets(sample.n_classes, max_size) * (sample.n_samples + _ROWS_OF_OVERHEAD)
    return cost <= _BUDGET


def count_subsets(n_classes: int, max_size: int | None = None) -> int:
    """How many subsets there are to try; a subset and its complement are one where both are allowed."""
    root, stop = _tree(n_classes, max_size)
    return root.size(stop) - 1


def enumerate_subsets(sample: Sample, max_size: int | None = None) -> FoundSubset:
    """The subset of at most ``max_size`` classes (default: any) with the largest smooth calibration error.

    The subsets form a tree: each is its parent and one later class, so its probabilities cost one
    addition of a column, and no rounding builds up. Threads share the branches of the tree.
    """
    sample = sample.filled() if isinstance(sample, ListedSample) else sample
    root, stop = _tree(sample.n_classes, max_size)
    count = count_subsets(sample.n_classes, max_size)
    columns = np.ascontiguousarray(sample.proba.T, dtype=np.float64)
    chunks = list(_split(root, stop, grain=count // _N_CHUNKS))
    best = max(map_threads(lambda chunk: _best_of(chunk, stop, sample, columns), chunks))
    return found_subset(sample, np.array(best[1]), size_limit(sample.n_classes, max_size), count)


def _tree(n_classes: int, max_size: int | None) -> tuple[_Branch, int]:
    """The branch of all subsets to try, and the first class that is in none of them.

    Where a subset and its complement are both allowed, the side without the last class stands for both.
    """
    limit = size_limit(n_classes, max_size)
    return _Branch((), 0, limit), n_classes - 1 if limit == n_classes - 1 else n_classes


def _split(branch: _Branch, stop: int, grain: int) -> Iterator[_Branch]:
    """Branches of at most ``grain`` subsets, and single subsets, that make up the branch."""
    if branch.room == 0 or branch.size(stop) <= grain:
        yield branch
    else:
        yield _Branch(branch.prefix, branch.start, 0)
        for child in branch.children(stop):
            yield from _split(child, stop, grain)


def _best_of(chunk: _Branch, stop: int, sample: Sample, columns: Float64s) -> tuple[float, tuple[int, ...]]:
    """The largest error in a branch, and its subset."""
    best = (-1.0, chunk.prefix)

    def visit(branch: _Branch, predicted: Float64s, hits: Bools) -> None:
        nonlocal best
        question = Question(np.minimum(predicted, 1.0), hits, sample.sample_weight, "")
        best = max(best, (smooth_error(question), branch.prefix))
        for child in branch.children(stop):
            label = child.prefix[-1]
            visit(child, predicted + columns[label], hits | (sample.labels == label))

    prefix = np.array(chunk.prefix, dtype=np.int64)
    visit(chunk, columns[prefix].sum(axis=0), sample.subset_hits(prefix))
    return best
