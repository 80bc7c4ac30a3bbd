r"""Fortunes: when money is put on the bets, how it grows, and when it is evidence.

Each bettor gets new money before every row: most of it before the first, a little before each later one, so that money
is there when something changes. With new money :math:`g_t` and gains :math:`L_t`, a fortune is

.. math:: F_t = (F_{t-1} + g_t) L_t = \sum_{s \le t} g_s L_s L_{s+1} \cdots L_t .

*One alarm.* All money that is ever given adds up to at most 1, and what is not yet given is kept. If labels follow the
predictions, the sum M of all fortunes and of what is kept is a supermartingale that starts at 1, so that it ever
reaches :math:`1/\alpha` with probability at most :math:`\alpha` (Ville).

*Many alarms.* One coin is given before every row, and nothing is kept. Then :math:`F_t - t` is a martingale (Shiryaev
and Roberts): the mean number of rows until F reaches :math:`1/\alpha` by chance is at least :math:`1/\alpha`. After an
alarm everything begins anew.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.storage.rules import Array
from polycal.storage.saved import Saved

# The part of the money that is on the bets from the first row on, and how slowly the rest follows.
_AT_ONCE, _SLOWNESS = 0.75, 100.0
# The logarithm of no money.
_NOTHING = -1e30


def stakes(rows: Ints, *, many: bool) -> Float64s:
    """The money that all bettors together get before each row; rows are counted from 0, or from the last alarm."""
    if many:
        return np.ones(rows.size)
    # Terms of a sum below the integral of a function whose integral is 1.
    later = np.maximum(rows, 1) + _SLOWNESS
    spread = np.log(_SLOWNESS) / (later * np.log(later) ** 2)
    return np.where(rows == 0, _AT_ONCE, (1.0 - _AT_ONCE) * spread)


def kept(rows: Ints, *, many: bool) -> Float64s:
    """The money that is not yet given after each row, or a little less: it falls by no less than what is given."""
    if many:
        return np.zeros(rows.size)
    left: Float64s = (1.0 - _AT_ONCE) * np.log(_SLOWNESS) / np.log(rows + _SLOWNESS)
    return left


@dataclass(eq=False)
class Fortunes(Saved):
    """The fortune of each bettor, as a logarithm.

    Attributes
    ----------
    log_fortune : ndarray of shape (n_bets,)
    log_won : ndarray of shape (n_bets,)
        What one coin has become since the row at which it would have become most.
    start : ndarray of int64, shape (n_bets,)
        That row: since then the bettor has won.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "fortunes"

    log_fortune: Annotated[Float64s, Array("float64", "n_bets")]
    log_won: Annotated[Float64s, Array("float64", "n_bets")]
    start: Annotated[Ints, Array("int64", "n_bets", low=0)]

    @classmethod
    def fresh(cls, n_bets: int) -> "Fortunes":
        """No money yet."""
        return cls(np.full(n_bets, _NOTHING), np.full(n_bets, _NOTHING), np.zeros(n_bets, dtype=np.int64))

    def copy(self) -> "Fortunes":
        """Fortunes that can go their own way."""
        return Fortunes(self.log_fortune.copy(), self.log_won.copy(), self.start.copy())

    def follow(self, log_gain: Float64s, log_weight: Float64s, stake: Float64s, rows: Ints) -> Float64s:
        """Bet on rows, of which the numbers are given; returns the logarithm of all fortunes after each.

        Of the ``stake`` before each row, every bettor gets the part ``exp(log_weight)``.
        """
        from polycal._compiled.monitor import invest  # noqa: PLC0415 - imports numba

        total = np.full(rows.size, _NOTHING)
        if self.start.size:
            invest(
                log_gain,
                np.log(stake),
                log_weight,
                rows,
                self.log_fortune,
                self.log_won,
                self.start,
                total,
            )
        return total

    def leader(self) -> tuple[float, int]:
        """The logarithm of the largest fortune, and the row since when its bettor has won."""
        if self.start.size == 0:
            return _NOTHING, 0
        richest = int(self.log_fortune.argmax())
        return float(self.log_fortune[richest]), int(self.start[richest])
