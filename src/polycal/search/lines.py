"""Moving a hyperplane: the best threshold along a direction, and where points change sides along a line."""

from typing import NamedTuple

import numpy as np

from polycal._typing import Float64s, Ints

# Values closer than this are never cut apart: rounding could put them on either side.
MIN_GAP = 1e-9
# Points that change sides further along a line than this are taken to do so here.
_FAR = 1e6


class Cut(NamedTuple):
    """A threshold on the values of a line, and what it attains."""

    value: float
    place: float


def cut_places(values: Float64s, min_gap: float = MIN_GAP) -> tuple[Float64s, Ints]:
    """For values in increasing order: thresholds in the gaps wide enough, and how many values lie below each.

    The first has all values above it, the last all below. A value equal to a threshold lies above it.
    """
    below = 1 + np.flatnonzero(np.diff(values) > min_gap)
    low, high = values[below - 1], values[below]
    middle = (low + high) / 2
    inner = np.where(middle > low, middle, high)
    places = np.concatenate([values[:1] - 1.0, inner, values[-1:] + 1.0])
    return places, np.concatenate([[0], below, [values.size]])


def best_scalar_cut(values: Float64s, residual: Float64s, min_gap: float = MIN_GAP) -> Cut:
    """The threshold that makes ``sum_i r_i sign(u_i - place)`` largest in size; the value keeps its sign."""
    order = np.argsort(values, kind="stable")
    places, below = cut_places(values[order], min_gap)
    prefix = np.concatenate([[0.0], np.cumsum(residual[order])])
    signed = prefix[-1] - 2 * prefix[below]
    best = int(np.argmax(np.abs(signed)))
    return Cut(float(signed[best]), float(places[best]))


def best_vector_cut(values: Float64s, residual: Float64s, min_gap: float = MIN_GAP) -> Cut:
    """The threshold with the largest ``||sum of z below|| + ||sum of z above||``, for residuals (n, k)."""
    order = np.argsort(values, kind="stable")
    places, below = cut_places(values[order], min_gap)
    prefix = np.cumsum(residual[order], axis=0)
    total = prefix[-1]
    prefix = np.vstack([np.zeros_like(total), prefix])[below]
    split = np.linalg.norm(prefix, axis=1) + np.linalg.norm(total - prefix, axis=1)
    best = int(np.argmax(split))
    return Cut(float(split[best]), float(places[best]))


def crossings(margin: Float64s, slopes: Float64s) -> tuple[Ints, Float64s]:
    """When each ``margin_i + t slope_ji`` changes sign, for lines j: the order of points, and a t in each gap.

    A point that stays on its side (slope 0) comes last.
    """
    still = slopes == 0
    times = np.where(still, _FAR, -margin / np.where(still, 1.0, slopes))
    times = np.clip(times, -_FAR, _FAR)
    order = np.argsort(times, axis=1)
    times = np.take_along_axis(times, order, axis=1)
    places = np.hstack([times[:, :1] - 1.0, (times[:, 1:] + times[:, :-1]) / 2, times[:, -1:] + 1.0])
    return order, places
