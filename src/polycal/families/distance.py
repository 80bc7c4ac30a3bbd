"""The distance to the nearest calibrated predictions, bracketed by a coupling; and errors of near predictions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer, check_notion, check_proba, check_sample, check_subset
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
from polycal.families.full_smooth import FullSmooth
from polycal.families.low_degree import LowDegree
from polycal.families.notion import Notion
from polycal.families.projected import ProjectedSmooth
from polycal.families.questions import Classwise
from polycal.families.sigmoid import Sigmoid
from polycal.families.subset import SubsetSmooth
from polycal.sample import Sample, ask

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

    Examples
    --------
    >>> import polycal as pc
    >>> coupling = pc.distance_to_calibration([0, 1, 1, 1], [0.2, 0.4, 0.4, 0.9]).coupling
    >>> round(float(coupling.mass.sum()), 6)
    1.0
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

    Examples
    --------
    >>> import polycal as pc
    >>> distance = pc.distance_to_calibration([0, 1, 1, 1], [0.2, 0.4, 0.4, 0.9])
    >>> 0 <= distance.lower <= distance.upper
    True
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
    :math:`|u_1 - v_1|`. The full smooth error is at most 3 times the distance (by the proof of [1]_, which states 4).

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


def question_distance(
    y_true: Any,
    y_proba: Any,
    *,
    subset: Any = None,
    resolution: int | None = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> DistanceToCalibration:
    r"""Bound how far the probability of one question is from a calibrated one, whatever the number of classes.

    Answers: is there a predictor of "is the label in `subset`?" that is perfectly calibrated and says nearly the same?

    Parameters
    ----------
    y_true, y_proba, subset, sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.
    resolution : int, optional
        As for `distance_to_calibration`.

    Returns
    -------
    DistanceToCalibration
        Of the predictions (1 - u, u), with u the probability of the question; `coupling` leads to the calibrated
        predictor.

    Notes
    -----
    The paper's first property of projected smooth calibration [1]_: for every set T there is a calibrated predictor
    near :math:`u = \langle 1_T, v\rangle`. With :math:`|u - u^*|`, half of the distance here, as measure, the nearest
    one is between half and twice the smooth calibration error of T away [2]_, so that

    .. math:: \mathrm{smCE}_T \le \text{distance} \le 4\,\mathrm{smCE}_T \le 4\,\mathrm{psCE}_m, \quad |T| \le m .

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section 1.
    .. [2] Blasiok, Gopalan, Hu and Nakkiran (2023), "A Unifying Theory of Distance from Calibration".

    Examples
    --------
    >>> from polycal.families import question_distance
    >>> y_proba = [[0.1, 0.2, 0.3, 0.2, 0.2]] * 4
    >>> round(question_distance([0, 1, 2, 1], y_proba, subset=[0, 1]).upper, 3)
    0.9
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    question = ask(sample, check_subset(subset, sample))
    proba = np.column_stack([1.0 - question.predicted, question.predicted])
    return distance_to_calibration(
        question.hits.astype(np.int64), proba, resolution=resolution, sample_weight=question.weight
    )


def largest_change(notion: Notion, y_proba: Any, other_proba: Any, *, sample_weight: Any = None) -> float:
    r"""Bound by how much a notion's error can change when predictions move, whatever the labels.

    The bound is on the error itself: what a search finds of it, a lower bound, may change by more.

    Parameters
    ----------
    notion : SubsetSmooth, ProjectedSmooth, FullSmooth, Sigmoid, LowDegree, or Classwise with ``smooth=True``
    y_proba, other_proba : array-like of shape (n_samples, n_classes)
        The predictions before and after, for the same rows.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float

    Notes
    -----
    The paper's third property of projected smooth calibration, robustness [1]_. For weights that are L-Lipschitz in
    :math:`\ell_1` in each coordinate,

    .. math:: \langle y - v, w(v)\rangle - \langle y - v', w(v')\rangle
              = \langle v' - v, w(v)\rangle + \langle y - v', w(v) - w(v')\rangle
              \le (1 + 2 L)\,\|v - v'\|_1 ,

    as :math:`\|y - v'\|_1 \le 2`. L is 1 for Lipschitz functions and the slope of a sigmoid. No probability moves by
    more than half of :math:`\|v - v'\|_1`, so that L is half the degree of a polynomial. One question alone, of one
    class or one set of them, moves by this half too, and its residual is at most 1: there the factor is 1; for the sum
    over classes it is 2. Notions with thresholds or bins have no such bound.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section 1.

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.families import largest_change
    >>> round(largest_change(pc.ProjectedSmooth(), [[0.5, 0.3, 0.2]], [[0.45, 0.35, 0.2]]), 6)
    0.3
    """
    notion = check_notion(notion)
    before, after = check_proba(y_proba)[0], check_proba(other_proba, name="other_proba")[0]
    if before.shape != after.shape:
        raise ValueError(f"y_proba has shape {before.shape}, other_proba {after.shape}; they must be equal.")
    sample = check_sample(np.zeros(len(before), dtype=np.int64), before, sample_weight=sample_weight)
    moved = np.abs(before.astype(np.float64) - after).sum(axis=1)
    return _steepness(notion, sample.n_classes) * float(sample.mass @ moved)


def _steepness(notion: Notion, n_classes: int) -> float:
    """What a notion's error changes by, for each unit that predictions move."""
    match notion:
        case SubsetSmooth():
            return 1.0
        case Classwise(smooth=True):
            return {"max": 1.0, "sum": 2.0, "mean": 2.0 / n_classes}[notion.reduce]
        case ProjectedSmooth() | FullSmooth():
            return 3.0
        case Sigmoid():
            return 1.0 + 2.0 * notion.slope
        case LowDegree():
            return 1.0 + notion.degree
    raise ValueError(f"the error of {notion!r} can jump when predictions move a little: no bound holds.")


def _resolution(resolution: int | None, sample: Sample) -> int:
    """The number of steps of the finest grid: a power of two."""
    if sample.n_classes not in _DEFAULT_RESOLUTION:
        raise ValueError(
            f"distance_to_calibration searches a grid of all predictions, which has exponentially many points in "
            f"the number of classes: at most {max(_DEFAULT_RESOLUTION)} classes, got {sample.n_classes}. Use "
            "FullSmooth, which is at most 3 times the distance, or SubsetSmooth."
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
