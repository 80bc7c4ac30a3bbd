"""Both sides of the error of a question that nobody searched for, from all rows at once.

The smooth calibration error of a question is a supremum over weight functions. From below it can be shown on rows that
chose no weight function. From above something simpler helps: the weight function that is best for the *distribution* is
unknown but not random, so its correlation on the rows is near its expectation, and is at most the error of the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s
from polycal.sample import Question

# Of the level of the bound from above, what goes to the bound of the variance that it needs; of the level of the bound
# from below, what goes to the bound by all weight functions, the rest to the one by constant ones.
_SPREAD_SHARE, _SUPREMUM_SHARE = 0.2, 0.2
# The expected supremum over weight functions is at most this many standard errors: one for the constant part, and
# sqrt(1/2) for the rest, since cumulative residuals have at most half of the variance on either side of 1/2.
_SUPREMUM = 1.0 + np.sqrt(0.5)
# Points at which Bentkus' moment is tried, in standard errors; and rows from which tails of the binomial distribution
# are no longer computed exactly enough.
_POINTS = np.linspace(0.0, 5.0, 21)
_MOST_ROWS = 1_000_000
_LARGEST_STAKE = 0.9


@dataclass(frozen=True)
class Residuals:
    """What bounds need to know of a question's rows, each with weight a in (0, 1] and residual r = y - u.

    Attributes
    ----------
    n_samples : int
        Rows of positive weight, n.
    error : float
        Smooth calibration error of the rows.
    doubt : float
        The error may be off by this, where predictions were put into cells.
    stake, stake_square : float
        Means of a and of its square: 1 if all rows weigh the same.
    mean, tilted : float
        Means of a r, and of a r (1 - 2 u).
    square, variance : float
        Means of the squares of a r, and of what they would be if predictions were right, a u (1 - u) a.
    """

    n_samples: int
    error: float
    doubt: float
    stake: float
    stake_square: float
    mean: float
    tilted: float
    square: float
    variance: float

    @classmethod
    def of_question(cls, question: Question, error: float) -> "Residuals":
        """From the rows themselves."""
        weight = question.weight
        stake = np.ones(question.predicted.size) if weight is None else weight / weight.max()
        predicted = question.predicted.astype(np.float64, copy=False)
        residual = stake * (question.hits - predicted)
        n = int(np.count_nonzero(stake))
        return cls(
            n_samples=n,
            error=error,
            doubt=0.0,
            stake=float(stake.sum()) / n,
            stake_square=float(stake @ stake) / n,
            mean=float(residual.sum()) / n,
            tilted=float(residual @ (1.0 - 2.0 * predicted)) / n,
            square=float(residual @ residual) / n,
            variance=float(stake**2 @ (predicted * (1.0 - predicted))) / n,
        )


def error_bounds(residuals: Sequence[Residuals], low_level: float, high_level: float) -> Float64s:
    r"""Numbers that the true errors are at least and at most: shape (2, n_questions).

    Each holds with probability at least ``1 - low_level`` and ``1 - high_level``, for independent rows of any
    distribution. To hold together they need levels divided by the number of questions.

    Parameters
    ----------
    residuals : sequence of Residuals
        The questions, none of which depends on the labels of these rows.
    low_level, high_level : float
        The probabilities that a bound is wrong, at most.

    Notes
    -----
    Let :math:`s = \mathbb{E} r \varphi^*(u)` be the true error. From above, the error of the rows is at least the mean
    of :math:`r \varphi^*(u)`, whose summands are at least -1 and have a second moment of at most
    :math:`\mathbb{E} r^2`: Bentkus' inequality (2004) bounds how far it is below s, and Chernoff's the second moment.
    From below, by Bousquet's inequality (2002) for the supremum over all :math:`\varphi`, or by Bentkus' for the
    constant ones, whichever gives more. The width is about 1.4 to 1.9 times that of normal theory from above (from
    2,000 rows on), and more from below. Of weighted rows the error is a ratio, and summands are
    :math:`a (r \varphi - s)`.
    """
    if not residuals:
        return np.zeros((2, 0))
    n, error, doubt, stake, stake_square, mean, _, square, _ = (
        np.array([getattr(one, name) for one in residuals]) for name in Residuals.__dataclass_fields__
    )
    is_weighted = stake < 1.0 - 1e-12
    variance = _mean_upper(square, n, _SPREAD_SHARE * high_level)
    # A mean of a (r phi - s) has the second moment (sqrt(E a^2 r^2) + s sqrt(E a^2))^2 at most.
    other = np.sqrt(_mean_upper(stake_square, n, _SPREAD_SHARE * high_level / 2)) * is_weighted
    share = (1.0 - _SPREAD_SHARE) * high_level - _SPREAD_SHARE * high_level / 2 * is_weighted.any()

    def spread(s: Float64s) -> Float64s:
        second_moment: Float64s = np.minimum((np.sqrt(variance) + s * other) ** 2, (1.0 + s) ** 2)
        return second_moment

    # The width depends on the error, which is at most 1: a bound of it gives a better one.
    at_most = np.ones_like(error)
    for _ in range(3):
        width = deviation(spread(at_most), 1.0 + at_most, n, share) / stake
        at_most = np.minimum(error + doubt + width, 1.0)
    one_side = (1.0 - _SUPREMUM_SHARE) * low_level / 2
    constant = np.abs(mean) - deviation(spread(at_most), 1.0 + at_most, n, one_side)
    supremum = error - doubt - _supremum(variance, other, at_most, n, _SUPREMUM_SHARE * low_level) / stake
    return np.stack([np.clip(np.maximum(constant / stake, supremum), 0.0, at_most), at_most])


def deviation(variance: Float64s, largest: Float64s, n_samples: Float64s, level: float) -> Float64s:
    """What a mean of n independent numbers exceeds its expectation by with probability at most ``level``.

    Of numbers that exceed their expectation by at most ``largest``, with variance at most ``variance``: Bentkus'
    inequality, whose tail is 3.7 times that of the normal distribution; beyond a million rows Bernstein's.
    """
    n = np.minimum(n_samples, _MOST_ROWS).astype(np.float64)
    variance = np.maximum(variance, 1e-300)
    # Sums of two values have the largest moments: J of n times `largest`, else a little below 0.
    step = largest + variance / largest
    chance = variance / (largest * step)
    spread = np.sqrt(n * variance)
    point = _POINTS[:, None] * spread
    place = (point + n * variance / largest) / step
    first = np.floor(place) + 1.0
    tail = [_tail(first - j, n - j, chance) for j in range(3)]
    moment = (
        n * (n - 1) * chance**2 * tail[2] + n * chance * (1.0 - 2.0 * place) * tail[1] + place**2 * tail[0]
    )
    exact = np.min(point + step * np.sqrt(np.maximum(moment, 0.0) / level), axis=0) / n
    x = -np.log(level)
    rough = np.sqrt(2.0 * x * variance / n_samples) + largest * x / (3.0 * n_samples)
    width: Float64s = np.where(n_samples <= _MOST_ROWS, np.minimum(exact, rough), rough)
    return width


def _tail(first: Float64s, n: Float64s, chance: Float64s) -> Float64s:
    """The probability that a binomial variable is at least ``first``, a whole number."""
    from scipy.special import betainc  # noqa: PLC0415 - not needed to import polycal

    inside = (first >= 1) & (first <= n)
    tail: Float64s = np.where(
        inside,
        betainc(np.where(inside, first, 1.0), np.where(inside, n - first + 1.0, 1.0), chance),
        first < 1,
    )
    return tail


def _mean_upper(mean: Float64s, n_samples: Float64s, level: float) -> Float64s:
    """What the expectation of numbers in 0 to 1 exceeds with probability at most ``level``: Chernoff's inequality."""
    goal = -np.log(level) / n_samples
    low, high = mean, np.ones_like(mean)
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(mean > 0, mean * np.log(mean / middle), 0.0)
            rest = np.where(mean < 1, (1.0 - mean) * np.log((1.0 - mean) / (1.0 - middle)), 0.0)
        near = kept + rest <= goal
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return high


def _supremum(
    variance: Float64s, other: Float64s, at_most: Float64s, n_samples: Float64s, level: float
) -> Float64s:
    """What some weight function's mean exceeds its expectation by with probability at most ``level``: Bousquet's."""
    x, largest = -np.log(level), 1.0 + at_most
    expected = (_SUPREMUM * np.sqrt(variance) + at_most * other) / np.sqrt(n_samples)
    spread = (np.sqrt(variance) + at_most * other) ** 2 + 2.0 * largest * expected
    width: Float64s = expected + np.sqrt(2.0 * x * spread / n_samples) + largest * x / (3.0 * n_samples)
    return width


def e_value(residuals: Residuals, level: float) -> float:
    r"""Evidence against the hypothesis that a question's predictions are right, from all rows.

    Its expectation under the hypothesis is at most 1, given the predictions and weights. It is the mean of four bets,
    on the weight functions :math:`\pm 1` and :math:`\pm (1 - 2u)`, of
    :math:`\exp(\lambda \sum a r \varphi - \psi(\lambda) \sum a^2 r^2)` with
    :math:`\psi(\lambda) = -\log(1 - \lambda) - \lambda` (Fan, Grama and Liu 2015); :math:`\lambda` is best for
    evidence of ``1 / level`` if predictions are right, and does not depend on the labels.
    """
    n = residuals.n_samples
    spread = max(n * residuals.variance, 1e-300)
    stake = min(np.sqrt(2.0 * np.log(4.0 / level) / spread), _LARGEST_STAKE)
    price = (-np.log1p(-stake) - stake) * n * residuals.square
    gains = np.array([residuals.mean, -residuals.mean, residuals.tilted, -residuals.tilted])
    gains[2:] -= 2.0 * residuals.doubt * residuals.stake
    return float(np.exp(np.minimum(stake * n * gains - price, 690.0)).mean())


def discoveries(e_values: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses e-BH rejects: of them at most a share alpha is expected to be true, however they depend.

    The procedure of Wang and Ramdas (2022): with j the largest number for which j of the m e-values are at least
    m / (j alpha), those j.

    Examples
    --------
    >>> discoveries([100.0, 1.0, 35.0], 0.1)
    [True, False, True]
    """
    e = np.asarray(e_values, dtype=np.float64)
    order = np.argsort(-e, kind="stable")
    reached = np.flatnonzero(e[order] * np.arange(1, e.size + 1) * alpha >= e.size)
    n_rejected = 0 if reached.size == 0 else int(reached[-1]) + 1
    found = np.zeros(e.size, dtype=np.bool_)
    found[order[:n_rejected]] = True
    return found.tolist()
