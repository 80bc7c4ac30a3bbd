"""Search for the directions along which the smooth calibration error of each coordinate is largest."""

from dataclasses import replace
from typing import Any

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Float64s, Ints
from polycal.search._blas import one_blas_thread
from polycal.search.ascent import ascend, spread
from polycal.search.directions import into_family, start_directions, stretch
from polycal.search.effort import Effort
from polycal.search.points import Points
from polycal.search.sigmoid import climb

# Sigmoids of these slopes are climbed first: cheap, and close to what a 1-Lipschitz function can do.
_SLOPES = (1.0, 2.0)
# Directions handled at once by a thread.
_CHUNK_ROWS = 64


@one_blas_thread()
def search_directions(points: Points, m: float, effort: Effort, seed: int = 0) -> list[Float64s]:
    """Directions (k, k) for all coordinates: their own classes, the best screened, and the best climbed to."""
    k = points.n_classes
    starts = _candidate_directions(points, m, effort, seed)
    n_coordinates = max(1, min(_CHUNK_ROWS // effort.n_finalists, -(-k // 16)))
    chunks = [np.arange(k)[i : i + n_coordinates] for i in range(0, k, n_coordinates)]
    climbed = map_threads(lambda chunk: _climb(points, starts[:, chunk], chunk, m, effort), chunks)
    screened, best = (np.concatenate(part) for part in zip(*climbed, strict=True))
    return [stretch(np.eye(k), m), screened, best]


def _candidate_directions(points: Points, m: float, effort: Effort, seed: int) -> Float64s:
    """Starts (n_starts, k, k) for each coordinate: those of `start_directions` and those of its best sigmoids."""
    k = points.n_classes
    sigmoids = climb(points, _SLOPES, replace(effort, n_random=effort.n_random // 2), seed)
    starts = np.vstack([start_directions(points, effort.n_random, seed), *[s.curves for s in sigmoids]])
    return stretch(starts, m).reshape(-1, k, k)


def _climb(
    points: Points, starts: Float64s, coordinates: Ints, m: float, effort: Effort
) -> tuple[Float64s, Float64s]:
    """The best start of each coordinate, and the best direction climbed to from its best few starts."""
    n = coordinates.size
    values = np.vstack([_smooth_errors(points, start, coordinates)[0] for start in starts])
    order = np.argsort(-values, axis=0, kind="stable")[: effort.n_finalists]
    finalists = starts[order, np.arange(n)].reshape(-1, points.n_classes)
    position, reached = ascend(
        lambda directions, rows: _smooth_errors(points, directions, coordinates[rows % n]),
        lambda directions: into_family(directions, m),
        finalists,
        effort.n_steps,
        spread(points.proba),
    )
    best = reached.reshape(-1, n).argmax(axis=0) * n + np.arange(n)
    return finalists[:n], position[best]


def _smooth_errors(points: Points, directions: Float64s, coordinates: Ints) -> tuple[Float64s, Float64s]:
    """The exact smooth error of each direction for its coordinate, and the gradient by the direction."""
    values = directions @ points.proba.T
    errors, slopes = _kernels().smooth_slopes(
        values, points.residual.T[coordinates], np.argsort(values, axis=1)
    )
    return errors, slopes @ points.proba


def _kernels() -> Any:
    """The compiled pass; importing it imports numba, so only when first needed."""
    from polycal._compiled import projected as kernels  # noqa: PLC0415

    return kernels
