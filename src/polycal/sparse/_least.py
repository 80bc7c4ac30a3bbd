"""The least that a row adds to a correlation when its prediction is only known to lie in an interval."""

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.measures.smooth import LipschitzFunction, ScalarFunction


def least_gains(phi: ScalarFunction, hits: Bools, low: Float64s, high: Float64s) -> Float64s:
    """``min (hit - u) phi(u)`` over u in [low, high], for each row.

    Between two knots this is a quadratic: its least value is at an end or at the vertex. Of the pieces that lie
    wholly in an interval the least is looked up; the two at its ends are cut.
    """
    edges, heights, slopes = _pieces(phi)
    first = np.searchsorted(edges, low, side="left") - 1
    last = np.searchsorted(edges, high, side="right") - 1
    target = hits.astype(np.float64)
    left_end = np.minimum(high, edges[first + 1])
    right_start = np.maximum(low, edges[last])
    start_height = heights[first] + slopes[first] * (low - edges[first])
    least = _least_of_piece(target, low, left_end, start_height, slopes[first])
    end_height = heights[last] + slopes[last] * (right_start - edges[last])
    least = np.minimum(least, _least_of_piece(target, right_start, high, end_height, slopes[last]))
    for outcome in (False, True):
        whole = _least_of_piece(np.full(slopes.size, float(outcome)), edges[:-1], edges[1:], heights, slopes)
        rows = np.flatnonzero((hits == outcome) & (last - first > 1))
        least[rows] = np.minimum(least[rows], _range_minimum(whole, first[rows] + 1, last[rows] - 1))
    return least


def _pieces(phi: ScalarFunction) -> tuple[Float64s, Float64s, Float64s]:
    """Edges of the linear pieces of phi, from below 0 to above 1; its height at the start of each, and its slope."""
    if not isinstance(phi, LipschitzFunction):
        return np.concatenate([[-1.0], phi.knots, [2.0]]), phi.heights, np.zeros(phi.heights.size)
    plain = phi.simplified()
    edges = np.concatenate([[min(-1.0, plain.knots[0] - 1)], plain.knots, [max(2.0, plain.knots[-1] + 1)]])
    heights = np.concatenate([plain.heights[:1], plain.heights, plain.heights[-1:]])
    return edges, heights[:-1], np.diff(heights) / np.diff(edges)


def _least_of_piece(
    target: Float64s, start: Float64s, end: Float64s, height: Float64s, slope: Float64s
) -> Float64s:
    """The least of ``(target - u) (height + slope (u - start))`` for u from start to end."""
    falls = slope < 0
    vertex = (target + start - height / np.where(falls, slope, 1.0)) / 2.0
    vertex = np.where(falls, np.clip(vertex, start, end), start)
    values = [(target - u) * (height + slope * (u - start)) for u in (start, vertex, end)]
    least: Float64s = np.minimum.reduce(values)
    return least


def _range_minimum(values: Float64s, first: Ints, last: Ints) -> Float64s:
    """The least of ``values[first:last + 1]`` for each pair: minima over powers of two, two of which cover a range."""
    tables = [values]
    while 2 ** len(tables) <= values.size:
        half = 2 ** (len(tables) - 1)
        tables.append(np.minimum(tables[-1][:-half], tables[-1][half:]))
    least = np.empty(first.size)
    level = np.log2(last - first + 1).astype(np.int64)
    for power in np.unique(level):
        rows = level == power
        table = tables[power]
        least[rows] = np.minimum(table[first[rows]], table[last[rows] + 1 - 2**power])
    return least
