"""Tools that the searches share: distinct predictions, starting directions, effort, and projected ascent."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Floats, Ints
from polycal.sample import Sample, row_blocks, row_sums

# A search looks at no more than this; what it finds is then valued on the whole sample.
_MAX_POINTS = 1 << 15
_MAX_CELLS = 1 << 22
# Residuals are rounded to this part of their typical size.
_GRID = 2.0**-40


@dataclass(frozen=True, eq=False)
class Points:
    """The distinct predictions of a sample and their total residuals, in an order of their own.

    Weights depend on the prediction only, so nothing else of a sample matters to them. Classes are ordered by
    how they are used, rows by a hash of their content: samples that differ only in the order of rows or
    classes, or in how often a row is written down, have the same points, and so the same search.

    Attributes
    ----------
    proba : ndarray of shape (n_points, n_classes)
        The distinct predictions, columns in the order `classes`.
    residual : ndarray of shape (n_points, n_classes)
        The sum of mass * (y - v) over the rows with that prediction.
    classes : ndarray of int64, shape (n_classes,)
        The class of each column.
    """

    proba: Float64s
    residual: Float64s
    classes: Ints

    @property
    def n_points(self) -> int:
        """Number of distinct predictions."""
        return int(self.proba.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(self.proba.shape[1])

    def take(self, rows: NDArray[np.bool_]) -> "Points":
        """Some of the points."""
        return Points(self.proba[rows], self.residual[rows], self.classes)

    def by_class(self, columns: Float64s) -> Float64s:
        """Columns put back into the sample's order of classes."""
        out = np.empty_like(columns)
        out[..., self.classes] = columns
        return out

    def by_class_square(self, rows: Float64s) -> Float64s:
        """A matrix with a row and a column for each class put back into the sample's order."""
        out = np.empty_like(rows)
        out[self.classes] = self.by_class(rows)
        return out


def distinct_points(sample: Sample) -> Points:
    """The points of a sample; of a large one, a part that its content picks at random."""
    mass = sample.mass
    classes = _class_order(sample, mass)
    rows = np.flatnonzero(mass > 0)
    keys = _row_keys(sample.proba, rows, classes)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[0]]))
    limit = min(_MAX_POINTS, max(1, _MAX_CELLS // sample.n_classes))
    if starts.size > limit:
        order, starts = order[: starts[limit]], starts[:limit]
    rows = rows[order]
    group = np.repeat(np.arange(starts.size), np.diff(starts, append=rows.size))
    proba = sample.proba[rows[starts]][:, classes].astype(np.float64)
    residual = -proba * np.bincount(group, weights=mass[rows])[:, None]
    np.add.at(residual, (group, np.argsort(classes)[sample.labels[rows]]), mass[rows])
    # Searches take for granted that predictions sum to 1; those in single precision nearly do.
    proba /= row_sums(proba)[:, None]
    # On a grid, sums do not depend on their order, nor on how a weight is split over rows.
    grid = _GRID / starts.size
    return Points(proba, np.rint(residual / grid) * grid, classes)


def _class_order(sample: Sample, mass: Float64s) -> Ints:
    """Classes by mean prediction, then frequency, then mean square; ties by position."""
    mean, square = np.zeros((2, sample.n_classes))
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        block = sample.proba[rows].astype(np.float64)
        mean += mass[rows] @ block
        square += mass[rows] @ np.square(block, out=block)
    frequency = np.bincount(sample.labels, weights=mass, minlength=sample.n_classes)
    return np.lexsort([np.round(key, 12) for key in (square, frequency, mean)])


def _row_keys(proba: Floats, rows: Ints, classes: Ints) -> NDArray[np.uint64]:
    """A 64-bit hash of each row: whole-number arithmetic, so equal rows have equal keys wherever they stand."""
    odd = np.random.default_rng(0).integers(0, 1 << 63, classes.size, dtype=np.uint64) * 2 + 1
    keys = np.empty(rows.size, dtype=np.uint64)
    for block in row_blocks(rows.size, classes.size):
        # Adding 0.0 turns -0.0 into 0.0.
        bits = (proba[rows[block]][:, classes].astype(np.float64) + 0.0).view(np.uint64)
        bits ^= bits >> np.uint64(32)
        bits *= odd
        bits ^= bits >> np.uint64(29)
        bits *= np.uint64(0xBF58476D1CE4E5B9)
        bits ^= bits >> np.uint64(32)
        keys[block] = bits.sum(axis=1, dtype=np.uint64)
    return keys


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


@dataclass(frozen=True)
class Effort:
    """Random starts, starts followed to the end, and steps taken by each.

    Attributes
    ----------
    n_random, n_finalists, n_steps : int
    """

    n_random: int
    n_finalists: int
    n_steps: int

    @classmethod
    def for_classes(cls, n_classes: int) -> "Effort":
        """Less for each coordinate where there are many."""
        if n_classes <= 20:
            return cls(n_random=6, n_finalists=4, n_steps=30)
        return cls(n_random=2, n_finalists=2, n_steps=20) if n_classes <= 200 else cls(0, 1, 10)


# (positions (m, d), which starts they belong to (m,)) -> (values (m,), gradients (m, d)).
Objective = Callable[[Float64s, Ints], tuple[Float64s, Float64s]]
Projection = Callable[[Float64s], Float64s]

# A move shorter than this part of the first one no longer matters.
_SHORT = 1e-6


def ascend(
    objective: Objective,
    project: Projection,
    start: Float64s,
    n_steps: int,
    metric: Float64s,
    reach: float = 0.5,
) -> tuple[Float64s, Float64s]:
    """Climb from each row of `start`; the positions reached and their values.

    A move is ``step * gradient / metric``; the metric (d,) makes up for coordinates of unequal size. Each row
    has its own step: after a gain the one that fits the curvature just seen (Barzilai and Borwein), after
    a loss a quarter, and the move is taken back. The first move changes no coordinate by more than `reach`.
    """
    position = project(start)
    value, gradient = objective(position, np.arange(start.shape[0]))
    step = reach / np.maximum(np.abs(gradient / metric).max(axis=1), 1e-300)
    for _ in range(n_steps):
        rows = np.flatnonzero(step * np.abs(gradient / metric).max(axis=1) > _SHORT * reach)
        if rows.size == 0:
            break
        trial = project(position[rows] + step[rows, None] * gradient[rows] / metric)
        new_value, new_gradient = objective(trial, rows)
        gain = new_value > value[rows]
        move, bend = trial - position[rows], gradient[rows] - new_gradient
        step[rows] = np.where(gain, _fitted_step(move, bend, step[rows], metric), step[rows] / 4)
        won = rows[gain]
        position[won], value[won], gradient[won] = trial[gain], new_value[gain], new_gradient[gain]
    return position, value


def _fitted_step(move: Float64s, bend: Float64s, step: Float64s, metric: Float64s) -> Float64s:
    """The inverse curvature along the move, within a factor of 8 of the last step."""
    curvature = np.einsum("ij,ij->i", move, bend)
    length = np.einsum("ij,ij,j->i", move, move, metric)
    fitted: Float64s = np.divide(length, curvature, out=8 * step, where=curvature > 0)
    return np.clip(fitted, step / 8, 8 * step)


def spread(proba: Float64s) -> Float64s:
    """The mean square of each class's probability: the metric for directions in class space."""
    square: Float64s = np.einsum("ij,ij->j", proba, proba) / proba.shape[0]
    return np.maximum(square, 1e-9)


def projected(sample: Sample, direction: Float64s) -> Float64s:
    """``<direction, v>`` of each row."""
    values = np.empty(sample.n_samples)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        values[rows] = sample.proba[rows] @ direction
    return values


def class_residual(sample: Sample, label: int) -> Float64s:
    """``mass * (y_l - v_l)`` of each row."""
    residual: Float64s = ((sample.labels == label) - sample.proba[:, label].astype(np.float64)) * sample.mass
    return residual
