"""Slow, obvious oracles for searches over sets of classes."""

from itertools import combinations

import numpy as np

from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset


def all_subsets(n_classes, max_size=None):
    """Every non-empty set of at most `max_size` classes, the whole included."""
    sizes = range(1, (max_size or n_classes) + 1)
    return [np.array(s) for size in sizes for s in combinations(range(n_classes), size)]


def largest_error(sample, max_size=None):
    """The largest smooth calibration error of a set."""
    return max(smooth_error(ask_subset(sample, subset)) for subset in all_subsets(sample.n_classes, max_size))


def draw_labels(proba, rng):
    """One label from each row."""
    return np.minimum((proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1), proba.shape[1] - 1)


def random_case(rng, n_classes, n_rows, kind):
    """(labels, proba): pure noise, calibrated, over- or under-confident, or mistaken between classes."""
    proba = rng.dirichlet(np.full(n_classes, rng.choice([0.1, 0.3, 1.0, 5.0])), n_rows)
    if kind == "noise":
        return rng.integers(0, n_classes, n_rows), proba
    truth = proba
    if kind == "confidence":
        truth = proba ** rng.choice([0.5, 2.0])
    elif kind == "confusion":
        truth = 0.7 * proba + 0.3 * proba @ rng.dirichlet(np.full(n_classes, 0.5), n_classes)
    return draw_labels(truth / truth.sum(axis=1, keepdims=True), rng), proba
