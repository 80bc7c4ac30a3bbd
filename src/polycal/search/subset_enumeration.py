"""The largest smooth calibration error over all subsets of classes, by trying every one."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Bools, Float64s
from polycal.question import Question
from polycal.sample import Sample
from polycal.search.found_subset import FoundSubset, found_subset, size_limit
from polycal.smooth import smooth_error

# Subsets times rows: about 25 seconds on two cores. A subset costs something even without rows.
_BUDGET = 1e9
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
    """Whether `enumerate_subsets` takes less than about half a minute on two cores."""
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
