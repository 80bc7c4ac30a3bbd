"""The largest smooth calibration error over all subsets of classes, by trying every one."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Bools, Float64s, Ints
from polycal.question import Question, ask_subset
from polycal.sample import Sample
from polycal.smooth import SmoothCurve, smooth_curve, smooth_error

# Subsets times rows: about half a minute on two cores. A subset costs something even without rows.
_BUDGET = 1e9
_ROWS_OF_OVERHEAD = 500
_N_CHUNKS = 64


@dataclass(frozen=True, eq=False)
class FoundSubset:
    """A set of classes, with the curve of its question and the number of subsets looked at.

    Attributes
    ----------
    members : ndarray of int64
        The classes, increasing.
    curve : SmoothCurve
        The exact smooth calibration error of "is the label one of `members`?".
    n_evaluated : int
        How many subsets were evaluated to find it.
    """

    members: Ints
    curve: SmoothCurve
    n_evaluated: int


@dataclass(frozen=True)
class _Branch:
    """The subsets that hold ``prefix`` and any of the classes from ``start`` on, up to ``room`` of them."""

    prefix: tuple[int, ...]
    start: int
    room: int

    def size(self, stop: int) -> int:
        """How many subsets these are."""
        return sum(comb(stop - self.start, extra) for extra in range(self.room + 1))

    def children(self, stop: int) -> "Iterator[_Branch]":
        """Fix the next class of the subset."""
        if self.room:
            for c in range(self.start, stop):
                yield _Branch((*self.prefix, c), c + 1, self.room - 1)


def affordable(sample: Sample, max_size: int | None = None) -> bool:
    """Whether every subset can be tried in about half a minute on two cores."""
    cost = count_subsets(sample.n_classes, max_size) * (sample.n_samples + _ROWS_OF_OVERHEAD)
    return cost <= _BUDGET


def size_limit(n_classes: int, max_size: int | None) -> int:
    """How many classes a search may choose: all but one where either side of every split is small enough."""
    return n_classes - 1 if max_size is None or max_size >= n_classes // 2 else max_size


def count_subsets(n_classes: int, max_size: int | None = None) -> int:
    """How many subsets `enumerate_subsets` tries. A subset and its complement count once where both may do."""
    root, stop = _tree(n_classes, max_size)
    return root.size(stop) - 1


def enumerate_subsets(sample: Sample, max_size: int | None = None) -> FoundSubset:
    """The subset of at most ``max_size`` classes (default: any) with the largest smooth calibration error.

    The subsets form a tree: each is its parent and one later class, so its probabilities cost one
    addition of a column, and no rounding builds up. Threads share the branches of the tree.
    """
    root, stop = _tree(sample.n_classes, max_size)
    count = count_subsets(sample.n_classes, max_size)
    columns = np.ascontiguousarray(sample.proba.T, dtype=np.float64)
    chunks = list(_split(root, stop, grain=count // _N_CHUNKS))
    found = map_threads(lambda chunk: _best_of(chunk, stop, sample, columns), chunks)
    members = smaller_side(sample, np.array(max(found)[1], dtype=np.int64))
    return FoundSubset(members, smooth_curve(ask_subset(sample, members)), count)


def smaller_side(sample: Sample, members: Ints) -> Ints:
    """The set or its complement (which has the same error), whichever has fewer classes, else less probability."""
    inside = np.zeros(sample.n_classes, dtype=np.bool_)
    inside[members] = True
    others = np.flatnonzero(~inside)
    if members.size != others.size:
        return members if members.size < others.size else others
    mass = sample.mass @ sample.proba
    return members if mass[members].sum() <= mass[others].sum() else others


def _tree(n_classes: int, max_size: int | None) -> tuple[_Branch, int]:
    """The branch of all subsets to try, and the first class that is in none of them.

    Where a subset and its complement are both allowed, the side without the last class stands for both.
    """
    limit = size_limit(n_classes, max_size)
    return _Branch((), 0, limit), n_classes - 1 if limit == n_classes - 1 else n_classes


def _split(branch: _Branch, stop: int, grain: int) -> Iterator[_Branch]:
    """Branches of at most ``grain`` subsets (or single subsets) that make up the branch."""
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
            last = child.prefix[-1]
            visit(child, predicted + columns[last], hits | (sample.labels == last))

    prefix = np.array(chunk.prefix, dtype=np.int64)
    visit(chunk, columns[prefix].sum(axis=0), sample.subset_hits(prefix))
    return best
