"""Slow, obvious versions of what `polycal.inference` and the generators do."""

from itertools import product
from statistics import NormalDist

import numpy as np
from scipy.stats import binom

NORMAL = NormalDist()


def fortune(gain, stake, mean, start):
    """The gambler's final fortune, by loops and with the exact bets."""
    n, v, squares, count = len(gain), start, 0.25, 1.0
    total_gain, total_stake = 0.5, 1.0
    for t in range(n):
        bet = NORMAL.pdf(NORMAL.inv_cdf(v)) / np.sqrt(squares / count * (n - t)) if 0 < v < 1 else 0.0
        bet = min(bet, v / mean, (1 - v) / (1 - mean))
        v += bet * (gain[t] - mean * stake[t])
        total_gain, total_stake = total_gain + gain[t], total_stake + stake[t]
        squares += (gain[t] - stake[t] * total_gain / total_stake) ** 2
        count += 1
    return v


def expected_fortune(play, outcomes, probabilities, n, mean, start):
    """The mean final fortune over all sequences of n rows, each a pair (gain, stake)."""
    total = 0.0
    for rows in product(range(len(outcomes)), repeat=n):
        path = np.array([outcomes[i] for i in rows], dtype=float)
        total += np.prod([probabilities[i] for i in rows]) * play(path[:, 0], path[:, 1], mean, start)
    return total


def plug_in_bound(values, alpha, low, high):
    """The betting bound of Waudby-Smith and Ramdas: predictable plug-in bets, largest capital over time."""
    x = (np.asarray(values) - low) / (high - low)
    n = x.size
    centre = (0.5 + np.cumsum(x)) / (np.arange(n) + 2)
    variance = (0.25 + np.cumsum((x - centre) ** 2)) / (np.arange(n) + 2)
    before = np.concatenate([[0.25], variance[:-1]])
    bets = np.sqrt(2 * np.log(1 / alpha) / (n * before))
    left, right = 0.0, x.mean()
    for _ in range(40):
        m = (left + right) / 2
        capital = np.cumsum(np.log1p(np.minimum(bets, 0.5 / m) * (x - m)))
        left, right = (m, right) if capital.max() >= np.log(1 / alpha) else (left, m)
    return low + (high - low) * left


def maurer_pontil(values, alpha, low, high):
    """Maurer and Pontil (2009), Theorem 4, by loops."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((a - b) ** 2 for a in values for b in values) / (2 * n * (n - 1))
    log = np.log(2 / alpha)
    return mean - np.sqrt(2 * variance * log / n) - 7 * (high - low) * log / (3 * (n - 1))


def standard_error(values, weight):
    """Of a weighted mean, by loops."""
    n, total = len(values), sum(weight)
    mean = sum(w * x for w, x in zip(weight, values, strict=True)) / total
    squares = sum((w * (x - mean)) ** 2 for w, x in zip(weight, values, strict=True))
    return (n / (n - 1) * squares) ** 0.5 / total


def draw(proba, uniform):
    """The first class whose cumulative probability exceeds the number."""
    return [
        int(
            np.searchsorted(np.cumsum(row, dtype=np.float64), u * np.sum(row, dtype=np.float64), side="right")
        )
        for row, u in zip(proba, uniform, strict=True)
    ]


def population(support, conditionals, probabilities):
    """Rows (label, prediction, weight) of a finite distribution, by loops."""
    return [
        (c, tuple(v), p * q[c])
        for v, q, p in zip(support, conditionals, probabilities, strict=True)
        for c in range(len(q))
        if p * q[c] > 0
    ]


def bentkus_quantile(variance, largest, n, level, points=400):
    """The least x with min_t E (T - t)^2_+ / (x - t)^2 <= level, by summing over all outcomes of T, over n."""
    step = largest + variance / largest
    chance = variance / (largest * step)
    outcomes = np.arange(n + 1)
    probabilities = binom.pmf(outcomes, n, chance)
    totals = outcomes * step - n * variance / largest
    spread = np.sqrt(n * variance)
    return (
        min(
            t + np.sqrt(probabilities @ np.maximum(totals - t, 0.0) ** 2 / level)
            for t in np.linspace(0, 5 * spread, points)
        )
        / n
    )


def e_bh(e_values, alpha):
    """The largest set of e-values that are all at least m / (size alpha)."""
    m = len(e_values)
    for size in range(m, 0, -1):
        chosen = sorted(range(m), key=lambda i: -e_values[i])[:size]
        if all(e_values[i] >= m / (size * alpha) for i in chosen):
            return [i in chosen for i in range(m)]
    return [False] * m
