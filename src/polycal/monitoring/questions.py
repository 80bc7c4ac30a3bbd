r"""The questions that a monitor watches: bets on their residuals, and sums that tell by how much they are off.

A question has a probability p of "yes" on every row. For each of the functions :math:`\phi` = 1, p and 1 - p, which
are 1-Lipschitz, and for both signs, :math:`x = \pm \phi(p) (\mathrm{yes} - p)` has mean 0 if labels follow the
predictions, and mean at most eps if the smooth error of the question is at most eps. A bet
:math:`1 + \lambda (x - eps)` then does not win on average, and the one that wins names the question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Ints
from polycal.monitoring.fortune import stakes
from polycal.monitoring.marks import Marks
from polycal.sample import row_sums, subset_words
from polycal.storage.rules import Array, Kept, Part, Whole, expect
from polycal.storage.saved import Saved

# What parts of a fortune are bet.
_SHARES = np.array([0.05, 0.2, 0.8])
N_SHAPES, N_SIGNS, N_BINS = 3, 2, 10
# More classes than this are not watched one by one.
_MOST_CLASSES = 1000
# Sets of classes that are found on the way, and values of features, that can be watched.
N_FOUND, _MOST_SLICES = 2, 200
# The parts of the questions' money that classes and slices get; the rest is for confidence, sets and groups.
_FOR_CLASSES, FOR_SLICES = 0.4, 0.2
# Answers: what is negative does not count.
NO_ANSWER = -1
Answers = NDArray[np.int8]


class Asked(NamedTuple):
    """A question in words and classes.

    ``kind`` is "confidence", "set", "group", "class" or "slice"; ``members`` are the classes, if it is a set of them.
    """

    kind: str
    text: str
    members: Ints | None


@dataclass(eq=False)
class Questions(Saved):
    """Confidence, two sets of classes found on the way, named groups, every class, and slices of features.

    Attributes
    ----------
    n_classes : int
    groups : dict of str to ndarray of int64
        Named sets of classes.
    slices : tuple of (str, str)
        Columns and values of features, in the order in which they were first met.
    found : ndarray of bool, shape (2, n_classes)
        Sets of classes; an empty one is not asked.
    begin : ndarray of int64, shape (n_questions,)
        The row from which on each is asked.
    fortune, won, start : ndarray of shape (n_questions, 3, 2, 3)
        As in `Fortunes`, but no logarithms, for every function, sign and part of the fortune that is bet.
    count, sums, bins : ndarray of shape (n_questions,), (n_questions, 3, 2), (n_questions, 10, 3)
        See `polycal._compiled.monitor.tally_questions`.
    marks : Marks
        The same sums at earlier rows.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "questions"

    n_classes: Annotated[int, Whole(low=2)]
    groups: Annotated[dict[str, Ints], Kept()]
    slices: Annotated[tuple[tuple[str, str], ...], Kept()]
    found: Annotated[Bools, Array("bool", f"{N_FOUND} n_classes")]
    begin: Annotated[Ints, Array("int64", "n_questions", low=0)]
    fortune: Annotated[
        Float64s, Array("float64", f"n_questions {N_SHAPES} {N_SIGNS} {_SHARES.size}", low=0, high=1e101)
    ]
    won: Annotated[
        Float64s, Array("float64", f"n_questions {N_SHAPES} {N_SIGNS} {_SHARES.size}", low=0, high=1e101)
    ]
    start: Annotated[Ints, Array("int64", f"n_questions {N_SHAPES} {N_SIGNS} {_SHARES.size}", low=0)]
    count: Annotated[Float64s, Array("float64", "n_questions", low=0)]
    sums: Annotated[Float64s, Array("float64", f"n_questions {N_SHAPES} 2")]
    bins: Annotated[Float64s, Array("float64", f"n_questions {N_BINS} 3", low=0)]
    marks: Annotated[Marks, Part((Marks,))]

    @classmethod
    def fresh(cls, n_classes: int, groups: Mapping[str, Ints]) -> "Questions":
        """Questions that no row was asked yet."""
        n = 1 + N_FOUND + len(groups) + watched_classes(n_classes).size
        bets = (n, N_SHAPES, N_SIGNS, _SHARES.size)
        count, sums, bins = np.zeros(n), np.zeros((n, N_SHAPES, 2)), np.zeros((n, N_BINS, 3))
        return cls(
            n_classes,
            dict(groups),
            (),
            np.zeros((N_FOUND, n_classes), dtype=np.bool_),
            np.zeros(n, dtype=np.int64),
            np.zeros(bets),
            np.zeros(bets),
            np.zeros(bets, dtype=np.int64),
            count,
            sums,
            bins,
            Marks.fresh(count, sums, bins),
        )

    def _check(self) -> None:
        expect(
            isinstance(self.groups, dict) and all(map(self._is_group, self.groups.values())),
            "groups must be sets of classes",
        )
        expect(all(map(_is_slice, self.slices)), "slices must be columns and values")
        super()._check()
        expect(
            self.begin.size == self._n_fixed + len(self.slices), "begin must have an entry for each question"
        )
        expect(self.marks.count.shape[1] == self.begin.size, "marks must be of the same questions")

    def _is_group(self, members: Any) -> bool:
        right = isinstance(members, np.ndarray) and members.dtype == np.int64 and members.ndim == 1
        return right and members.size > 0 and members.min() >= 0 and members.max() < self.n_classes

    @property
    def _n_fixed(self) -> int:
        return 1 + N_FOUND + len(self.groups) + watched_classes(self.n_classes).size

    def weights(self) -> Float64s:
        """The part of the questions' money that each bet of each question gets."""
        classes = watched_classes(self.n_classes).size
        others = self._n_fixed - classes
        numbers = np.arange(1, len(self.slices) + 1)
        for_slices = FOR_SLICES / (numbers * (numbers + 1.0))
        for_classes = np.full(classes, _FOR_CLASSES / max(classes, 1))
        for_others = np.full(others, (1.0 - _FOR_CLASSES - FOR_SLICES) / others)
        each = np.concatenate([for_others, for_classes, for_slices])
        return each / (N_SHAPES * N_SIGNS * _SHARES.size)

    def ask(
        self, proba: Float64s, labels: Ints, features: Mapping[str, NDArray[Any]]
    ) -> tuple[Float64s, Answers]:
        """The probability and the answer of every question on every row, of shape (n_rows, n_questions)."""
        n, classes = labels.size, watched_classes(self.n_classes)
        top = proba.argmax(axis=1)
        confidence, right = proba[np.arange(n), top], (top == labels).astype(np.int8)
        sets = [*map(np.flatnonzero, self.found), *self.groups.values()]
        predicted, hits = np.empty((n, self.begin.size)), np.zeros((n, self.begin.size), dtype=np.int8)
        predicted[:, 0], hits[:, 0] = confidence, right
        for q, members in enumerate(sets, start=1):
            predicted[:, q] = np.minimum(row_sums(proba[:, members]), 1.0)
            hits[:, q] = np.isin(labels, members) if members.size else NO_ANSWER
        first = 1 + len(sets)
        predicted[:, first : first + classes.size] = proba[:, classes]
        hits[:, first : first + classes.size] = labels[:, None] == classes
        for q, (column, value) in enumerate(self.slices, start=self._n_fixed):
            predicted[:, q] = confidence
            inside = features[column] == value if column in features else np.zeros(n, dtype=np.bool_)
            hits[:, q] = np.where(inside, right, NO_ANSWER)
        return predicted, hits

    def money_given(self, rows: Ints, begun: int, *, many: bool) -> Float64s:
        """The money that each bet of each question gets before each row; slices when they are first met."""
        given = np.repeat(stakes(rows - begun, many=many)[:, None], self.begin.size, axis=1)
        for q in range(self._n_fixed, self.begin.size):
            given[:, q] = stakes(rows - max(begun, int(self.begin[q])), many=many)
        given *= self.weights()
        return given

    def bet(self, asked: tuple[Float64s, Answers], tolerance: float, money: Float64s, rows: Ints) -> Float64s:
        """Bet on rows with what is given before each; returns the sum of all fortunes after each."""
        from polycal._compiled.monitor import bet_on_questions  # noqa: PLC0415 - imports numba

        total, shares = np.empty(rows.size), _SHARES / (1.0 + tolerance)
        bet_on_questions(*asked, tolerance, shares, money, rows, self.fortune, self.won, self.start, total)
        return total

    def tally(self, asked: tuple[Float64s, Answers]) -> None:
        """Add rows to the sums."""
        from polycal._compiled.monitor import tally_questions  # noqa: PLC0415 - imports numba

        tally_questions(*asked, self.count, self.sums, self.bins)

    def money(self) -> tuple[Float64s, Float64s, Ints]:
        """Copies of what bets change, to be given back by `restore`."""
        return self.fortune.copy(), self.won.copy(), self.start.copy()

    def restore(self, money: tuple[Float64s, Float64s, Ints]) -> None:
        """Undo bets."""
        self.fortune, self.won, self.start = money

    def begin_anew(self) -> None:
        """Take all money away, for a new game."""
        self.fortune[:], self.won[:] = 0.0, 0.0

    def leader(self) -> tuple[float, int]:
        """The logarithm of the largest fortune, and the row since when its bettor has won."""
        richest = np.unravel_index(self.fortune.argmax(), self.fortune.shape)
        return float(np.log(max(self.fortune[richest], 1e-300))), int(self.start[richest])

    def replace_found(self, members: Ints, row: int) -> None:
        """Watch a set of classes from this row on, in the stead of the one with less of a fortune."""
        new = np.isin(np.arange(self.n_classes), members)
        if (self.found == new).all(axis=1).any():
            return
        poorest = int(self.fortune[1 : 1 + N_FOUND].sum(axis=(1, 2, 3)).argmin())
        self.found[poorest] = new
        self.begin[1 + poorest] = row

    @property
    def room_for_slices(self) -> int:
        """How many more slices can be watched."""
        return max(_MOST_SLICES - len(self.slices), 0)

    def add_slice(self, column: str, value: str, row: int) -> None:
        """Watch one more slice from this row on, unless there are too many."""
        if not self.room_for_slices:
            return
        self.slices = (*self.slices, (column, value))
        for name in ("fortune", "won", "start", "count", "sums", "bins"):
            setattr(self, name, _with_room(getattr(self, name)))
        self.begin = np.append(self.begin, row)
        self.marks = self.marks.with_room()

    def merge(self, other: "Questions", row: int) -> None:
        """Add the sums of other rows; slices that were met there are watched here from this row on.

        Sets that were found on the way are others there, and are left out.
        """
        for column, value in other.slices:
            if (column, value) not in self.slices:
                self.add_slice(column, value, row)
        asked = [0, *range(1 + N_FOUND, other._n_fixed)]
        met = [i for i, entry in enumerate(other.slices) if entry in self.slices]
        there = [*asked, *(other._n_fixed + i for i in met)]
        here = [*asked, *(self._n_fixed + self.slices.index(other.slices[i]) for i in met)]
        for name in ("count", "sums", "bins"):
            more = getattr(other, name)[there]
            getattr(self, name)[here] += more
            # From the first mark on, all rows count; from later ones on, those of this game alone.
            getattr(self.marks, name)[1:, here] += more

    def first_rows(self) -> Ints:
        """The row from which on sums of each question are its own: a set that is found takes the place of another."""
        return np.where(np.arange(self.begin.size) < self._n_fixed, self.begin, 0)

    def describe(self, q: int, name: Callable[[int], str]) -> Asked:
        """A question in words."""
        sets = 1 + N_FOUND + len(self.groups)
        if q == 0:
            return Asked("confidence", "is the most likely class right?", None)
        if q <= N_FOUND:
            members = np.flatnonzero(self.found[q - 1])
            return Asked("set", subset_words(members, name), members)
        if q < sets:
            group = list(self.groups)[q - 1 - N_FOUND]
            return Asked("group", f"is it {group}?", self.groups[group])
        if q < self._n_fixed:
            members = watched_classes(self.n_classes)[q - sets : q - sets + 1]
            return Asked("class", subset_words(members, name), members)
        column, value = self.slices[q - self._n_fixed]
        return Asked("slice", f"is the most likely class right, where {column} is {value}?", None)


def watched_classes(n_classes: int) -> Ints:
    """The classes that are watched one by one; of two, one tells about both."""
    if n_classes == 2:
        return np.array([1])
    return np.arange(n_classes if n_classes <= _MOST_CLASSES else 0)


def _is_slice(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and all(isinstance(part, str) for part in entry)


def _with_room(array: NDArray[Any]) -> NDArray[Any]:
    """An array with one more entry, of zeros, at the end."""
    return np.concatenate([array, np.zeros((1, *array.shape[1:]), dtype=array.dtype)])
