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
        self._empty = np.ascontiguousarray(run[:, :0])
        self._runs = [np.ascontiguousarray(run)] if run.shape[1] else []

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
        from polycal._compiled.runs import merged  # noqa: PLC0415 - imports numba

        run: Float64s = merged(left, right, self._n_keys)
        return run

    def _combined(self, columns: Float64s) -> Float64s:
        """Sorted, and equal keys added up."""
        from polycal._compiled.runs import add_up  # noqa: PLC0415 - imports numba

        first, *others = columns[: self._n_keys]
        # Keys after the first are weights, which mostly are all 1.
        plain = all((key == key[:1]).all() for key in others)
        order = np.argsort(first) if plain else np.lexsort((*others[::-1], first))
        run: Float64s = add_up(columns, order, self._n_keys)
        return run
