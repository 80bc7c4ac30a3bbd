"""Random rows that do not depend on how the data came: the sketch."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Floats, Ints, Seed
from polycal._validation import check_integer, check_seed
from polycal._validation.lists import REMAINDERS
from polycal.features import Column, Features, common_columns, read_columns
from polycal.listed import ListedSample, csr, joined
from polycal.sample import Sample
from polycal.states.base import State
from polycal.storage.rules import ROW_SUM, Array, Part, Rows, Sizes, Whole, expect
from polycal.storage.saved import Saved

Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_keys(rows: Ints, seed: int, purpose: int) -> Keys:
    """A number of 64 random bits for each row number; draws for different purposes are independent.

    SplitMix64 [1]_ of the row number, started where the seed and the purpose say.

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
    # Features, of no column if there are none.
    features: Float64s

    def take(self, chosen: Ints | slice) -> "KeyedRows":
        """Some of the rows."""
        proba, labels, weight, keys, features = self
        return KeyedRows(proba[chosen], labels[chosen], weight[chosen], keys[chosen], features[chosen])

    def put(self, places: Ints | slice, rows: "KeyedRows") -> None:
        """Write rows over those at some places."""
        for mine, new in zip(self, rows, strict=True):
            mine[places] = new

    def sample(self, columns: tuple[Column, ...]) -> Sample:
        """Without the keys."""
        features = Features(self.features, columns) if columns else None
        return Sample(self.proba, self.labels, self.weight, features=features)


_NO_KEYS: Keys = np.empty(0, dtype=np.uint64)


class BottomRows(Saved):
    """At most ``size`` rows: those with the smallest keys."""

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "keyed-rows"

    size: Annotated[int, Whole()]

    def __init__(self, size: int, rows: KeyedRows | None = None, columns: tuple[Column, ...] = ()) -> None:
        self.size = size
        self.columns = columns
        # Room for more rows than there are, so that each is written once.
        self._room = rows
        self._used = 0 if rows is None else rows.keys.size

    @property
    def keys(self) -> Keys:
        """Of the rows kept."""
        return _NO_KEYS if self._room is None else self._room.keys[: self._used]

    @property
    def rows(self) -> Sample | None:
        """The rows kept, in no order and with weights; None if none was ever seen."""
        rows = self._keyed()
        return None if rows is None else rows.sample(self.columns)

    def admit(self, rows: Sample, keys: Keys) -> Sample:
        """Take in rows with weights; returns those that are not, or no longer, among the smallest."""
        if rows.is_listed or rows.sample_weight is None:
            raise TypeError("lists of classes and full predictions cannot be kept together.")
        new = KeyedRows(rows.proba, rows.labels, rows.sample_weight, keys, self._features(rows))
        room = self._grown(new)
        n_fitting = min(self.size - self._used, new.keys.size)
        room.put(slice(self._used, self._used + n_fitting), new.take(slice(0, n_fitting)))
        self._used += n_fitting
        return self._exchanged(room, new.take(slice(n_fitting, None))).sample(self.columns)

    def _features(self, rows: Sample) -> Float64s:
        """The features of new rows; their categories are those of the rows before, and new ones behind these."""
        if rows.features is None:
            if self.columns:
                raise ValueError(
                    "some of the rows have features and others have none; give them for all rows."
                )
            return np.empty((rows.n_samples, 0))
        if self._room is not None and not self.columns:
            raise ValueError("some of the rows have features and others have none; give them for all rows.")
        known = [self.columns] if self.columns else []
        self.columns = common_columns([*known, rows.features.columns])
        return rows.features.recoded(self.columns).values

    def below(self, keys: Keys) -> Ints:
        """Which of these keys might be admitted."""
        if self._used < self.size:
            return np.arange(keys.size)
        return np.flatnonzero(keys < self.keys.max(initial=0))

    def check_rows(self, size: int, n_classes: int) -> None:
        """Refuse another size, and rows that are not of so many classes."""
        expect(self.size == size, "rows must be kept up to the number asked for")
        rows = self._keyed()
        if rows is not None:
            expect(self._used <= size, "no more rows must be kept than asked for")
            sizes = Sizes(SimpleNamespace(n_classes=n_classes))
            for name, rule in _ROW_RULES.items():
                rule.check(getattr(rows, name), name, sizes)
            expect(rows.features.shape == (self._used, len(self.columns)), "features must have their columns")
            for column, values in zip(self.columns, rows.features.T, strict=True):
                column.check(values)

    def _saved_values(self) -> dict[str, Any]:
        columns = [[c.name, c.kind, list(c.categories)] for c in self.columns]
        return {"size": self.size, "rows": self._keyed(), "columns": columns}

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        size, rows = values["size"], values["rows"]
        if rows is None:
            return cls(size)
        # Rows of earlier versions have no features.
        arrays = rows if len(rows) == len(KeyedRows._fields) else (*rows, np.empty((len(rows[0]), 0)))
        return cls(size, KeyedRows(*arrays), read_columns(values.get("columns", ())))

    def _keyed(self) -> KeyedRows | None:
        return None if self._room is None else self._room.take(slice(0, self._used))

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


class BottomLists(Saved):
    """The same for lists, which are joined anew when some are admitted."""

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "keyed-lists"

    size: Annotated[int, Whole()]

    def __init__(self, size: int, rows: ListedSample | None = None, keys: Keys = _NO_KEYS) -> None:
        self.size, self.rows, self.keys = size, rows, keys

    def admit(self, rows: Sample, keys: Keys) -> Sample:
        """Take in rows with weights; returns those that are not, or no longer, among the smallest."""
        if not isinstance(rows, ListedSample):
            raise TypeError("lists of classes and full predictions cannot be kept together.")
        both = rows if self.rows is None else joined([self.rows, rows])
        keys = np.concatenate([self.keys, keys])
        kept = np.ones(keys.size, dtype=np.bool_)
        if keys.size > self.size:
            kept[np.argpartition(keys, self.size)[self.size :]] = False
        self.rows, self.keys = both.take(kept), keys[kept]
        return both.take(~kept)

    def below(self, keys: Keys) -> Ints:
        """Which of these keys might be admitted."""
        if self.keys.size < self.size:
            return np.arange(keys.size)
        return np.flatnonzero(keys < self.keys.max(initial=0))

    def check_rows(self, size: int, n_classes: int) -> None:
        """Refuse another size, and rows that are not of so many classes."""
        expect(self.size == size, "rows must be kept up to the number asked for")
        if self.rows is not None:
            expect(self.keys.size <= size, "no more rows must be kept than asked for")
            expect(self.rows.n_classes == n_classes, "the rows must be of the same classes")

    def _saved_values(self) -> dict[str, Any]:
        if self.rows is None:
            return {"size": self.size, "rows": None}
        fields: dict[str, Any] = {
            name: np.asarray(getattr(self.rows, name), dtype=np.int64) for name in ("indptr", "indices")
        }
        fields |= {name: getattr(self.rows, name) for name in ("values", "rest", "labels")}
        fields |= {"weight": self.rows.sample_weight, "keys": self.keys}
        told = {"n_classes": self.rows.n_classes, "remainder": self.rows.remainder}
        return {"size": self.size, "rows": fields | told}

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        size, rows = values["size"], values["rows"]
        return cls(size) if rows is None else cls(size, _lists_of(rows), rows["keys"])


Bottom = BottomRows | BottomLists


def _lists_of(fields: dict[str, Any]) -> ListedSample:
    """Lists from what was saved of them, which is not trusted."""
    Whole(low=2).check(fields["n_classes"], "n_classes", Sizes(None))
    expect(fields["remainder"] in REMAINDERS, "the remainder must be one of those known")
    sizes = Sizes(SimpleNamespace(n_classes=fields["n_classes"]))
    for name, rule in _LIST_RULES.items():
        rule.check(fields[name], name, sizes)
    indptr, indices, values = fields["indptr"], fields["indices"], fields["values"]
    bounds = np.diff(indptr)
    expect(
        indptr[0] == 0 and indptr[-1] == indices.size and (bounds >= 0).all(), "lists must follow each other"
    )
    rows = np.repeat(np.arange(bounds.size), bounds)
    expect(((np.diff(indices) > 0) | (np.diff(rows) > 0)).all(), "classes must increase in each list")
    total = fields["rest"] + np.bincount(rows, weights=values, minlength=bounds.size)
    expect((np.abs(total - 1.0) <= ROW_SUM).all(), "lists and what they leave over must sum to 1")
    return ListedSample(
        csr(indptr, indices, values, fields["n_classes"]),
        fields["labels"],
        fields["weight"],
        rest=fields["rest"],
        remainder=fields["remainder"],
    )


_LIST_RULES = {
    "keys": Array("uint64", "n_rows", low=0, high=np.inf),
    "indptr": Array("int64", "n_rows+1", low=0),
    "indices": Array("int64", "n_listed", low=0, below="n_classes"),
    "values": Array("float64", "n_listed", low=0, high=1.0 + ROW_SUM),
    "rest": Array("float64", "n_rows", low=0, high=1),
    "labels": Array("int64", "n_rows", low=0, below="n_classes"),
    "weight": Array("float64", "n_rows", low=0),
}
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
    return KeyedRows(*(np.concatenate(pair) for pair in zip(left, right, strict=True)))


_PURPOSE = 1


class SketchState(State):
    """A random sample of fixed size, drawn without replacement as the rows go by.

    Parameters
    ----------
    size : int
        Number of rows to keep.
    random_state : int, Generator or None, default 0
        Seed of the draw.

    Notes
    -----
    Every row gets a random key that depends on its number in the data and the seed, and the rows with the smallest
    keys are kept. So the sample does not depend on how rows were cut into chunks, if each `update` is told its
    ``first_row``. `finish` returns a `Sample`, of lists a `ListedSample`; searches that need many passes run on it.
    Cost: O(n) and the rows kept.

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
    _kept: Annotated[Bottom, Part((BottomRows, BottomLists))]

    def __init__(self, size: int, *, random_state: Seed = 0) -> None:
        super().__init__()
        self.size = check_integer(size, "size", minimum=1)
        self.random_state = check_seed(random_state)
        self._kept = BottomRows(size)

    def finish(self) -> Sample:
        """The rows kept, in random order, without weights if all are 1."""
        self._seen()
        rows = self._kept.rows
        if rows is None:
            raise ValueError("the state has seen no row of positive weight; update it first.")
        rows = rows.take(np.argsort(self._kept.keys))
        plain = rows.sample_weight is None or (rows.sample_weight == 1.0).all()
        return replace(
            rows, sample_weight=None if plain else rows.sample_weight, class_names=self.class_names
        )

    def _check_sums(self, n_classes: int) -> None:
        self._kept.check_rows(self.size, n_classes)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        if self._kept.rows is None and sample.is_listed:
            self._kept = BottomLists(self.size)
        keys = row_keys(rows, self.random_state, _PURPOSE)
        chosen = self._kept.below(keys)
        chosen = chosen[weight[chosen] > 0]
        part = sample if chosen.size == keys.size else sample.take(chosen)
        self._kept.admit(replace(part, sample_weight=weight[chosen]), keys[chosen])

    def _merge(self, other: "SketchState") -> None:
        rows = other._kept.rows
        if rows is None:
            return
        if self._kept.rows is None:
            self._kept = type(other._kept)(self.size)
        self._kept.admit(rows, other._kept.keys)
