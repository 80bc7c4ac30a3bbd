"""The monitor's bets, fortunes and bounds by loops and explicit sums."""

import numpy as np


def tempered(row, inverse, background):
    """What tempering and a uniform background give each class."""
    weights = np.array([p**inverse for p in row])
    return (1 - background) * weights / weights.sum() + background / len(row)


def shifted(rows, labels, row, prior, decay):
    """Predictions times how much more often each class came than was predicted, in the rows before."""
    n, k = len(labels), len(row)
    ratio = []
    for j in range(k):
        came = sum(decay ** (n - 1 - i) for i in range(n) if labels[i] == j)
        said = sum(decay ** (n - 1 - i) * rows[i][j] for i in range(n))
        ratio.append((came + prior) / (said + prior))
    weights = np.array(row) * ratio
    return weights / weights.sum()


def fortune(gains, stakes):
    """Money that was given before each row, and what all later rows made of it."""
    return sum(stakes[s] * np.prod(gains[s:]) for s in range(len(gains)))


def best_start(gains):
    """The first row from which on a coin became most."""
    return int(np.argmax([np.prod(gains[s:]) for s in range(len(gains))]))


def question_gain(shape, sign, share, tolerance, predicted, hit):
    """What a bet on the residual of a question makes of one coin."""
    weight = [1.0, predicted, 1.0 - predicted][shape]
    return 1.0 + share * (sign * weight * (hit - predicted) - tolerance)


def mean_bound(sign, shape, predicted, hits, first, size, log_odds):
    """The lower bound of the mean of ``sign * shape * (hit - predicted)`` from row ``first`` on."""
    total = spread = past = 0.0
    for i, (weight, p, hit) in enumerate(zip(shape, predicted, hits, strict=True)):
        x = weight * (hit - p)
        if i >= first:
            spread += (x - np.clip(past / (i + 1), -weight * p, weight * (1 - p))) ** 2
            total += sign * x
        past += x
    psi = -np.log(1 - size) - size
    return (total - (psi * spread + log_odds) / size) / (len(hits) - first)
