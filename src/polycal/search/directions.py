"""Directions in class space: stretched as far as a family allows, and where searches start."""

from itertools import combinations

import numpy as np

from polycal._typing import Float64s
from polycal.search.points import Points

# Up to this many classes every split of the classes into two sets is a start.
MAX_SPLIT_CLASSES = 6


def stretch(directions: Float64s, m: float) -> Float64s:
    """Shift and scale each row a as far as ``a in [-1, 1]^k, ||a||_2^2 <= m`` allows.

    Predictions sum to 1, so a shift of a only shifts ``<a, v>``; and a larger scale makes more functions
    1-Lipschitz. So a row's best error never falls. Rows of equal entries become 0.
    """
    low, high = directions.min(axis=1), directions.max(axis=1)
    width = np.maximum(high - low, 1e-300)
    boxed = np.where(high > low, (2 * directions.T - low - high) / width, 0.0).T
    return boxed if m >= directions.shape[1] else _shrink_to_ball(boxed, m)


def _shrink_to_ball(boxed: Float64s, m: float) -> Float64s:
    """From rows that fill the box [-1, 1]^k to the largest copies of them in the ball of radius sqrt(m) as well."""
    centred = boxed - boxed.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(centred, axis=1, keepdims=True)
    balled = centred * (np.sqrt(m) / np.maximum(norm, 1e-300))
    # Where centring puts one end outside the box, that end is pinned: x = end - s e with ||x||^2 = m.
    end = np.sign(centred.max(axis=1, keepdims=True) + centred.min(axis=1, keepdims=True))
    gap = end - boxed
    first, second = gap.sum(axis=1, keepdims=True) * end, (gap**2).sum(axis=1, keepdims=True)
    root = np.sqrt(np.maximum(first**2 - second * (boxed.shape[1] - m), 0.0))
    pinned = end - gap * (first + root) / np.maximum(second, 1e-300)
    inside = (boxed**2).sum(axis=1, keepdims=True) <= m
    fits = np.abs(balled).max(axis=1, keepdims=True) <= 1
    return np.where(inside, boxed, np.where(fits, balled, pinned))


def into_family(directions: Float64s, m: float) -> Float64s:
    """Each row's nearest point of the box and ball, stretched."""
    nearest = np.clip(directions, -1.0, 1.0)
    if m < directions.shape[1]:
        low, high = np.zeros((directions.shape[0], 1)), np.ones((directions.shape[0], 1))
        for _ in range(40):
            middle = (low + high) / 2
            outside = (np.clip(middle * directions, -1, 1) ** 2).sum(axis=1, keepdims=True) > m
            low, high = np.where(outside, low, middle), np.where(outside, middle, high)
        nearest = np.clip(high * directions, -1.0, 1.0)
    return stretch(nearest, m)


def start_directions(points: Points, n_random: int, seed: int = 0) -> Float64s:
    """Stretched starts for every coordinate, in sets of k rows, one for each coordinate.

    Its own class, its covariance with v, its regression on v; then, the same for all coordinates, the splits
    of few classes into two sets, and random directions.
    """
    k = points.n_classes
    covariance = points.residual.T @ points.proba
    gram = points.proba.T @ points.proba / points.n_points
    ridge = 1e-3 * np.trace(gram) / k
    regression = np.linalg.solve(gram + ridge * np.eye(k), covariance.T).T
    shared = np.random.default_rng(seed).normal(size=(n_random, k))
    if k <= MAX_SPLIT_CLASSES:
        shared = np.vstack([splits(k), shared])
    return stretch(np.vstack([np.eye(k), covariance, regression, np.repeat(shared, k, axis=0)]), k)


def splits(n_classes: int) -> Float64s:
    """The indicator of each set of classes, one of each pair of complements; the first class is never in."""
    sets = [s for size in range(1, n_classes) for s in combinations(range(1, n_classes), size)]
    out = np.zeros((len(sets), n_classes))
    for row, members in zip(out, sets, strict=True):
        row[list(members)] = 1.0
    return out
