"""Features: what is known of each row beside its prediction, as checked columns that go where the rows go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from polycal._typing import Bools, Float64s, Ints

Kind = Literal["number", "category", "boolean", "date"]
KINDS: tuple[Kind, ...] = ("number", "category", "boolean", "date")
# The categories of a column of truth values: the codes are 0 and 1.
TRUTH = ("false", "true")


@dataclass(frozen=True)
class Column:
    """What a column of features holds.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "category", "boolean", "date"}
        Numbers stand for themselves, dates for seconds since 1970; of categories and truth values there are codes.
    categories : tuple of str
        What the codes 0, 1, ... stand for; empty for numbers and dates.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()

    @property
    def is_coded(self) -> bool:
        """Whether values are codes of categories."""
        return self.kind in {"category", "boolean"}

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing: such a column goes with one of any kind."""
        return self.kind == "category" and not self.categories

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each category."""
        return {category: code for code, category in enumerate(self.categories)}

    def check(self, values: Any) -> None:
        """Refuse values from a file that the column cannot hold."""
        if not isinstance(values, np.ndarray) or values.dtype != np.float64 or np.isinf(values).any():
            raise ValueError(f"feature {self.name!r} must be numbers.")
        known = values[~np.isnan(values)]
        if self.is_coded and not ((known >= 0) & (known < len(self.categories)) & (known % 1 == 0)).all():
            raise ValueError(f"feature {self.name!r} must be codes of its {len(self.categories)} categories.")

    def words(self, value: float) -> str:
        """A value of the column, as people write it."""
        if self.is_coded:
            return self.categories[int(value)]
        return date_words(value) if self.kind == "date" else number_words(value)


def read_columns(table: Any) -> tuple[Column, ...]:
    """Columns from what a file says of them, ``[name, kind, categories]`` each; it is not trusted."""
    columns = []
    for name, kind, categories in table:
        texts = [name, *categories]
        if kind not in KINDS or not all(isinstance(text, str) for text in texts):
            raise ValueError("columns of features must have a name, a kind that is known, and categories.")
        columns.append(Column(name, kind, tuple(categories)))
    return tuple(columns)


def number_words(value: float) -> str:
    """A number, without a point if it is whole."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e20 else f"{value:.6g}"


def date_words(seconds: float) -> str:
    """A date from seconds since 1970; with the time of day where there is one."""
    moment = np.datetime64(round(seconds * 1e6), "us")
    day = moment.astype("datetime64[D]")
    return str(day) if moment == day else str(moment.astype("datetime64[s]"))


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Checked features of rows. Made by the gate (`polycal._validation`) only.

    Attributes
    ----------
    values : ndarray of float64, shape (n_rows, n_columns)
        Numbers and codes; NaN where a value is missing.
    columns : tuple of Column
        What each column holds; names differ.
    """

    values: Float64s
    columns: tuple[Column, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def place(self, name: str) -> int:
        """Where a column stands; refused in one line if there is none of that name."""
        if name not in self._places:
            raise ValueError(f"features have no column {name!r}; there are {some_names(self.names)}.")
        return self._places[name]

    def column(self, name: str) -> tuple[Column, Float64s]:
        """What a column holds, and its values."""
        place = self.place(name)
        return self.columns[place], self.values[:, place]

    def take(self, rows: Ints | Bools | slice) -> "Features":
        """The rows selected."""
        return Features(self.values[rows], self.columns)

    def with_columns(self, others: "Features") -> "Features":
        """The columns of both, of the same rows."""
        return Features(np.hstack([self.values, others.values]), (*self.columns, *others.columns))

    def recoded(self, columns: Sequence[Column]) -> "Features":
        """The same rows with the categories of other columns of the same names, which must know all of these."""
        values = np.empty((self.n_rows, len(columns)))
        for place, wanted in enumerate(columns):
            own, found = self.column(wanted.name)
            if own.is_empty or wanted.is_empty:
                values[:, place] = np.nan
                continue
            if own.is_coded != wanted.is_coded:
                raise ValueError(
                    f"feature {wanted.name!r} holds {_KIND_WORDS[own.kind]} in some rows and "
                    f"{_KIND_WORDS[wanted.kind]} in others; give one kind."
                )
            values[:, place] = (
                found if own.categories == wanted.categories else _translated(found, own, wanted)
            )
        return Features(values, tuple(columns))

    def __repr__(self) -> str:
        return f"Features(n_rows={self.n_rows}, columns={some_names(self.names)})"


_KIND_WORDS = {"number": "numbers", "category": "categories", "boolean": "truth values", "date": "dates"}


def _translated(codes: Float64s, own: Column, wanted: Column) -> Float64s:
    """The codes of the same categories in another column; NaN for those that it does not have."""
    table = np.array([*(wanted.codes.get(category, np.nan) for category in own.categories), np.nan])
    missing = np.isnan(codes)
    out: Float64s = table[np.where(missing, len(own.categories), codes).astype(np.int64)]
    return out


def common_columns(parts: Sequence[Sequence[Column]]) -> tuple[Column, ...]:
    """Columns that hold what all parts hold: the union of their categories, those of the first part first."""
    first = parts[0]
    if all(tuple(part) == tuple(first) for part in parts[1:]):
        return tuple(first)
    names = tuple(column.name for column in first)
    for part in parts[1:]:
        if tuple(column.name for column in part) != names:
            other = some_names([column.name for column in part])
            raise ValueError(
                f"features have the columns {some_names(names)} in some rows and {other} in others."
            )
    return tuple(_united([part[place] for part in parts]) for place in range(len(first)))


def _united(columns: Sequence[Column]) -> Column:
    columns = [column for column in columns if not column.is_empty] or columns[:1]
    categories = dict.fromkeys(category for column in columns for category in column.categories)
    kinds = {column.kind for column in columns}
    kind = columns[0].kind if len(kinds) == 1 else "category" if columns[0].is_coded else "number"
    return replace(columns[0], kind=kind, categories=tuple(categories))


def joined_features(parts: Sequence[Features | None]) -> Features | None:
    """The features of several parts of rows, one after the other; None if no part has any."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if len(known) < len(parts):
        raise ValueError("some of the rows have features and others have none; give them for all rows.")
    columns = common_columns([part.columns for part in known])
    return Features(np.concatenate([part.recoded(columns).values for part in known]), columns)


def some_names(names: Sequence[Any], limit: int = 8) -> str:
    """Names for a message, the first few of many."""
    shown = ", ".join(str(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
