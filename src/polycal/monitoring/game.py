"""The game that a monitor plays: bets on each row, fortunes that follow, and what is remembered.

What happens at certain rows (fits, marks, searches) happens at numbers of rows that do not depend on batches, and what
happens in between is computed row by row or adds up: any batches give the same to rounding.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Ints
from polycal.monitoring.bets import FLOOR, LargeBets, SmallBets, Window, families, log_gains, log_weights
from polycal.monitoring.fortune import Fortunes, kept, stakes
from polycal.monitoring.marks import History
from polycal.monitoring.questions import FOR_SLICES, Answers, Questions
from polycal.monitoring.search import SEARCH_ROWS, find_short_set, next_search
from polycal.storage.rules import Array, Part, Real, Whole, expect
from polycal.storage.saved import Saved

# The part of all money that bets on questions get; with a tolerance they get all of it.
_FOR_QUESTIONS = 0.15
# Rows that are worked on at once, as numbers.
_BLOCK_CELLS = 1 << 18
# Alarms that are remembered.
_MOST_ALARMS = 1000
_LN10 = float(np.log(10.0))

Columns = Mapping[str, NDArray[Any]]


class Stream(NamedTuple):
    """Rows past the gate."""

    proba: Float64s
    labels: Ints
    features: Columns

    def take(self, rows: slice) -> "Stream":
        """Consecutive rows."""
        columns = {name: values[rows] for name, values in self.features.items()}
        return Stream(self.proba[rows], self.labels[rows], columns)


class Rules(NamedTuple):
    """What a game is played by: when there is an alarm, what error is forgiven, and whether alarms may be many."""

    alpha: float
    tolerance: float
    many: bool

    @property
    def threshold(self) -> float:
        """The logarithm of the fortune that is an alarm."""
        return -float(np.log(self.alpha))


@dataclass(eq=False)
class Game(Saved):
    """Everything that is remembered of the rows seen.

    Attributes
    ----------
    n_classes, n_rows : int
        Number of classes, and of rows seen.
    begun : int
        The row at which the game began: 0, or the one after the last of many alarms.
    log_evidence, log_others : float
        The logarithm of the money after the last row, and of that of the games that were merged into this one.
    other_rows : int
        Rows of these.
    impossible : int
        Rows whose label had a probability below the floor.
    alarms : ndarray of int64, shape (n, 2)
        The row of each alarm, and the one since when the richest bettor had won; of many the last thousand.
    small, large, window, fortunes, questions, history
        The bettors, the rows they are fitted on, their fortunes, what is watched, and evidence over time.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "game"

    n_classes: Annotated[int, Whole(low=2)]
    n_rows: Annotated[int, Whole()]
    begun: Annotated[int, Whole()]
    log_evidence: Annotated[float, Real()]
    log_others: Annotated[float, Real()]
    other_rows: Annotated[int, Whole()]
    impossible: Annotated[int, Whole()]
    alarms: Annotated[Ints, Array("int64", "n_alarms 2", low=0)]
    small: Annotated[SmallBets, Part((SmallBets,))]
    large: Annotated[LargeBets, Part((LargeBets,))]
    window: Annotated[Window, Part((Window,))]
    fortunes: Annotated[Fortunes, Part((Fortunes,))]
    questions: Annotated[Questions, Part((Questions,))]
    history: Annotated[History, Part((History,))]

    @classmethod
    def fresh(cls, n_classes: int, groups: Mapping[str, Ints], rules: Rules) -> "Game":
        """A game before its first row."""
        n_bets = 0 if rules.tolerance > 0 else len(families(n_classes))
        return cls(
            n_classes,
            0,
            0,
            0.0,
            0.0,
            0,
            0,
            np.empty((0, 2), dtype=np.int64),
            SmallBets.fresh(n_classes),
            LargeBets.fresh(n_classes),
            Window.fresh(n_classes),
            Fortunes.fresh(n_bets),
            Questions.fresh(n_classes, groups),
            History.fresh(),
        )

    def _check(self) -> None:
        super()._check()
        parts = (self.small, self.large, self.window, self.questions)
        expect(
            all(part.n_classes == self.n_classes for part in parts), "all parts must be of the same classes"
        )
        expect(self.fortunes.start.size in {0, len(families(self.n_classes))}, "each bet must have a fortune")
        expect(self.begun <= self.n_rows, "a game cannot begin after its last row")
        expect(self.window.n_rows == self.n_rows, "all parts must have seen the same rows")

    @property
    def evidence(self) -> float:
        """The logarithm of the e-value, to base 10, with those of the games merged."""
        return (self.log_evidence + self.log_others) / _LN10

    @property
    def bets_on_calibrators(self) -> bool:
        """Whether calibrators bet: with a tolerance they do not."""
        return self.fortunes.start.size > 0

    def since(self) -> int:
        """The row since when the richest bettor has won."""
        on_calibrators, on_questions = self.fortunes.leader(), self.questions.leader()
        return max(on_calibrators, on_questions)[1]

    def bets(self) -> dict[str, float]:
        """The fortune of each family of bettors as a part of the money it was given at first, log 10."""
        names = families(self.n_classes) if self.bets_on_calibrators else ()
        share = self._share(0 if names else 1)
        out = {}
        for name in dict.fromkeys(names):
            own = np.array([other == name for other in names])
            given = np.logaddexp.reduce(log_weights(self.n_classes)[own]) + np.log(self._share(0))
            out[name] = float(np.logaddexp.reduce(self.fortunes.log_fortune[own]) - given) / _LN10
        total = float(self.questions.fortune.sum()) / (self._share(1) if names else share)
        return out | {"questions": float(np.log10(max(total, 1e-300)))}

    def absorb(self, stream: Stream, rules: Rules) -> None:
        """Take in rows."""
        start, n = 0, stream.labels.size
        most = max(1, _BLOCK_CELLS // self.n_classes)
        new = self._new_slices(stream.features)
        while start < n:
            for column, value in new.get(start, []):
                self.questions.add_slice(column, value, self.n_rows)
            coming = min((row for row in new if row > start), default=n)
            stop = min(coming, start + most, start + self._next_event() - self.n_rows)
            self._advance(stream.take(slice(start, stop)), rules)
            start = stop

    def merge(self, other: "Game", rules: Rules) -> None:
        """Take in the evidence and the sums of another game, which saw other rows."""
        self.questions.merge(other.questions, self.n_rows)
        self.log_others += other.log_evidence + other.log_others
        self.other_rows += other.n_rows + other.other_rows
        self.impossible += other.impossible
        if not self.alarms.size and self.log_evidence + self.log_others >= rules.threshold:
            self.alarms = np.array([[self.n_rows + self.other_rows - 1, 0]])

    def _share(self, which: int) -> float:
        """The part of all money that calibrators (0) or questions (1) get."""
        if not self.bets_on_calibrators:
            return float(which)
        return _FOR_QUESTIONS if which else 1.0 - _FOR_QUESTIONS

    def _next_event(self) -> int:
        events = [self.questions.marks.next_row(self.n_rows), next_search(self.n_rows)]
        return min([*events, self.large.next_row] if self.bets_on_calibrators else events)

    def _new_slices(self, features: Columns) -> dict[int, list[tuple[str, str]]]:
        """Values of features that were not met before and can be watched, by the row at which they first are."""
        room = self.questions.room_for_slices
        met = [
            (row, column, value)
            for column, values in (features.items() if room else ())
            for value, row in zip(*map(np.ndarray.tolist, np.unique(values, return_index=True)), strict=True)
            if (column, value) not in self.questions.slices
        ]
        new: dict[int, list[tuple[str, str]]] = {}
        for row, column, value in sorted(met, key=lambda entry: entry[0])[:room]:
            new.setdefault(row, []).append((column, value))
        return new

    def _advance(self, stream: Stream, rules: Rules) -> None:
        """Take in rows until the next event, and let it happen."""
        proba, labels = stream.proba, stream.labels
        asked = self.questions.ask(proba, labels, stream.features)
        gains = (
            log_gains(self.small, self.large, proba, labels)
            if self.bets_on_calibrators
            else np.empty((labels.size, 0))
        )
        self._bet(gains, asked, rules)
        self.questions.tally(asked)
        self.window.add(proba, labels)
        self.impossible += int(np.count_nonzero(proba[np.arange(labels.size), labels] < FLOOR))
        searches = next_search(self.n_rows) <= self.n_rows + labels.size
        self.n_rows += labels.size
        self.questions.marks.set(self.n_rows, self.questions.count, self.questions.sums, self.questions.bins)
        if self.bets_on_calibrators:
            self.large.fit_due(self.window)
        if searches and self.n_classes > 2:
            self._search()

    def _search(self) -> None:
        found = find_short_set(*self.window.last(SEARCH_ROWS))
        if found.size:
            self.questions.replace_found(found, self.n_rows)

    def _bet(self, gains: Float64s, asked: tuple[Float64s, Answers], rules: Rules) -> None:
        """Bet on rows; after one of many alarms the game begins anew."""
        start, n = 0, gains.shape[0]
        while start < n:
            fortunes, money = self.fortunes.copy(), self.questions.money()
            stop, total = n, self._play(gains[start:], asked, start, rules)
            over = np.flatnonzero(total + self.log_others >= rules.threshold)
            alarmed = over.size > 0 and (rules.many or not self.alarms.size)
            if alarmed:
                # The alarm is raised with what was known at its row; bets on later rows are made after it.
                self.fortunes = fortunes
                self.questions.restore(money)
                stop = start + int(over[0]) + 1
                total = self._play(gains[start:stop], asked, start, rules)
            numbers = self.n_rows + np.arange(start, stop) + 1
            self.history.add(numbers, (total + self.log_others) / _LN10)
            self.log_evidence = float(total[-1])
            if alarmed:
                self._raise_alarm(self.n_rows + stop - 1, rules)
            start = stop

    def _play(self, gains: Float64s, asked: tuple[Float64s, Answers], start: int, rules: Rules) -> Float64s:
        """Bet on some of the rows; returns the logarithm of all money after each."""
        n = gains.shape[0]
        rows = self.n_rows + start + np.arange(n)
        stake = stakes(rows - self.begun, many=rules.many)
        money = self._share(1) * self.questions.money_given(rows, self.begun, many=rules.many)
        part = (asked[0][start : start + n], asked[1][start : start + n])
        spare = self.questions.bet(part, rules.tolerance, money, rows)
        # What is meant for slices is not counted before they are met.
        spare += (1.0 - self._share(1) * FOR_SLICES) * kept(rows - self.begun, many=rules.many)
        if not self.bets_on_calibrators:
            return np.log(spare)
        weights = log_weights(self.n_classes)
        on_calibrators = self.fortunes.follow(gains, weights, stake * self._share(0), rows)
        return np.logaddexp(on_calibrators, np.log(spare))

    def _raise_alarm(self, row: int, rules: Rules) -> None:
        self.alarms = np.append(self.alarms, [[row, self.since()]], axis=0)[-_MOST_ALARMS:]
        if rules.many:
            self.begun = row + 1
            self.fortunes = Fortunes.fresh(self.fortunes.start.size)
            self.questions.begin_anew()
