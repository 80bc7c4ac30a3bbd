"""Bounds for means of bounded values, valid for every distribution and number of rows."""

from typing import Any

import numpy as np

from polycal._typing import Seed
from polycal._validation import (
    check_integer,
    check_length,
    check_level,
    check_real,
    check_seed,
    check_values,
    check_weight,
)
from polycal.inference.betting import Game, lower_bound, mirrored, p_value, set_up


def mean_lower_bound(
    values: Any, *, low: float, high: float, alpha: float = 0.05, weight: Any = None, random_state: Seed = 0
) -> float:
    r"""Compute a number that the true mean exceeds with probability at least ``1 - alpha``.

    Parameters
    ----------
    values : array-like of shape (n,)
        Independent draws, all in [low, high].
    low, high : float
        The range that the values cannot leave, known without looking at them.
    alpha : float, default 0.05
        The probability that the bound is wrong, at most.
    weight : array-like of shape (n,), optional
        The bound is then for the weighted mean E[w x] / E[w].
    random_state : int, Generator or None, default 0
        Seed of the orders in which rows are bet on. The order in which they are given does not matter.

    Returns
    -------
    float
        At least `low`, and at most the mean of the values.

    See Also
    --------
    mean_p_value : The same evidence as a p-value; at most `alpha` when the bound exceeds the null.
    mean_interval : Both sides.

    Notes
    -----
    Definition: the largest m for which "the mean is at most m" is rejected by a gambler who bets on one row
    after the other, at odds that are fair if the mean is m [1]_, aiming at the fortune that rejects at level
    alpha in exactly n rows [2]_. Here the bets are those that would reach it whenever the z-test rejects, if rows
    were normal. Orders are random, and fortunes averaged over 8 of them (fewer beyond 25,000 rows). Validity
    needs independent rows only: no normality, no large n.

    Width: the distance to the mean is that of the central limit theorem's bound times a factor that tends to 1.
    Seen at level 0.05 on uniform and fair two-point values: 1.15 at n = 100, 1.1 at 1,000, 1.05 at 10,000,
    where Maurer and Pontil's bound (`empirical_bernstein_bound`) has 3.5, 2.2 and 1.8. Values that use little of
    their range need more rows: with a standard deviation of a fiftieth of it, 5 at n = 100, 2 at 1,000, 1.3 at
    10,000. Cost: a sort and about seven passes of O(n).

    Weights: rows are taken as independent draws of (value, weight), no weight being larger than the largest
    given. A row of weight 2 is one row that counts double, not two independent ones: it proves less.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
    .. [2] Voráček and Orabona (2025), "STaR-Bets: Sequential Target-Recalculating Bets for Tighter Confidence
       Intervals".

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(0).uniform(-0.2, 0.3, 1000)
    >>> bound = mean_lower_bound(values, low=-1, high=1)
    >>> bool(0.03 < bound < 0.05)
    True
    """
    check_level(alpha)
    game = make_game(values, low, high, weight, random_state)
    return low + (high - low) * lower_bound(game, alpha)


def mean_p_value(
    values: Any, *, low: float, high: float, null: float = 0.0, weight: Any = None, random_state: Seed = 0
) -> float:
    """Compute a p-value of the hypothesis that the true mean is at most `null`.

    Parameters
    ----------
    values, low, high, weight, random_state
        As for `mean_lower_bound`.
    null : float, default 0
        The largest mean under the hypothesis.

    Returns
    -------
    float
        In (0, 1]. If the hypothesis holds, at most alpha with probability at most alpha, for every alpha.

    Notes
    -----
    The smallest level at which the test of `mean_lower_bound` rejects, rounded up by a thousandth of itself and
    never below 1e-300. The levels at which it rejects are an interval, so this is a p-value without correction.

    Examples
    --------
    >>> import numpy as np
    >>> mean_p_value(np.zeros(100), low=-1, high=1)
    1.0
    >>> mean_p_value(np.full(100, 0.5), low=-1, high=1) < 1e-6
    True
    """
    game = make_game(values, low, high, weight, random_state)
    check_real(null, "null", low=low, high=high)
    return p_value(game, (null - low) / (high - low))


def mean_interval(
    values: Any, *, low: float, high: float, alpha: float = 0.05, weight: Any = None, random_state: Seed = 0
) -> tuple[float, float]:
    """Compute an interval that holds the true mean with probability at least ``1 - alpha``.

    Parameters
    ----------
    values, low, high, alpha, weight, random_state
        As for `mean_lower_bound`, which is used for both sides at level ``alpha / 2``.

    Returns
    -------
    tuple of float
        Lower and upper end.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(0).uniform(-0.2, 0.3, 1000)
    >>> lower, upper = mean_interval(values, low=-1, high=1)
    >>> bool(0.03 < lower < 0.05 < upper < 0.07)
    True
    """
    check_level(alpha)
    game = make_game(values, low, high, weight, random_state)
    return (
        low + (high - low) * lower_bound(game, alpha / 2),
        high - (high - low) * lower_bound(mirrored(game), alpha / 2),
    )


def empirical_bernstein_bound(values: Any, *, low: float, high: float, alpha: float = 0.05) -> float:
    r"""Compute Maurer and Pontil's lower confidence bound for the mean: simple, valid, and wide.

    Parameters
    ----------
    values, low, high, alpha
        As for `mean_lower_bound`. Two values at least.

    Returns
    -------
    float

    Notes
    -----
    Definition [1]_: :math:`\bar x - \sqrt{2 s^2 \ln(2/\alpha) / n} - 7 (high - low) \ln(2/\alpha) / (3 (n - 1))`
    with :math:`s^2` the sample variance.

    References
    ----------
    .. [1] Maurer and Pontil (2009), "Empirical Bernstein bounds and sample-variance penalization", Theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(0).uniform(-0.2, 0.3, 1000)
    >>> bound = empirical_bernstein_bound(values, low=-1, high=1)
    >>> bool(bound < mean_lower_bound(values, low=-1, high=1))
    True
    """
    check_level(alpha)
    x = check_values(values, low, high)
    check_integer(x.size, "the number of values", minimum=2)
    log_term = np.log(2.0 / alpha)
    spread = np.sqrt(2.0 * np.var(x, ddof=1) * log_term / x.size)
    return float(x.mean() - spread - 7.0 * (high - low) * log_term / (3.0 * (x.size - 1)))


def make_game(values: Any, low: float, high: float, weight: Any, random_state: int) -> Game:
    """Validate the values and set up the betting game on them, scaled to [0, 1]."""
    x = check_values(values, low, high)
    u = None if weight is None else check_weight(weight, "weight")
    if u is not None:
        check_length("weight", u, "values", x.size)
    return set_up((x - low) / (high - low), u, check_seed(random_state))
