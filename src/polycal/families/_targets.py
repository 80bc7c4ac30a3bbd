"""Distinct predictions in clusters, and the calibrated predictions that they may be moved to."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import Sample, row_blocks

_SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class Atoms:
    """The distinct pairs of a prediction and a label, with their masses.

    A calibrated prediction gives no probability to classes that never occur, so targets and positions have
    one coordinate for each class that does, and what a prediction gives to the others is `outside`, a fixed
    part of every distance.

    Attributes
    ----------
    predictions : ndarray of shape (n_atoms, n_classes)
        The predictions.
    labels, mass : ndarray of shape (n_atoms,)
        The label and the mass of each; masses sum to 1.
    classes : ndarray of int64
        The labels that occur, increasing.
    position : ndarray of shape (n_atoms, n_occurring)
        The predictions' probabilities of these.
    outside : ndarray of shape (n_atoms,)
        The sum of their other probabilities.
    """

    predictions: Float64s
    labels: Ints
    mass: Float64s
    classes: Ints
    position: Float64s
    outside: Float64s

    def of_class(self, y: int) -> Ints:
        """The atoms labelled with the y-th class that occurs."""
        return np.flatnonzero(self.labels == self.classes[y])


@dataclass(frozen=True, eq=False)
class Clusters:
    """Atoms, one of each class, that may move to a common target, in the proportions the target says.

    Attributes
    ----------
    targets : ndarray of shape (n_clusters, n_occurring)
        Calibrated predictions u.
    members : ndarray of int64, shape (n_clusters, n_occurring)
        The atom of each class that moves; -1 where the target gives the class probability 0.
    cost : ndarray of shape (n_clusters,)
        The mean l1 distance moved, ``sum_y u_y ||u - v(member_y)||_1``.
    """

    targets: Float64s
    members: Ints
    cost: Float64s

    def take(self, rows: Ints) -> "Clusters":
        """Some of the clusters."""
        return Clusters(self.targets[rows], self.members[rows], self.cost[rows])

    def union(self, other: "Clusters") -> "Clusters":
        """Both, without repeats."""
        targets = np.vstack([self.targets, other.targets])
        members = np.vstack([self.members, other.members])
        _, first = np.unique(np.hstack([targets, members]), axis=0, return_index=True)
        return Clusters(targets[first], members[first], np.append(self.cost, other.cost)[first])

    def worth(self, price: Float64s) -> Float64s:
        """``sum_y u_y price(member_y)`` of each."""
        worth: Float64s = (self.targets * price[self.members]).sum(axis=1)
        return worth


def distinct_atoms(sample: Sample) -> Atoms:
    """Merge equal rows; rows of weight 0 are left out."""
    used = sample.mass > 0
    proba = sample.proba[used].astype(np.float64)
    # float32 rows sum to 1 only nearly.
    proba /= proba.sum(axis=1, keepdims=True)
    labels = sample.labels[used]
    distinct, row, atom = np.unique(
        np.column_stack([proba, labels]), axis=0, return_index=True, return_inverse=True
    )
    predictions, classes = distinct[:, :-1], np.unique(labels)
    return Atoms(
        predictions=predictions,
        labels=labels[row],
        mass=np.asarray(np.bincount(atom, weights=sample.mass[used]), dtype=np.float64),
        classes=classes,
        position=predictions[:, classes],
        outside=np.delete(predictions, classes, axis=1).sum(axis=1),
    )


def make_clusters(atoms: Atoms, targets: Float64s, members: Ints) -> Clusters:
    """Clusters with their costs."""
    members = np.where(targets > 0, members, -1)
    cost = np.zeros(targets.shape[0])
    for y in range(targets.shape[1]):
        moved = np.abs(targets - atoms.position[members[:, y]]).sum(axis=1) + atoms.outside[members[:, y]]
        cost += targets[:, y] * moved
    return Clusters(targets, members, cost)


def starting_clusters(atoms: Atoms) -> Clusters:
    """Each atom alone moves to its corner, or atoms of equal predictions together to their label frequencies."""
    n, k = atoms.position.shape
    label = np.searchsorted(atoms.classes, atoms.labels)
    _, group = np.unique(atoms.predictions, axis=0, return_inverse=True)
    frequency = np.zeros((int(group.max()) + 1, k))
    frequency[group, label] = atoms.mass
    together = np.full(frequency.shape, -1)
    together[group, label] = np.arange(n)
    alone = np.where(np.eye(k, dtype=np.bool_)[label], np.arange(n)[:, None], -1)
    corners = make_clusters(atoms, np.eye(k)[label], alone)
    return corners.union(make_clusters(atoms, well_scaled(frequency), together))


def well_scaled(targets: Float64s) -> Float64s:
    """The same proportions, without those so small that a linear program would lose them."""
    share = targets / targets.sum(axis=1, keepdims=True)
    share[share < _SMALLEST] = 0.0
    scaled: Float64s = share / share.sum(axis=1, keepdims=True)
    return scaled


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
