"""How often each value of a bounded number occurred, and what that shows of its mean, by betting."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.inference.betting import (
    Game,
    lower_bound,
    mirrored,
    mixture_lower_bound,
    mixture_p_value,
    p_value,
    set_up,
)
from polycal.states.sums import Runs
from polycal.storage.rules import Array, Part, Real, expect
from polycal.storage.saved import Saved

# Values, scaled to [0, 1], are rounded down to multiples of this.
CELL = 2.0**-18
# More rows than this are too many for the sequential game; there the mixture of fixed bets is sharp enough.
MOST_PLAYED = 1 << 19


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets on the mean of values in [0, 1]: a game of row after row, or fixed bets where rows are too many.

    Attributes
    ----------
    columns : ndarray of shape (3, n)
        Values as numbers of cells, weights, and how many rows have both.
    random_state : int
        Seed of the orders in which rows are bet on.
    most_played : int
        Rows beyond which bets are fixed.
    """

    columns: Float64s
    random_state: int
    most_played: int = MOST_PLAYED

    def lower(self, alpha: float) -> float:
        """What the mean of the rounded values exceeds with probability at least ``1 - alpha``."""
        if self._game is None:
            return mixture_lower_bound(*self._table, alpha)
        return lower_bound(self._game, alpha)

    def upper(self, alpha: float) -> float:
        """What the mean of the rounded values stays below with probability at least ``1 - alpha``."""
        if self._game is None:
            values, stake, count = self._table
            return 1.0 - mixture_lower_bound(1.0 - values, stake, count, alpha)
        return 1.0 - lower_bound(mirrored(self._game), alpha)

    def p_value(self, mean: float) -> float:
        """Of the hypothesis that the mean is at most this."""
        return mixture_p_value(*self._table, mean) if self._game is None else p_value(self._game, mean)

    @cached_property
    def _table(self) -> tuple[Float64s, Float64s, Float64s]:
        cells, weight, count = self.columns
        return cells * CELL, weight / weight.max(), count

    @cached_property
    def _game(self) -> Game | None:
        cells, weight, count = self.columns
        if count.sum() > self.most_played:
            return None
        times = count.astype(np.int64)
        same = (weight == weight[0]).all()
        return set_up(
            np.repeat(cells * CELL, times), None if same else np.repeat(weight, times), self.random_state
        )


class Tally(Saved):
    """Values of a known range, counted in cells of 2^-18 of it; with running sums, so that means are exact.

    If the mean of the values is at most m, so is that of the values rounded down: lower bounds hold exactly. Upper
    bounds are raised by one cell.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "tally"

    low: Annotated[float, Real()]
    high: Annotated[float, Real()]
    runs: Annotated[Runs, Part((Runs,))]
    # Of u, u x, u^2, u^2 x, u^2 x^2 for weights u and x the value scaled to [0, 1].
    sums: Annotated[Float64s, Array("float64", "5", low=0)]

    def __init__(
        self, low: float, high: float, runs: Runs | None = None, sums: Float64s | None = None
    ) -> None:
        self.low, self.high = float(low), float(high)
        # Value and weight are the keys, the number of rows is what adds up.
        self.runs = Runs(2, np.zeros((3, 0))) if runs is None else runs
        self.sums = np.zeros(5) if sums is None else sums

    def add(self, values: Float64s, weight: Float64s) -> None:
        """Take in values of rows of positive weight."""
        x = ((values - self.low) / self._width).clip(0.0, 1.0)
        self.runs.add(np.stack([np.floor(x / CELL), weight, np.ones(x.size)]))
        square = weight * weight
        self.sums += [weight.sum(), weight @ x, square.sum(), square @ x, square @ (x * x)]

    def merge(self, other: "Tally") -> None:
        """Take in another's values."""
        self.runs.merge(other.runs)
        self.sums = self.sums + other.sums

    @property
    def mean(self) -> float:
        """The weighted mean of all values."""
        return self.low + self._width * float(self.sums[1] / self.sums[0])

    @property
    def std_error(self) -> float:
        """The usual standard error of the mean."""
        total, gain, square, square_gain, square_gain_gain = self.sums
        mean, n = gain / total, float(self.runs.whole()[2].sum())
        squares = square_gain_gain - 2.0 * mean * square_gain + mean**2 * square
        return self._width * float(np.sqrt(n / max(n - 1.0, 1.0) * max(squares, 0.0)) / total)

    def bets(self, random_state: int) -> "ScaledBets":
        """Bets on the mean."""
        return ScaledBets(Bets(self.runs.whole(), random_state), self.low, self._width)

    def _check(self) -> None:
        super()._check()
        expect(self.low <= self.high, "a range must not end before it begins")
        expect(self.runs.n_keys == 2, "values and weights must be the keys")
        cells, weight, count = self.runs.check_columns(3)
        whole = (cells == np.floor(cells)).all() and (count == np.floor(count)).all()
        expect(
            whole and (cells >= 0).all() and (cells * CELL <= 1).all(), "values must be multiples of a cell"
        )
        expect((weight > 0).all() and (count >= 1).all(), "weights and counts must be positive")
        total, gain, *_ = self.sums
        expect(np.isclose(total, weight @ count, rtol=1e-6), "the weights of a tally must add up")
        expect(gain <= total * (1.0 + 1e-6), "values must not leave their range")

    @property
    def _width(self) -> float:
        return (self.high - self.low) or 1.0


@dataclass(frozen=True, eq=False)
class ScaledBets:
    """Bets on the mean of values of any range."""

    bets: Bets
    low: float
    width: float

    def lower(self, alpha: float) -> float:
        """A lower bound of the mean."""
        return self.low + self.width * self.bets.lower(alpha)

    def upper(self, alpha: float) -> float:
        """An upper bound of the mean: what rounding took off is put back."""
        return self.low + self.width * min(1.0, self.bets.upper(alpha) + CELL)

    def p_value(self, null: float = 0.0) -> float:
        """Of the hypothesis that the mean is at most the null."""
        return self.bets.p_value(min(max((null - self.low) / self.width, 0.0), 1.0))
