"""Random rows that do not depend on how the data came: the sketch."""

from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Floats, Ints
from polycal._validation import check_integer, check_seed
from polycal.sample import Sample
from polycal.states.base import State
from polycal.storage.rules import Array, Part, Rows, Sizes, Whole, expect
from polycal.storage.saved import Saved

Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_keys(rows: Ints, seed: int, purpose: int) -> Keys:
    """A number of 64 random bits for each place; draws for different purposes are independent.

    SplitMix64 [1]_ of the place, started where the seed and the purpose say.

    References
    ----------
    .. [1] Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators".
    """
    start = np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)
    keys: Keys = start + rows.astype(np.uint64) * _STEP
    for shift, factor in zip((30, 27), _MIX, strict=True):
        keys = (keys ^ (keys >> np.uint64(shift))) * factor
    return keys ^ (keys >> np.uint64(31))


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


class BottomRows(Saved):
    """At most ``size`` rows: those with the smallest keys."""

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "keyed-rows"

    size: Annotated[int, Whole()]

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

    def check_rows(self, size: int, n_classes: int) -> None:
        """Refuse another size, and rows that are not of so many classes."""
        expect(self.size == size, "rows must be kept up to the number asked for")
        if self.rows is not None:
            expect(self._used <= size, "no more rows must be kept than asked for")
            sizes = Sizes(SimpleNamespace(n_classes=n_classes))
            for name, rule in _ROW_RULES.items():
                rule.check(getattr(self.rows, name), name, sizes)

    def _saved_values(self) -> dict[str, Any]:
        return {"size": self.size, "rows": self.rows}

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        size, rows = values["size"], values["rows"]
        return cls(size, None if rows is None else KeyedRows(*rows))

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


_ROW_RULES = {
    "proba": Rows("floats", "n_rows n_classes"),
    "labels": Array("int64", "n_rows", low=0, below="n_classes"),
    "weight": Array("float64", "n_rows", low=0),
    "keys": Array("uint64", "n_rows", low=0, high=np.inf),
}


def _empty(old: NDArray[Any], new: NDArray[Any], capacity: int) -> NDArray[Any]:
    """Room for rows of either kind."""
    return np.empty((capacity, *new.shape[1:]), dtype=np.promote_types(old.dtype, new.dtype))


def _joined(left: KeyedRows, right: KeyedRows) -> KeyedRows:
    proba, labels, weight, keys = (np.concatenate(pair) for pair in zip(left, right, strict=True))
    return KeyedRows(proba, labels, weight, keys)


_PURPOSE = 1


class SketchState(State):
    """A random sample of fixed size, drawn without replacement as the rows go by.

    Parameters
    ----------
    size : int
        Number of rows to keep.
    random_state : int, default 0
        Seed of the draw.

    Notes
    -----
    Every row gets a random key that depends on its place in the data and the seed, and the rows with the smallest
    keys are kept. So the sample does not depend on how rows were cut into chunks, if each `update` is told its
    ``first_row``. `finish` returns a `Sample`; searches that need many passes run on it. Cost: O(n) and the
    rows kept.

    Examples
    --------
    >>> import polycal as pc
    >>> state = pc.SketchState(2).update([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.1])
    >>> state.finish()
    Sample(n_samples=2, n_classes=2, float64)
    """

    family: ClassVar[str] = "sketch"
    holds_rows: ClassVar[bool] = True

    size: Annotated[int, Whole(low=1)]
    random_state: Annotated[int, Whole()]
    _kept: Annotated[BottomRows, Part((BottomRows,))]

    def __init__(self, size: int, *, random_state: int = 0) -> None:
        super().__init__()
        self.size = check_integer(size, "size", minimum=1)
        self.random_state = check_seed(random_state)
        self._kept = BottomRows(size)

    def finish(self) -> Sample:
        """The rows kept, in random order."""
        self._seen()
        if self._kept.rows is None:
            raise ValueError("the state has seen no row of positive weight; update it first.")
        return self._kept.rows.sample(self.class_names)

    def _check_sums(self, n_classes: int) -> None:
        self._kept.check_rows(self.size, n_classes)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        keys = row_keys(rows, self.random_state, _PURPOSE)
        chosen = self._kept.below(keys)
        chosen = chosen[weight[chosen] > 0]
        chunk = KeyedRows(sample.proba, sample.labels, weight, keys)
        self._kept.admit(chunk if chosen.size == keys.size else chunk.take(chosen))

    def _merge(self, other: "SketchState") -> None:
        if other._kept.rows is not None:
            self._kept.admit(other._kept.rows)
