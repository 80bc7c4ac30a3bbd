"""The two passes behind the betting bound for a bounded mean: how large the bets are, and how they end."""

import numpy as np

from polycal._compiled import compiled


@compiled
def inverse_spread(gain, stake):
    """``1 / sqrt(rows left * variance)`` before each row, the variance estimated from the rows before it.

    Row t pays ``gain - m * stake``. The estimate starts as one row of variance 1/4, the largest possible.
    """
    n_orders, n = gain.shape
    out = np.empty((n_orders, n))
    for o in range(n_orders):
        squares, count = 0.25, 1.0
        total_gain, total_stake = 0.5, 1.0
        for t in range(n):
            out[o, t] = np.sqrt(count / (squares * (n - t)))
            total_gain += gain[o, t]
            total_stake += stake[o, t]
            centred = gain[o, t] - stake[o, t] * (total_gain / total_stake)
            squares += centred * centred
            count += 1.0
    return out


@compiled
def play(gain, stake, inverse, profile, means, starts):
    """Final fortunes V in [0, 1] of several gamblers, one for each pair of a mean and a first fortune.

    Each row moves V by ``b(V) (gain - m stake)``. The bet b is ``profile(V) * inverse``, unless V could then
    leave [0, 1]. `profile` holds a concave function at ``V = (j / N)^2 / 2``, mirrored about 1/2.
    Fortunes are averaged over the orders of the rows.
    """
    n_orders, n = gain.shape
    k, size = means.size, profile.size - 1
    floor_bet, roof_bet = 1.0 / means, 1.0 / (1.0 - means)
    average = np.zeros(k)
    for o in range(n_orders):
        fortune = starts.copy()
        for t in range(n):
            for i in range(k):
                v = fortune[i]
                square = 2.0 * size * size * min(v, 1.0 - v)
                j = min(int(np.sqrt(square)), size - 1)
                height = profile[j] + (profile[j + 1] - profile[j]) * (square - j * j) / (2 * j + 1)
                bet = min(height * inverse[o, t], floor_bet[i] * v, roof_bet[i] * (1.0 - v))
                v += bet * (gain[o, t] - means[i] * stake[o, t])
                fortune[i] = min(max(v, 0.0), 1.0)
        average += fortune / n_orders
    return average
