"""The rows with the smallest keys: a random sample of fixed size that merges."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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

    def take(self, chosen: Ints | slice) -> "KeyedRows":
        """Some of the rows."""
        return KeyedRows(self.proba[chosen], self.labels[chosen], self.weight[chosen], self.keys[chosen])

    def put(self, places: Ints | slice, rows: "KeyedRows") -> None:
        """Write rows over those at some places."""
        for mine, new in zip(self, rows, strict=True):
            mine[places] = new

    def sample(self, class_names: tuple[str, ...] | None) -> Sample:
        """The rows as a sample in the order of their keys, without weights if all are 1."""
        rows = self.take(np.argsort(self.keys))
        weight = None if (rows.weight == 1.0).all() else rows.weight
        return Sample(np.ascontiguousarray(rows.proba), rows.labels, weight, class_names)


class BottomRows:
    """At most ``size`` rows: those with the smallest keys."""

    def __init__(self, size: int, rows: KeyedRows | None = None) -> None:
        self.size = size
        # Room for more rows than there are, so that each is written once.
        self._room = rows
        self._used = 0 if rows is None else rows.keys.size

    @property
    def rows(self) -> KeyedRows | None:
        """The rows kept, in no order; None if none was ever seen."""
        return None if self._room is None else self._room.take(slice(0, self._used))

    def admit(self, new: KeyedRows) -> KeyedRows:
        """Take in rows; returns those that are not, or no longer, among the smallest."""
        room = self._grown(new)
        n_fitting = min(self.size - self._used, new.keys.size)
        room.put(slice(self._used, self._used + n_fitting), new.take(slice(0, n_fitting)))
        self._used += n_fitting
        return self._exchanged(room, new.take(slice(n_fitting, None)))

    def below(self, keys: Keys) -> Ints:
        """Which of these keys might be admitted."""
        if self._room is None or self._used < self.size:
            return np.arange(keys.size)
        return np.flatnonzero(keys < self._room.keys[: self._used].max(initial=0))

    def arrays(self) -> Arrays:
        """What is saved."""
        rows = self.rows
        return {} if rows is None else {f"rows_{name}": a for name, a in rows._asdict().items()}

    @classmethod
    def rebuild(cls, size: int, arrays: Arrays) -> "BottomRows":
        """The inverse of `arrays`."""
        if "rows_keys" not in arrays:
            return cls(size)
        return cls(size, KeyedRows(*(arrays[f"rows_{name}"] for name in KeyedRows._fields)))

    def _grown(self, new: KeyedRows) -> KeyedRows:
        """The room, with space for more rows as far as the size allows; twice what it was, if it must grow."""
        needed = min(self.size, self._used + new.keys.size)
        old = new.take(slice(0, 0)) if self._room is None else self._room
        # Chunks may be of float32 first and of float64 later.
        fits = needed <= old.keys.size and np.can_cast(new.proba.dtype, old.proba.dtype)
        if self._room is None or not fits:
            capacity = min(self.size, max(needed, 2 * old.keys.size))
            room = KeyedRows(*(_empty(a, b, capacity) for a, b in zip(old, new, strict=True)))
            room.put(slice(0, self._used), old.take(slice(0, self._used)))
            self._room = room
        return self._room

    def _exchanged(self, room: KeyedRows, new: KeyedRows) -> KeyedRows:
        """Exchange the largest of the rows kept for new ones with smaller keys; returns all that stay outside."""
        if new.keys.size == 0:
            return new
        keys = np.concatenate([room.keys[: self._used], new.keys])
        smallest = np.zeros(keys.size, dtype=np.bool_)
        smallest[np.argpartition(keys, self._used - 1)[: self._used]] = True
        leaving = np.flatnonzero(~smallest[: self._used])
        entering = np.flatnonzero(smallest[self._used :])
        staying_out = new.take(np.flatnonzero(~smallest[self._used :]))
        out = _joined(room.take(leaving), staying_out)
        room.put(leaving, new.take(entering))
        return out


def _empty(old: NDArray[Any], new: NDArray[Any], capacity: int) -> NDArray[Any]:
    """Room for rows of either kind."""
    return np.empty((capacity, *new.shape[1:]), dtype=np.promote_types(old.dtype, new.dtype))


def _joined(left: KeyedRows, right: KeyedRows) -> KeyedRows:
    proba, labels, weight, keys = (np.concatenate(pair) for pair in zip(left, right, strict=True))
    return KeyedRows(proba, labels, weight, keys)
