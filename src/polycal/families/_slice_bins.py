"""Conditions on features, and the bins of a column that slices are made of."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.features import Column, Features, date_words, number_words
from polycal.storage.rules import LARGEST, Real, Rule, Sizes, Text, expect
from polycal.storage.saved import Checked

Test = Literal["category", "number", "whole", "date", "missing"]
TESTS: tuple[Test, ...] = ("category", "number", "whole", "date", "missing")
# Bins of numbers, at most; and of the inner columns of conjunctions.
_MOST_BINS, _MOST_INNER = 16, 10
# Numbers with at most so many different values are cut between any two of them.
_FEW_VALUES = 32
# Categories of a column that are looked at, the most frequent ones.
_MOST_CATEGORIES = 200
# A day, an hour, a minute, a second.
_TIMES = (86_400.0, 3600.0, 60.0, 1.0)


class Interval(NamedTuple):
    """Numbers from `low` on and below `high`.

    Parameters
    ----------
    low, high : float or None
        The ends; None where there is none.

    Examples
    --------
    >>> from polycal.families import Condition
    >>> Condition("age", "number", low=18.0).value
    Interval(low=18.0, high=None)
    """

    low: float | None
    high: float | None


class _OneOf(Rule):
    """A test that conditions know."""

    def check(self, value: object, name: str, sizes: Sizes) -> None:  # noqa: ARG002 - it has none
        """Refuse any other value, in one line."""
        if value not in TESTS:
            raise ValueError(f"{name} must be one of {', '.join(TESTS)}.")


@dataclass(frozen=True)
class Condition(Checked):
    """What the rows of a slice have in common in one column.

    Attributes
    ----------
    column : str
        Name of the column.
    test : {"category", "number", "whole", "date", "missing"}
        What is asked: which category, or where a number, a whole number or a date lies, or whether it is missing.
    category : str
        The category; empty for other tests.
    low, high : float
        The number is at least `low` and below `high`; -1e30 and 1e30 are no ends. Dates are seconds since 1970.

    Examples
    --------
    >>> from polycal.families import Condition
    >>> Condition("country", "category", "FR").value, Condition("age", "number", low=18.0, high=30.0).value
    ('FR', Interval(low=18.0, high=30.0))
    """

    column: Annotated[str, Text()]
    test: Annotated[Test, _OneOf()]
    category: Annotated[str, Text()] = ""
    low: Annotated[float, Real()] = -LARGEST
    high: Annotated[float, Real()] = LARGEST
    role: ClassVar[str] = "condition"
    family: ClassVar[str] = "column"

    def _check(self) -> None:
        super()._check()
        expect(self.low < self.high, "an interval must not be empty")

    def rows(self, features: Features) -> Bools:
        """Which rows fulfil it."""
        column, values = features.column(self.column)
        if self.test == "missing":
            return np.isnan(values)
        if column.is_empty:
            return np.zeros(values.size, dtype=np.bool_)
        if column.is_coded != (self.test == "category"):
            wanted = "categories" if self.test == "category" else "numbers or dates"
            raise ValueError(f"feature {self.column!r} must hold {wanted}, as where the slice was found.")
        if self.test == "category":
            return np.equal(values, column.codes.get(self.category, -1))
        # No comparison holds for NaN.
        inside: Bools = (values >= self.low) & (values < self.high)
        return inside

    @property
    def value(self) -> str | int | Interval | None:
        """The category, the whole number or the interval; None if the value is missing."""
        if self.test == "category":
            return self.category
        if self.test == "missing":
            return None
        if self._is_one_number:
            return int(self.low)
        return Interval(
            None if self.low <= -LARGEST else self.low, None if self.high >= LARGEST else self.high
        )

    @property
    def _is_one_number(self) -> bool:
        return self.test == "whole" and self.high == self.low + 1.0

    def words(self) -> str:
        """The condition as people say it."""
        if self.test == "missing":
            return f"{self.column} is missing"
        if self.test == "category":
            return f"{self.column} is {self.category}"
        if self._is_one_number:
            return f"{self.column} is {number_words(self.low)}"
        say = date_words if self.test == "date" else number_words
        if self.high >= LARGEST:
            return f"{self.column} is {'from ' if self.test == 'date' else 'at least '}{say(self.low)}" + (
                " on" if self.test == "date" else ""
            )
        if self.low <= -LARGEST:
            return f"{self.column} is {'before' if self.test == 'date' else 'below'} {say(self.high)}"
        if self.test == "whole":
            return f"{self.column} is {number_words(self.low)} to {number_words(self.high - 1.0)}"
        return f"{self.column} is {say(self.low)} to below {say(self.high)}"


@dataclass(frozen=True, eq=False)
class Bins:
    """A column cut into bins, of which slices are made: each alone, or of numbers several in a row.

    Attributes
    ----------
    column : Column
        What is cut.
    codes : ndarray of int64, shape (n_rows,)
        The bin of each row; -1 if it is in none.
    conditions : tuple of Condition
        One for each bin; that of missing values, if there are any, is the last.
    edges : ndarray or None
        Of numbers: where bins begin; the last one has no end. None for categories.
    """

    column: Column
    codes: Ints
    conditions: tuple[Condition, ...]
    edges: Float64s | None

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return len(self.conditions)

    @property
    def n_numbers(self) -> int:
        """How many of them are of numbers."""
        return 0 if self.edges is None else self.edges.size

    def spans(self) -> Ints:
        """First bin and end of every slice: shape (n_slices, 2)."""
        m = self.n_numbers
        first, last = np.triu_indices(m)
        # All numbers together are no slice, unless some values are missing.
        kept = (last - first + 1 < m) | (self.n_bins > m)
        alone = np.arange(m, self.n_bins)
        return np.concatenate(
            [np.stack([first[kept], last[kept] + 1], axis=1), np.stack([alone, alone + 1], axis=1)]
        ).astype(np.int64)

    def outer_spans(self) -> Ints:
        """Slices that conjunctions are made of: categories; quarters and halves of numbers; missing values."""
        m = self.n_numbers
        cuts = np.unique(np.round(np.linspace(0, m, 5)).astype(np.int64)).tolist()
        spans = {*pairwise(cuts), *pairwise([0, m // 2, m]), *((b, b + 1) for b in range(m, self.n_bins))}
        kept = [(a, b) for a, b in sorted(spans) if a < b and (b - a < m or a >= m or self.n_bins > m)]
        return np.array(kept, dtype=np.int64).reshape(-1, 2)

    def condition(self, first: int, end: int) -> Condition:
        """The condition of several bins in a row."""
        if self.edges is None or first >= self.n_numbers or end == first + 1:
            return self.conditions[first]
        return replace(self.conditions[first], high=self.conditions[end - 1].high)

    def inside(self, codes: Ints, first: int, end: int) -> Bools:
        """Which of these codes are of bins in a row."""
        return (codes >= first) & (codes < end)


def column_bins(features: Features, name: str, min_rows: int) -> Bins:
    """The bins of a column: frequent categories, or numbers cut at quantiles; missing values in a bin of their own."""
    column, values = features.column(name)
    known = ~np.isnan(values)
    codes = np.full(values.size, -1, dtype=np.int64)
    edges: Float64s | None = None
    if column.is_coded:
        counts = np.bincount(values[known].astype(np.int64), minlength=len(column.categories))
        order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        frequent = order[counts[order] >= min_rows]
        table = np.full(len(column.categories) + 1, -1, dtype=np.int64)
        table[frequent] = np.arange(frequent.size)
        codes[known] = table[values[known].astype(np.int64)]
        conditions = [Condition(name, "category", column.categories[c]) for c in frequent.tolist()]
    else:
        edges = _edges(values[known], is_date=column.kind == "date")
        codes[known] = np.searchsorted(edges, values[known], side="right") - 1
        conditions = _intervals(column, values[known], edges)
    if not known.all():
        codes[~known] = len(conditions)
        conditions.append(Condition(name, "missing"))
    return Bins(column, codes, tuple(conditions), edges)


def _edges(values: Float64s, most: int = _MOST_BINS, *, is_date: bool = False) -> Float64s:
    """Where bins of about equally many values begin; at every value if they are few."""
    if values.size == 0:
        return np.empty(0)
    different = np.unique(values)
    if different.size <= _FEW_VALUES:
        return different
    cuts = np.quantile(values, np.arange(1, most) / most, method="higher")
    return np.unique(np.concatenate([different[:1], _short_numbers(cuts, different[0], is_date=is_date)]))


def _short_numbers(cuts: Float64s, least: float, *, is_date: bool) -> Float64s:
    """The cuts with as few digits as tell them apart, or whole days, hours, minutes: people will read them."""
    shorter = (
        [np.round(cuts / seconds) * seconds for seconds in _TIMES]
        if is_date
        else [np.array([float(f"{cut:.{digits}g}") for cut in cuts]) for digits in range(1, 8)]
    )
    for short in shorter:
        gaps = np.diff(cuts, prepend=least)
        # None moves by more than a tenth of its bin.
        if (np.abs(short - cuts) <= 0.1 * np.maximum(gaps, np.append(gaps[1:], gaps[-1]))).all():
            return short[short > least]
    return cuts


def _intervals(column: Column, values: Float64s, edges: Float64s) -> list[Condition]:
    """One condition for each bin of numbers; the first has no beginning, and the last no end."""
    if edges.size == 0:
        return []
    # Beyond 2^53 the next whole number may be the same float.
    is_whole = bool((values == np.round(values)).all()) and float(np.abs(values).max()) < 2.0**53
    test: Test = "date" if column.kind == "date" else "whole" if is_whole else "number"
    ends = np.append(edges[1:], LARGEST)
    starts = np.append(-LARGEST, edges[1:])
    if test == "whole" and np.unique(values).size <= _FEW_VALUES:
        # Few whole numbers are names as much as amounts.
        starts, ends = edges.copy(), edges + 1.0
    return [
        Condition(column.name, test, "", float(low), float(high))
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def coarse_bins(bins: Bins, rows: Ints) -> Bins:
    """Some rows of the same column in fewer bins: numbers several in a row, categories the most frequent ones."""
    m, codes = bins.n_numbers, bins.codes[rows]
    if bins.edges is None:
        kept = [b for b in range(bins.n_bins) if b < _MOST_INNER or bins.conditions[b].test == "missing"]
        table = np.full(bins.n_bins + 1, -1, dtype=np.int64)
        table[kept] = np.arange(len(kept))
        return Bins(bins.column, table[codes], tuple(bins.conditions[b] for b in kept), None)
    if m <= _MOST_INNER:
        return replace(bins, codes=codes)
    starts = np.unique(np.round(np.linspace(0, m, _MOST_INNER + 1)).astype(np.int64))
    conditions = [bins.condition(*span) for span in pairwise(starts.tolist())]
    table = np.append(np.repeat(np.arange(len(conditions)), np.diff(starts)), len(conditions))
    coarse = np.where(codes >= 0, table[np.minimum(codes, m)], -1)
    return Bins(bins.column, coarse, (*conditions, *bins.conditions[m:]), bins.edges[starts[:-1]])
