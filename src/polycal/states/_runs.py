"""Sorted runs: rows with equal keys added up, exact and cheap to merge."""

from functools import reduce

import numpy as np

from polycal._typing import Float64s


class Runs:
    """Columns of numbers whose first few rows are keys, each once and in increasing order; the rest add up.

    As in a log-structured store, runs are merged when a newer one has grown to the size of the one before, so
    that n columns cost O(n log n) in all, however small the chunks.
    """

    def __init__(self, n_keys: int, run: Float64s) -> None:
        self._n_keys = n_keys
        self._empty = run[:, :0]
        self._runs = [run] if run.shape[1] else []

    def add(self, columns: Float64s) -> None:
        """Take in columns in any order."""
        self._push(self._combined(columns))

    def merge(self, other: "Runs") -> None:
        """Take in the runs of another."""
        for run in other._runs:
            self._push(run)

    def whole(self) -> Float64s:
        """Everything as one run."""
        return reduce(self._joined, reversed(self._runs), self._empty)

    def _push(self, run: Float64s) -> None:
        while self._runs and self._runs[-1].shape[1] <= run.shape[1]:
            run = self._joined(self._runs.pop(), run)
        self._runs.append(run)

    def _joined(self, left: Float64s, right: Float64s) -> Float64s:
        return self._combined(np.concatenate([left, right], axis=1))

    def _combined(self, run: Float64s) -> Float64s:
        """Sorted, and equal keys added up. (A stable sort merges runs that are sorted in linear time.)"""
        keys = run[: self._n_keys]
        order = np.lexsort(keys[::-1])
        run, keys = run[:, order], keys[:, order]
        new = np.ones(order.size, dtype=np.bool_)
        new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        first = np.flatnonzero(new)
        if first.size == order.size:
            return run
        sums: Float64s = np.add.reduceat(run, first, axis=1)
        sums[: self._n_keys] = keys[:, first]
        return sums
