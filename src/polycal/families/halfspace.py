"""Halfspaces of the simplex: indicator functions of linear thresholds."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from polycal._threads import map_threads, one_blas_thread
from polycal._typing import Float64s, Ints
from polycal.families._ascent import (
    Effort,
    Points,
    class_residual,
    distinct_points,
    projected,
    start_directions,
    stretch,
)
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.sigmoid import climb
from polycal.families.witness import DirectionsWitness, leading_classes
from polycal.sample import Sample
from polycal.steps import Lookup, Program
from polycal.storage.rules import Array


@dataclass(frozen=True)
class Halfspace(Notion):
    r"""Halfspace calibration: is each class right on either side of any hyperplane?

    Notes
    -----
    Definition: each coordinate of the weight is :math:`\mathrm{sign}(\langle a, v\rangle + b)` for any a and b.
    Auditing it is as hard as agnostically learning halfspaces, for which no polynomial algorithm is believed
    to exist [1]_. Estimator: a heuristic search. Sigmoids are climbed and sharpened up to slope 64, the best
    threshold along each direction found is exact by one sort, and hyperplanes are turned along lines on which
    the best threshold is again exact by one sort, while that gains. What is found is a lower bound; two classes
    leave only the threshold, and are exact. So are three classes of at most 2,500 distinct predictions: the simplex
    is a plane then, and every line that parts the predictions is tried, by turning one about each of them.
    Predictions whose weighted sums differ by less than 1e-9 are not cut apart (for two classes all are). A search
    looks at no more than 32,768 distinct predictions; the value is that of the whole sample. Cost: O(n k^2) for
    the sigmoids, then some hundred sorts for each class, on all cores; n sorts for three classes. Bias: upwards, at
    most of order :math:`k / \sqrt{n}`.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Theorem on
       the hardness of halfspace calibration.

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], pc.Halfspace())
    >>> estimate.value, estimate.kind
    (1.5, 'exact')
    """

    name: ClassVar[str] = "halfspace"

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        most = np.inf
        if sample.n_classes == 2:
            # Thresholds on the probability of class 1, read without rounding.
            witness = halfspace_witness(sample, np.array([[0.0, 1.0], [0.0, 1.0]]), min_gap=0.0)
            method, most = "every threshold", 0.0
        else:
            points, effort = distinct_points(sample), Effort.for_classes(sample.n_classes)
            method = "heuristic search, exact thresholds along directions found"
            if is_planar(points):
                lines = best_lines(points)[:3]
                directions = np.array([line.direction for line in lines])
                most = sum(line.most for line in lines)
                method = "every line"
            else:
                directions = search_halfspaces(points, effort)
            witness = halfspace_witness(sample, points.by_class_square(directions))
        value = float(witness.contributions.sum())
        return ErrorEstimate(
            value=value,
            kind="exact" if value >= most - ROUNDING else "lower bound",
            notion=self,
            method=method,
            n_steps=sample.n_classes,
            n_samples=sample.n_samples,
            witness=witness,
        )


@dataclass(frozen=True, eq=False, repr=False)
class HalfspaceWitness(DirectionsWitness):
    """w_l(v) = s_l where ``<a_l, v> >= t_l``, else -s_l, for each class l.

    Attributes
    ----------
    directions : ndarray of shape (k, k)
        a_l in row l.
    places : ndarray of shape (k,)
        The thresholds t_l.
    signs : ndarray of shape (k,)
        s_l, which is 1 or -1.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.estimate_error(made.labels, made.proba, pc.Halfspace()).witness
    >>> sorted(set(np.abs(witness(made.proba)).ravel().tolist()))
    [1.0]
    """

    directions: Float64s
    places: Annotated[Float64s, Array("float64", "n_classes", low=-np.inf, high=np.inf)]
    signs: Annotated[Float64s, Array("float64", "n_classes", low=-1, high=1)]
    leading: Ints
    contributions: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "halfspace"

    def _weights(self, values: Float64s) -> Float64s:
        return np.where(values >= self.places, self.signs, -self.signs)

    def _weight_steps(self) -> Program:
        # A step includes its upper edge, and the upper side its threshold: the edge is the number just below that.
        edges = np.column_stack([np.full(self.n_classes, -np.inf), np.nextafter(self.places, -np.inf)])
        heights = np.column_stack([-self.signs, self.signs])
        return (Lookup(edges.ravel(), heights.ravel(), 2 * np.arange(self.n_classes + 1)),)


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
        plane = direction - cut.threshold
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


# Values closer than this are never cut apart: rounding could put them on either side.
MIN_GAP = 1e-9
# Points that change sides further along a line than this are taken to do so here.
_FAR = 1e6


class Cut(NamedTuple):
    """A threshold on the values of a line, and what it attains."""

    value: float
    threshold: float


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
    """The threshold that makes ``sum_i r_i sign(u_i - threshold)`` largest in size; the value keeps its sign."""
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

    A point that stays on its side (slope 0, or next to it) comes last.
    """
    # A slope this small changes no sign before `_FAR`, and dividing by it overflows.
    still = np.abs(slopes) < 1e-290
    times = np.where(still, _FAR, -margin / np.where(still, 1.0, slopes))
    times = np.clip(times, -_FAR, _FAR)
    order = np.argsort(times, axis=1)
    times = np.take_along_axis(times, order, axis=1)
    places = np.hstack([times[:, :1] - 1.0, (times[:, 1:] + times[:, :-1]) / 2, times[:, -1:] + 1.0])
    return order, places


# Distinct predictions of three classes for which every line is tried: about a second.
_MAX_PLANAR = 2500
# Closer directions are one: rounding tells them apart.
_MIN_ANGLE = 1e-12
# Pivots tried until a line's value is reached by a threshold along its direction.
_N_PIVOTS = 64
# Sums of rounded numbers.
ROUNDING = 1e-10


class Line(NamedTuple):
    """The best line found: the direction across it, and what the best of all lines attains."""

    direction: Float64s
    most: float


def is_planar(points: Points) -> bool:
    """Whether every line can be tried."""
    return points.n_classes == 3 and points.n_points <= _MAX_PLANAR


def best_lines(points: Points) -> list[Line]:
    """The best ways to part predictions of three classes: for the residuals of each class, and for all together."""
    from polycal._compiled import planes  # noqa: PLC0415 - imports numba

    x, y = np.ascontiguousarray(points.proba.T)[:2]
    found = np.stack(planes.best_lines(x, y, points.residual, _MIN_ANGLE))
    return [_best_line(points, column, *found[:, :, column]) for column in range(4)]


def _best_line(points: Points, column: int, value: Float64s, angle: Float64s, width: Float64s) -> Line:
    """The best of the lines through each point, as a direction along which a threshold parts the points as it does."""
    most, reached, best = float(value.max()), -1.0, np.zeros(3)
    # Where rounding is in the way of a threshold along the widest line, that of another point may do.
    for pivot in np.lexsort((-width, -value))[:_N_PIVOTS]:
        direction = np.array([-np.sin(angle[pivot]), np.cos(angle[pivot]), 0.0])
        values = points.proba @ direction
        if column < 3:
            attained = abs(best_scalar_cut(values, points.residual[:, column]).value)
        else:
            attained = best_vector_cut(values, points.residual).value
        if attained > reached:
            reached, best = attained, direction
        if reached >= most - ROUNDING:
            break
    return Line(best, most)


def halfspace_witness(sample: Sample, directions: Float64s, min_gap: float = MIN_GAP) -> HalfspaceWitness:
    """The best threshold along each class's direction."""

    def best_cut(c: int) -> Cut:
        return best_scalar_cut(projected(sample, directions[c]), class_residual(sample, c), min_gap)

    values, places = np.array(map_threads(best_cut, range(sample.n_classes))).T
    sign = np.where(values < 0, -1.0, 1.0)
    return HalfspaceWitness(
        directions,
        places,
        sign,
        leading_classes(sample, directions),
        np.abs(values),
        sample.n_classes,
        sample.class_names,
    )
