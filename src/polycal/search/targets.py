"""Where mass would gain by moving: the search over all calibrated predictions, on ever finer grids."""

from itertools import product

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import row_blocks
from polycal.search.atoms import Atoms, Clusters, make_clusters

COARSEST = 4
# How many atoms of each class a cluster is tried with: more columns a round, fewer rounds.
_N_TRIED = 3


def rounding_cost(n_classes: int, resolution: int) -> float:
    r"""How far a target is from the grid of spacing 1/r, on average, when it is rounded at random.

    Round r u to a whole vector of the same sum, each coordinate up with probability ``f_y = frac(r u_y)``:
    its mean is r u, and its mean l1 distance ``sum_y 2 f_y (1 - f_y)``. The ``f_y`` sum to a whole number s, so
    that is at most ``2 s (k - s) / k``.
    """
    return 2 * (n_classes // 2) * ((n_classes + 1) // 2) / (n_classes * resolution)


def best_targets(
    atoms: Atoms, price: Float64s, resolution: int, own_points: Float64s
) -> tuple[float, Clusters]:
    """The largest gain on the grid and at `own_points` (at least 0), and the clusters near enough to gaining.

    The gain of moving to u at given prices of the atoms is

        gain(u) = sum_y u_y L_y(u),   L_y(u) = max over atoms a = (v, y) of price_a - ||u - v||_1.

    With g the random rounding of u, whose mean is u, and because each L_y is 1-Lipschitz,

        gain(u) = E sum_y g_y L_y(u) <= E [gain(g) + ||g - u||_1] <= max gain(g) + rounding_cost.

    So cells whose corners all have a gain below minus the rounding cost hold no gain at all and are not
    refined, and no gain anywhere exceeds that returned by more than the rounding cost of the finest grid.
    """
    k, level = atoms.classes.size, min(COARSEST, resolution)
    grid = _whole_grid(k, level)
    gain = _gain(atoms, price, grid / level)
    while level < resolution:
        grid, level = _refined(grid[gain > -rounding_cost(k, level)], 2 * level), 2 * level
        gain = _gain(atoms, price, grid / level)
    points = np.vstack([grid / level, own_points])
    gain = np.append(gain, _gain(atoms, price, own_points))
    room = gain + rounding_cost(k, level) / 2
    near = room > 0
    return max(0.0, float(gain.max())), _promising(atoms, price, points[near], room[near])


def _whole_grid(n_classes: int, resolution: int) -> Ints:
    """All vectors of whole numbers with this sum."""
    grid = np.array(list(product(range(resolution + 1), repeat=n_classes)))
    on_simplex: Ints = grid[grid.sum(axis=1) == resolution]
    return on_simplex


def _refined(grid: Ints, resolution: int) -> Ints:
    """The points of a grid twice as fine in all cells that the given points are corners of."""
    k = grid.shape[1]
    step = np.array(list(product(range(-2, 3), repeat=k)))
    step = step[step.sum(axis=1) == 0]
    digits = (resolution + 1) ** np.arange(k - 1)
    code = np.empty(0, dtype=np.int64)
    for rows in row_blocks(grid.shape[0], step.size):
        finer = (2 * grid[rows, None, :] + step).reshape(-1, k)
        code = np.union1d(code, finer[(finer >= 0).all(axis=1), 1:] @ digits)
    others = code[:, None] // digits % (resolution + 1)
    return np.column_stack([resolution - others.sum(axis=1), others])


def _gain(atoms: Atoms, price: Float64s, points: Float64s) -> Float64s:
    """``sum_y u_y L_y(u)`` at each point u."""
    gain = np.zeros(points.shape[0])
    for y in range(points.shape[1]):
        gain += points[:, y] * _best_atoms(atoms, price, points, y, 1)[1][:, 0]
    return gain


def _best_atoms(atoms: Atoms, price: Float64s, points: Float64s, y: int, count: int) -> tuple[Ints, Float64s]:
    """For each point u the atoms of a class with the largest ``price_a - ||u - v||_1``, and these, best first."""
    from scipy.spatial.distance import cdist  # noqa: PLC0415 - not at `import polycal`

    own = atoms.of_class(y)
    count = min(count, own.size)
    best = np.empty((points.shape[0], count), dtype=np.int64)
    height = np.empty(best.shape)
    for rows in row_blocks(points.shape[0], own.size):
        loss = cdist(points[rows], atoms.position[own], "cityblock") + (atoms.outside - price)[own]
        few = np.argpartition(loss, count - 1, axis=1)[:, :count]
        few_loss = np.take_along_axis(loss, few, axis=1)
        order = np.argsort(few_loss, axis=1)
        best[rows] = own[np.take_along_axis(few, order, axis=1)]
        height[rows] = -np.take_along_axis(few_loss, order, axis=1)
    return best, height


def _promising(atoms: Atoms, price: Float64s, points: Float64s, room: Float64s) -> Clusters:
    """At each point the best cluster, and those with one member exchanged that lose at most `room`."""
    tried = [_best_atoms(atoms, price, points, y, _N_TRIED) for y in range(points.shape[1])]
    best = np.column_stack([atom[:, 0] for atom, _ in tried])
    targets, members = [points], [best]
    for y, (atom, height) in enumerate(tried):
        for other in range(1, atom.shape[1]):
            loss = points[:, y] * (height[:, 0] - height[:, other])
            rows = np.flatnonzero((loss <= room) & (points[:, y] > 0))
            exchanged = best[rows]
            exchanged[:, y] = atom[rows, other]
            targets.append(points[rows])
            members.append(exchanged)
    return make_clusters(atoms, np.vstack(targets), np.vstack(members))
