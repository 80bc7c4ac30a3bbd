r"""Testing a bounded mean by a mixture of fixed bets: additive, for more rows than the sequential game can play.

A gambler who bets the share :math:`\lambda` of the fortune on every row ends with
:math:`\prod_i (1 + \lambda u_i (x_i - m))`, whose mean is at most 1 if the mean of x (weighted by u) is at most m.
So has the average of several such gamblers, and it ends above :math:`1/\alpha` with probability at most
:math:`\alpha`. The shares are fixed beforehand by the number of rows alone; the fortune falls in m, so the means
rejected are an interval.
"""

import numpy as np

from polycal._typing import Float64s

# The level whose best bets the smallest share is made for; others lose a little.
_LOG_LEVEL = 3.0
_SMALLEST_P_VALUE = 1e-300
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
    return float(np.clip(np.exp(-_log_fortune(values, stake, count, mean)), _SMALLEST_P_VALUE, 1.0))


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
