"""Search for the strongest halfspaces: sharpened sigmoids, then exact moves of the hyperplane."""

from dataclasses import replace

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Float64s
from polycal.search._blas import one_blas_thread
from polycal.search.directions import start_directions, stretch
from polycal.search.effort import Effort
from polycal.search.lines import best_scalar_cut, crossings
from polycal.search.points import Points
from polycal.search.sigmoid import climb

_SLOPES = (1.0, 4.0, 16.0, 64.0)
# Lines tried at once, how many of them are followed, and how many moves are made, for each coordinate.
_MAX_LINES = 16
_N_TRIED = 3
_MAX_MOVES = 10
# With more classes than this only the best start of each is moved.
_MANY_CLASSES = 20


@one_blas_thread()
def search_halfspaces(points: Points, effort: Effort, seed: int = 0) -> Float64s:
    """A direction (k, k) for each coordinate; the best threshold along it is found by one sort."""
    k = points.n_classes
    sigmoids = climb(points, _SLOPES, replace(effort, n_random=effort.n_random // 2), seed)
    starts = np.vstack([start_directions(points, effort.n_random, seed), *[s.curves for s in sigmoids]])
    starts = stretch(starts, k).reshape(-1, k, k)
    lines = line_directions(points, seed)
    found = map_threads(lambda c: _refined(points, c, starts[:, c], lines), range(k))
    return np.array(found)


def line_directions(points: Points, seed: int) -> Float64s:
    """Lines along which hyperplanes are moved: the classes of largest probability, then random ones."""
    k = points.n_classes
    largest = np.argsort(-points.proba.mean(axis=0), kind="stable")[:_MAX_LINES]
    random = np.random.default_rng([seed, 1]).normal(size=(max(0, _MAX_LINES - k), k))
    return np.vstack([np.eye(k)[largest], random])


def _refined(points: Points, coordinate: int, starts: Float64s, lines: Float64s) -> Float64s:
    """The best direction of one coordinate after moving from its best few starts."""
    residual = np.ascontiguousarray(points.residual[:, coordinate])
    values = [abs(best_scalar_cut(points.proba @ start, residual).value) for start in starts]
    n_finalists = 3 if points.n_classes <= _MANY_CLASSES else 1
    finalists = np.argsort(-np.array(values), kind="stable")[:n_finalists]
    moved = [_move(points, residual, starts[i], lines) for i in finalists]
    return max(moved, key=lambda result: result[0])[1]


def _move(points: Points, residual: Float64s, direction: Float64s, lines: Float64s) -> tuple[float, Float64s]:
    """Turn the hyperplane along the line that gains most, while one does."""
    slopes = lines @ points.proba.T
    cut = best_scalar_cut(points.proba @ direction, residual)
    for _ in range(_MAX_MOVES):
        # Predictions sum to 1: the threshold can be taken into the direction.
        plane = direction - cut.place
        hopes, turns = _best_turns(points.proba @ plane, slopes, residual)
        tried = np.argsort(-hopes, kind="stable")[:_N_TRIED]
        turned = stretch(plane + turns[tried, None] * lines[tried], plane.size)
        cuts = [best_scalar_cut(points.proba @ t, residual) for t in turned]
        best = max(range(len(cuts)), key=lambda i: abs(cuts[i].value))
        if abs(cuts[best].value) <= abs(cut.value) * (1 + 1e-12):
            break
        direction, cut = turned[best], cuts[best]
    return abs(cut.value), direction


def _best_turns(margin: Float64s, slopes: Float64s, residual: Float64s) -> tuple[Float64s, Float64s]:
    """The largest ``|sum_i r_i sign(margin_i + t slope_i)|`` along each line, and its t."""
    order, places = crossings(margin, slopes)
    start = np.where(slopes == 0, np.sign(margin), -np.sign(slopes)) @ residual
    jumps = 2 * np.take_along_axis(np.sign(slopes) * residual, order, axis=1)
    along = start[:, None] + np.hstack([np.zeros((start.size, 1)), np.cumsum(jumps, axis=1)])
    best = np.arange(start.size), np.argmax(np.abs(along), axis=1)
    return np.abs(along[best]), places[best]
