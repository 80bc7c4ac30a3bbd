"""Search for the strongest sigmoids: one for each coordinate, all coordinates at once, slope by slope."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Float64s, Ints
from polycal.sample import row_blocks
from polycal.search._blas import one_blas_thread
from polycal.search.ascent import ascend, spread
from polycal.search.directions import start_directions
from polycal.search.effort import Effort
from polycal.search.points import Points

# tanh(20) is 1 in double precision: an offset this far beyond the slope makes a constant.
_BEYOND = 20.0
# All starts climb a little, the best few of each coordinate to the end.
_SCREENING_STEPS = 8
_MAX_FINALISTS = 2
# Entries of the directions that climb at once.
_BATCH_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """The weights ``tanh(<curve_l, v> + offset_l)``, with entries of each curve in [-slope, slope].

    Attributes
    ----------
    slope : float
        L.
    curves : ndarray of shape (k, k)
        L times the direction of each coordinate.
    offsets, values : ndarray of shape (k,)
        The offsets, and the correlations with the residual.
    """

    slope: float
    curves: Float64s
    offsets: Float64s
    values: Float64s

    def in_order_of(self, points: Points) -> "Sigmoids":
        """The same, in the order of classes of the sample that `points` are from."""
        return Sigmoids(
            self.slope,
            points.by_class_square(self.curves),
            points.by_class(self.offsets),
            points.by_class(self.values),
        )


def ladder(slope: float) -> list[float]:
    """1, 2, 4, ... and at last ``slope``."""
    rungs = []
    rung = 1.0
    while rung < slope:
        rungs.append(rung)
        rung *= 2
    return [*rungs, slope]


@one_blas_thread()
def climb(points: Points, slopes: Sequence[float], effort: Effort, seed: int = 0) -> list[Sigmoids]:
    """The strongest sigmoids found at each slope; a rung starts from the one below, so values never fall."""
    fresh = start_directions(points, effort.n_random, seed)
    middle = -fresh @ points.proba.mean(axis=0)
    climber = _Climber(points, effort)
    found: list[Sigmoids] = []
    for slope in slopes:
        starts = [np.column_stack([slope * fresh, slope * middle])]
        certain = _constants(points, slope)
        if found:
            last = np.column_stack([found[-1].curves, found[-1].offsets])
            starts.append(slope / found[-1].slope * last)
            certain = np.vstack([certain, last])
        found.append(climber.best(np.vstack([*starts, certain]), certain, slope))
    return found


def _constants(points: Points, slope: float) -> Float64s:
    """The weight sign(R_l) for each coordinate."""
    k = points.n_classes
    sign = np.where(points.residual.sum(axis=0) < 0, -1.0, 1.0)
    return np.column_stack([np.zeros((k, k)), (slope + _BEYOND) * sign])


class _Climber:
    """Ascent for all coordinates at once, in single precision; only the winners are valued in double.

    Positions (m, k + 1) hold a curve and its offset each, and come in sets of k, one for each coordinate.
    """

    def __init__(self, points: Points, effort: Effort) -> None:
        self._points = points
        self._proba = points.proba.astype(np.float32)
        self._residual = points.residual.astype(np.float32)
        self._metric = np.append(spread(points.proba), 1.0)
        self._effort = effort

    def best(self, starts: Float64s, certain: Float64s, slope: float) -> Sigmoids:
        """The best of each coordinate from `starts`; never worse than `certain`."""
        k = self._points.n_classes
        size = k * max(1, _BATCH_CELLS // k**2)
        batches = [self._screen(starts[i : i + size], slope) for i in range(0, starts.shape[0], size)]
        positions, values = (np.concatenate(part) for part in zip(*batches, strict=True))
        screened = self._pick(positions, values, min(_MAX_FINALISTS, self._effort.n_finalists))
        finalists = np.vstack([certain, self._ascend(screened, slope, self._effort.n_steps)[0]])
        position = self._pick(finalists, self._exact(finalists), 1)
        return Sigmoids(slope, position[:, :-1], position[:, -1], self._exact(position))

    def _screen(self, starts: Float64s, slope: float) -> tuple[Float64s, Float64s]:
        """Turn round what comes out negative, and climb a little."""
        values, _ = self._correlate(starts, np.arange(starts.shape[0]))
        return self._ascend(np.where(values[:, None] < 0, -starts, starts), slope, _SCREENING_STEPS)

    def _ascend(self, starts: Float64s, slope: float, n_steps: int) -> tuple[Float64s, Float64s]:
        return ascend(
            self._correlate, lambda x: _into_family(x, slope), starts, n_steps, self._metric, reach=slope / 2
        )

    def _pick(self, positions: Float64s, values: Float64s, n_best: int) -> Float64s:
        """The best few positions of each coordinate, in sets of k again."""
        k = self._points.n_classes
        order = np.argsort(-values.reshape(-1, k), axis=0, kind="stable")[:n_best]
        picked: Float64s = positions[(order * k + np.arange(k)).ravel()]
        return picked

    def _correlate(self, positions: Float64s, rows: Ints) -> tuple[Float64s, Float64s]:
        """``sum_i z_il tanh(<c, v_i> + b)`` and its gradient by (c, b): two matrix products a block."""
        coordinate = rows % self._points.n_classes
        curves, offsets = positions[:, :-1].astype(np.float32), positions[:, -1].astype(np.float32)

        def correlate_block(block: slice) -> tuple[Float64s, Float64s]:
            proba, residual = self._proba[block], self._residual[block][:, coordinate]
            weight = np.tanh(proba @ curves.T + offsets)
            values = np.einsum("ij,ij->j", residual, weight)
            residual *= 1 - np.square(weight, out=weight)
            gradient = np.column_stack([residual.T @ proba, residual.sum(axis=0)])
            return values.astype(np.float64), gradient.astype(np.float64)

        blocks = list(row_blocks(self._points.n_points, rows.size))
        parts = map_threads(correlate_block, blocks, n_jobs=-1 if len(blocks) > 1 else 1)
        return np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)

    def _exact(self, positions: Float64s) -> Float64s:
        """The correlations in double precision."""
        coordinate = np.arange(positions.shape[0]) % self._points.n_classes
        values = np.zeros(coordinate.size)
        for block in row_blocks(self._points.n_points, coordinate.size):
            weight = np.tanh(self._points.proba[block] @ positions[:, :-1].T + positions[:, -1])
            values += np.einsum("ij,ij->j", self._points.residual[block][:, coordinate], weight)
        return values


def _into_family(positions: Float64s, slope: float) -> Float64s:
    """Shift a curve's middle into its offset (predictions sum to 1), then clip both."""
    curves, offsets = positions[:, :-1], positions[:, -1]
    middle = (curves.max(axis=1) + curves.min(axis=1)) / 2
    limit = slope + _BEYOND
    return np.column_stack(
        [np.clip(curves - middle[:, None], -slope, slope), np.clip(offsets + middle, -limit, limit)]
    )
