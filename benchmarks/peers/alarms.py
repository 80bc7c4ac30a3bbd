"""What others watch a stream of predictions by, in our words: hourly ECE, PITMonitor and safe Hosmer-Lemeshow."""

import bisect

import numpy as np
from sklearn.isotonic import IsotonicRegression

from polycal.monitoring.bets import FLOOR

# Rows that hourly ECE is computed on, and bins.
HOUR, _BINS = 500, 15


def hourly_errors(proba, labels):
    """The ECE of each 500 rows."""
    right, confidence = proba.argmax(axis=1) == labels, proba.max(axis=1)
    cells = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    hours = np.arange(labels.size) // HOUR
    gaps = np.zeros((hours[-1] + 1, _BINS))
    np.add.at(gaps, (hours, cells), right - confidence)
    return np.abs(gaps).sum(axis=1) / HOUR


def pit_fortunes(proba, labels, seed):
    """PITMonitor's statistic, in our words: ranks of randomised PITs among those before, and bets by their histogram.

    A fortune of new money 1/(t (t + 1)) at every row t; bets are on ten cells, by how often each came before.
    """
    rng, rows = np.random.default_rng([seed, 5]), np.arange(labels.size)
    below = proba.cumsum(axis=1)[rows, labels] - proba[rows, labels]
    pits = below + rng.random(labels.size) * proba[rows, labels]
    order, counts, log_fortune, out = [], np.ones(10), -np.inf, np.empty(labels.size)
    for t, pit in enumerate(pits.tolist(), start=1):
        place = bisect.bisect_left(order, pit)
        order.insert(place, pit)
        cell = min(int((place + rng.random()) / t * 10), 9)
        gain = np.log(10 * counts[cell] / counts.sum())
        counts[cell] += 1
        log_fortune = np.logaddexp(log_fortune, -np.log(t * (t + 1.0))) + gain
        out[t - 1] = log_fortune
    return out


def safe_hosmer_lemeshow(proba, labels):
    """The safe Hosmer-Lemeshow test (2203.00426) as it goes on, in our words: isotonic regression of the rows before.

    It is fitted again whenever rows are half as many more, and mixed half and half with the prediction.
    """
    p, t, log_e, out = proba[:, 1], 20, 0.0, np.zeros(labels.size)
    while t < labels.size:
        stop = min(labels.size, int(np.ceil(1.5 * t)))
        fitted = IsotonicRegression(y_min=0.001, y_max=0.999, out_of_bounds="clip").fit(p[:t], labels[:t])
        q, own, yes = fitted.predict(p[t:stop]), p[t:stop], labels[t:stop] == 1
        gain = np.where(yes, q / np.maximum(own, FLOOR), (1 - q) / np.maximum(1 - own, FLOOR))
        out[t:stop] = log_e + np.cumsum(np.log(0.5 + 0.5 * gain))
        log_e, t = out[stop - 1], stop
    return out
