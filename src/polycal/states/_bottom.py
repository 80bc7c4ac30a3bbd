"""The rows with the smallest keys: a random sample of fixed size that merges."""

from typing import NamedTuple

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.sample import Sample
from polycal.states._keys import Keys
from polycal.storage.model import Arrays


class KeyedRows(NamedTuple):
    """Rows with a key each."""

    proba: Floats
    labels: Ints
    weight: Float64s
    keys: Keys

    def take(self, chosen: Ints) -> "KeyedRows":
        """Some of the rows."""
        return KeyedRows(self.proba[chosen], self.labels[chosen], self.weight[chosen], self.keys[chosen])

    def sample(self, class_names: tuple[str, ...] | None) -> Sample:
        """The rows as a sample in the order of their keys, without weights if all are 1."""
        rows = self.take(np.argsort(self.keys))
        weight = None if (rows.weight == 1.0).all() else rows.weight
        return Sample(np.ascontiguousarray(rows.proba), rows.labels, weight, class_names)


class BottomRows:
    """At most ``size`` rows: those with the smallest keys."""

    def __init__(self, size: int, rows: KeyedRows | None = None) -> None:
        self.size = size
        self.rows = rows

    def admit(self, new: KeyedRows) -> KeyedRows:
        """Take in rows; returns those that are not, or no longer, among the smallest."""
        rows = new if self.rows is None else _joined(self.rows, new)
        if rows.keys.size <= self.size:
            self.rows = rows
            return rows.take(np.empty(0, dtype=np.int64))
        order = np.argpartition(rows.keys, self.size)
        self.rows = rows.take(np.sort(order[: self.size]))
        return rows.take(np.sort(order[self.size :]))

    def below(self, keys: Keys) -> Ints:
        """Which of these keys might be admitted."""
        if self.rows is None or self.rows.keys.size < self.size:
            return np.arange(keys.size)
        return np.flatnonzero(keys < self.rows.keys.max())

    def arrays(self) -> Arrays:
        """What is saved."""
        return {} if self.rows is None else {f"rows_{name}": a for name, a in self.rows._asdict().items()}

    @classmethod
    def rebuild(cls, size: int, arrays: Arrays) -> "BottomRows":
        """The inverse of `arrays`."""
        if "rows_keys" not in arrays:
            return cls(size)
        return cls(size, KeyedRows(*(arrays[f"rows_{name}"] for name in KeyedRows._fields)))


def _joined(left: KeyedRows, right: KeyedRows) -> KeyedRows:
    proba, labels, weight, keys = (np.concatenate(pair) for pair in zip(left, right, strict=True))
    return KeyedRows(proba, labels, weight, keys)
