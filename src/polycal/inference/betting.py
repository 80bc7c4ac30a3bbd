"""Betting games on bounded values: the game itself, and mixtures of fixed bets where rows are too many to play."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from polycal._typing import Bools, Float64s

# Points tried at once: independent games hide each other's latency.
_SECTIONS = 4
_PROFILE_SIZE = 1024
_SMALLEST_P_VALUE = 1e-300


@dataclass(frozen=True, eq=False)
class Game:
    """Rows in a few random orders, scaled to [0, 1], with what the gambler knows before each.

    Attributes
    ----------
    gain, stake : ndarray of shape (n_orders, n)
        ``u x`` and ``u``, for values x in [0, 1] and weights u with maximum 1.
    inverse : ndarray of shape (n_orders, n)
        The inverse of the standard deviation of the sum of the rows left, as estimated so far.
    """

    gain: Float64s
    stake: Float64s
    inverse: Float64s

    @property
    def mean(self) -> float:
        """The weighted mean of the values."""
        return float(self.gain[0].sum() / self.stake[0].sum())

    @property
    def goal(self) -> float:
        """rho: less than 1, for the last few bets are too coarse to reach 1 exactly."""
        return max(0.5, 1.0 - 1.0 / float(np.sqrt(np.sqrt(self.gain.shape[1]))))

    def rejected(self, means: Float64s, alphas: Float64s) -> Bools:
        """Whether "the mean is at most m" is rejected at level alpha, for each pair."""
        from polycal._compiled import betting as kernels  # noqa: PLC0415 - imports numba

        fortunes = kernels.play(self.gain, self.stake, self.inverse, _profile(), means, self.goal * alphas)
        won: Bools = fortunes >= self.goal
        return won


def set_up(values: Float64s, weight: Float64s | None, random_state: int) -> Game:
    """The game for values in [0, 1]; the same whatever the order of the rows."""
    from polycal._compiled import betting as kernels  # noqa: PLC0415 - imports numba

    if weight is None:
        stake = np.ones(values.size)
        gain = np.sort(values)
    else:
        rows = np.lexsort((weight, values))
        rows = rows[weight[rows] > 0]
        stake = weight[rows] / weight.max()
        gain = values[rows] * stake
    rng = np.random.default_rng(random_state)
    # An average of fortunes is a fortune: more orders make the result depend less on the one drawn.
    n_orders = min(max(200_000 // gain.size, 2), 8)
    orders = [rng.permutation(gain.size) for _ in range(n_orders)]
    gains, stakes = np.stack([gain[o] for o in orders]), np.stack([stake[o] for o in orders])
    return Game(gains, stakes, kernels.inverse_spread(gains, stakes))


def mirrored(game: Game) -> Game:
    """The game on 1 - x, whose lower bound is one minus an upper bound for x."""
    return Game(game.stake - game.gain, game.stake, game.inverse)


def lower_bound(game: Game, alpha: float) -> float:
    """The largest mean found that is rejected at level alpha (0 if none), to a thousandth of its error."""
    error = standard_error(game.gain[0], game.stake[0])

    def rejected(means: Float64s) -> Bools:
        return game.rejected(means, np.full(means.size, alpha))

    # From the interval of the central limit theorem, which is nearly right when there are many rows.
    z = NormalDist().inv_cdf(1.0 - min(alpha, 0.4))
    guesses = game.mean - error * z * np.array([8.0, 2.0, 1.2, 0.8])
    tolerance = 1e-3 * (error + 1.0 / game.gain.shape[1])
    return _last_true(rejected, 0.0, game.mean, tolerance, guesses)


def p_value(game: Game, mean: float) -> float:
    """The smallest level found at which "the mean is at most this" is rejected, to a thousandth of itself."""
    if not 0.0 < mean < 1.0:
        return 1.0 if mean >= game.mean else _SMALLEST_P_VALUE

    def rejected(minus_log_alpha: Float64s) -> Bools:
        return game.rejected(np.full(minus_log_alpha.size, mean), np.exp(-minus_log_alpha))

    return float(np.exp(-_last_true(rejected, 0.0, -np.log(_SMALLEST_P_VALUE), 1e-3)))


def standard_error(gain: Float64s, stake: Float64s) -> float:
    """The usual standard error of the ratio of sums ``gain / stake``; 0 for a single row."""
    n = gain.size
    centred = gain - stake * (gain.sum() / stake.sum())
    return float(np.sqrt(n / max(n - 1, 1)) * np.linalg.norm(centred) / stake.sum())


def _last_true(
    accept: Callable[[Float64s], Bools],
    low: float,
    high: float,
    tolerance: float,
    guesses: Float64s | None = None,
) -> float:
    """The largest x found with ``accept(x)``, for accept true up to some point of [low, high] and false after."""
    while high - low > tolerance:
        if guesses is None:
            points = np.linspace(low, high, _SECTIONS + 2)[1:-1]
        else:
            points, guesses = guesses[(guesses > low) & (guesses < high)], None
        if points.size:
            n_accepted = int(np.count_nonzero(accept(points)))
            edges = [low, *points.tolist(), high]
            low, high = edges[n_accepted], edges[n_accepted + 1]
    return low


@cache
def _profile() -> Float64s:
    """phi(Phi^-1(V)) at V = (j / N)^2 / 2, j = 0..N: knots that are dense where V is small."""
    normal = NormalDist()
    shares = (np.arange(1, _PROFILE_SIZE + 1) / _PROFILE_SIZE) ** 2 / 2.0
    return np.array([0.0, *(normal.pdf(normal.inv_cdf(float(share))) for share in shares)])


# The level whose best bets the smallest share is made for; others lose a little.
_LOG_LEVEL = 3.0
_SMALLEST_MIXED_P_VALUE = 1e-300
_TOLERANCE = 1e-9


def mixture_lower_bound(values: Float64s, stake: Float64s, count: Float64s, alpha: float) -> float:
    """A number in [0, 1] that the mean of the values exceeds with probability at least ``1 - alpha``."""
    low, high = 0.0, float((count * stake) @ values / (count @ stake))
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        if _log_fortune(values, stake, count, middle) >= -np.log(alpha):
            low = middle
        else:
            high = middle
    return low


def mixture_p_value(values: Float64s, stake: Float64s, count: Float64s, mean: float) -> float:
    """A p-value of the hypothesis that the mean of the values is at most ``mean``."""
    return float(np.clip(np.exp(-_log_fortune(values, stake, count, mean)), _SMALLEST_MIXED_P_VALUE, 1.0))


def _log_fortune(values: Float64s, stake: Float64s, count: Float64s, mean: float) -> float:
    payoff = stake * (values - mean)
    logs = np.array([count @ np.log1p(share * payoff) for share in _shares(float(count.sum()))])
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).mean()))


def _shares(n: float) -> Float64s:
    """From what suits values that fill their range, up to just below the whole fortune, by factors of sqrt 2."""
    smallest = min(0.9, 2.0 * np.sqrt(2.0 * _LOG_LEVEL / n))
    steps = int(np.ceil(2.0 * np.log2(0.9 / smallest)))
    shares: Float64s = 0.9 * np.exp2(-0.5 * np.arange(steps + 1))
    return shares
