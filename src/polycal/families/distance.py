"""The distance to the nearest calibrated predictions, bracketed by a coupling."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer, check_sample
from polycal.families._targets import (
    COARSEST,
    Atoms,
    Clusters,
    best_targets,
    distinct_atoms,
    rounding_cost,
    starting_clusters,
    well_scaled,
)
from polycal.sample import Sample

_DEFAULT_RESOLUTION = {2: 4096, 3: 512, 4: 64}
_FINEST = 1 << 15


@dataclass(frozen=True, eq=False, repr=False)
class Coupling:
    """Where each part of a sample's mass moves to, so that the predictions become perfectly calibrated.

    Among the mass that arrives at a calibrated prediction u, the labels are distributed as u says.

    Attributes
    ----------
    predicted, calibrated : ndarray of shape (n_moves, n_classes)
        The prediction v that mass leaves, and the calibrated prediction u it moves to.
    labels : ndarray of int64, shape (n_moves,)
        The label of the mass.
    mass : ndarray of shape (n_moves,)
        The amount; the amounts sum to 1.
    """

    predicted: Float64s
    calibrated: Float64s
    labels: Ints
    mass: Float64s

    @property
    def cost(self) -> float:
        """The mean distance moved, E ||u - v||_1."""
        return float(self.mass @ np.abs(self.calibrated - self.predicted).sum(axis=1))

    def __repr__(self) -> str:
        return f"Coupling(n_moves={self.mass.size}, cost={self.cost:.6g})"


@dataclass(frozen=True, eq=False)
class DistanceToCalibration:
    """Proven bounds on the distance to calibration of a sample.

    Attributes
    ----------
    lower, upper : float
        The distance is between these; the upper bound is attained by `coupling`.
    coupling : Coupling
        A perfectly calibrated predictor at distance `upper`, and how to reach it.
    resolution : int
        The spacing of the finest grid searched is 1/resolution.
    """

    lower: float
    upper: float
    coupling: Coupling
    resolution: int


def distance_to_calibration(
    y_true: Any,
    y_proba: Any,
    *,
    resolution: int | None = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> DistanceToCalibration:
    r"""Bound how far the predictions are from the nearest perfectly calibrated ones. 0 is best, 2 is worst.

    For 2, 3 or 4 classes. Answers: by how much, on average and in l1 distance, must the predictions move
    before every probability they state is true?

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities.
    resolution : int, optional
        The finest grid of calibrated predictions has spacing 1/resolution (rounded up to a power of two).
        The bounds differ by at most 1, 4/3 or 2 times that spacing for 2, 3 or 4 classes. By default 4096, 512
        or 64.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    DistanceToCalibration

    Notes
    -----
    Definition: the infimum of :math:`\mathbb{E}\|u - v\|_1` over all joint distributions of (u, v, y) such that
    (v, y) is distributed as the sample and (u, y) is perfectly calibrated: given u, the label y is distributed
    as u [1]_. For two classes this is twice the "lower distance to calibration" of [2]_, which measures
    :math:`|u_1 - v_1|`. The full smooth error is at most 4 times the distance [1]_.

    Upper bound: a linear program over couplings to a finite set of calibrated predictions u (the grid, the
    sample's predictions and its label frequencies). It returns an explicit coupling.

    Lower bound: any coupling can be moved to the grid at a small cost, so the best one on the grid is nearly
    as good as the best of all. Given u, let g be a random grid point with mean u, drawn with
    probabilities :math:`c_g`, and move mass of label y from u to g with probability
    :math:`c_g\,g_y / u_y` (these sum to 1 over g). As y is distributed as u, mass still reaches g with
    probability :math:`c_g`, and the labels that reach g are distributed as g: the new coupling is calibrated.
    It costs at most :math:`\mathbb{E}\|g - u\|_1` more. Rounding each coordinate up or down gives
    :math:`\sum_y 2 f_y (1 - f_y) / r` for the fractional parts f of r u, which is at most
    :math:`2\lfloor k/2 \rfloor \lceil k/2 \rceil / (k r)`.

    Cost: the linear program has one row for each distinct (v, y) and its columns are found by a search that
    refines the grid only where a column may gain; seconds for a few hundred rows, minutes for a thousand.
    Bias: upwards; with few repeats even calibrated predictions are at a distance from calibration *on the
    sample*, and estimating the population's takes exponentially many samples in k [1]_.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration",
       Section "Sample Complexity of Canonical Calibration".
    .. [2] Blasiok, Gopalan, Hu and Nakkiran (2023), "A Unifying Theory of Distance from Calibration".

    Examples
    --------
    >>> import polycal as pc
    >>> distance = pc.distance_to_calibration([0, 1, 1, 1], [[0.5, 0.5]] * 4)
    >>> round(distance.upper, 3), distance.upper - distance.lower < 0.001
    (0.5, True)
    >>> round(distance.coupling.cost, 3)
    0.5
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    resolution = _resolution(resolution, sample)
    atoms = distinct_atoms(sample)
    lower, upper, clusters, amount = cheapest_coupling(atoms, resolution)
    return DistanceToCalibration(lower, upper, _moves(atoms, clusters, amount), resolution)


def _resolution(resolution: int | None, sample: Sample) -> int:
    """The number of steps of the finest grid: a power of two."""
    if sample.n_classes not in _DEFAULT_RESOLUTION:
        raise ValueError(
            f"distance_to_calibration searches a grid of all predictions, which has exponentially many points in "
            f"the number of classes: at most {max(_DEFAULT_RESOLUTION)} classes, got {sample.n_classes}. Use "
            "FullSmooth, which is at most 4 times the distance, or SubsetSmooth."
        )
    if resolution is None:
        return _DEFAULT_RESOLUTION[sample.n_classes]
    check_integer(resolution, "resolution", minimum=1, maximum=_FINEST)
    return 1 << (int(resolution) - 1).bit_length()


def _moves(atoms: Atoms, clusters: Clusters, amount: Float64s) -> Coupling:
    """The moves of single atoms that the clusters are made of, each pair of atom and target once."""
    cluster, y = np.nonzero((amount[:, None] > 0) & (clusters.members >= 0))
    atom = clusters.members[cluster, y]
    target = np.zeros((cluster.size, atoms.predictions.shape[1]))
    target[:, atoms.classes] = clusters.targets[cluster]
    moves, move = np.unique(np.column_stack([atom, target]), axis=0, return_inverse=True)
    mass = np.zeros(moves.shape[0])
    np.add.at(mass, move, amount[cluster] * clusters.targets[cluster, y])
    atom = moves[:, 0].astype(np.int64)
    return Coupling(atoms.predictions[atom], moves[:, 1:], atoms.labels[atom], mass)


# Gains below this are the linear program's own tolerance.
_TOLERANCE = 1e-9
_MAX_ROUNDS = 300


def cheapest_coupling(atoms: Atoms, resolution: int) -> tuple[float, float, Clusters, Float64s]:
    """Bounds below and above on the distance to calibration, and the clusters, with amounts, that attain the upper.

    Every coupling with calibrated u is a mixture of clusters (given u, draw an atom of each class). So the
    distance is the linear program

        min sum_c q_c cost_c   subject to   sum of q_c u_c[y] over clusters c with member_y = a  =  mass_a,

    whose dual is: max sum_a mass_a price_a, such that no target has a positive gain (`best_targets`). The
    program is solved with the clusters found so far, and clusters of positive gain are added on a grid made
    twice as fine whenever it offers none, until the finest offers none. Lowering all prices by the largest
    gain over the simplex makes them feasible, which gives the lower bound.
    """
    k, level = atoms.classes.size, min(COARSEST, resolution)
    lower, best = 0.0, np.inf
    clusters = start = starting_clusters(atoms)
    own_points = np.vstack([start.targets, well_scaled(atoms.position[atoms.outside == 0])])
    own_points = np.unique(own_points, axis=0)
    upper, amount, price = _solve(atoms, clusters)
    for _ in range(_MAX_ROUNDS):
        gain, new = best_targets(atoms, price, level, own_points)
        while level < resolution and gain <= max(_TOLERANCE, rounding_cost(k, level) / 10):
            level *= 2
            gain, new = best_targets(atoms, price, level, own_points)
        lower = max(lower, float(atoms.mass @ price) - gain - rounding_cost(k, level))
        if gain <= _TOLERANCE:
            break
        if upper < best - _TOLERANCE:
            # Only after a gain: forgetting clusters at a standstill would go round in circles.
            best, useful = upper, clusters.cost - clusters.worth(price) < rounding_cost(k, level)
            # The start keeps the program feasible whatever the solver's tolerance did to small masses.
            clusters = start.union(clusters.take(np.flatnonzero(useful | (amount > 0))))
        clusters = clusters.union(new)
        upper, amount, price = _solve(atoms, clusters)
    return min(lower, upper), upper, clusters, amount


def _solve(atoms: Atoms, clusters: Clusters) -> tuple[float, Float64s, Float64s]:
    """The least cost, the amount of each cluster, and the price of each atom."""
    from scipy.optimize import linprog  # noqa: PLC0415 - not at `import polycal`
    from scipy.sparse import csc_array  # noqa: PLC0415

    column, y = np.nonzero(clusters.members >= 0)
    share: Any = csc_array(
        (clusters.targets[column, y], (clusters.members[column, y], column)),
        shape=(atoms.mass.size, clusters.cost.size),
    )
    solution: Any = linprog(
        clusters.cost,
        A_eq=share,
        b_eq=atoms.mass,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.x is None:
        raise RuntimeError(f"The linear program of the coupling was not solved: {solution.message}")
    return float(solution.fun), solution.x, solution.eqlin.marginals
