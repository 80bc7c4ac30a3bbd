"""What was found, valued on a whole sample in double precision."""

from dataclasses import replace

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Float64s, Ints
from polycal.functions import ScalarFunction
from polycal.sample import Sample, row_blocks
from polycal.search.lines import MIN_GAP, Cut, best_scalar_cut
from polycal.search.sigmoid import Sigmoids
from polycal.smooth import SmoothCurve, projected_curve
from polycal.witness._base import Witness
from polycal.witness._directions import excesses
from polycal.witness.decision import DecisionWitness
from polycal.witness.halfspace import HalfspaceWitness
from polycal.witness.projected import ProjectedWitness
from polycal.witness.sigmoid import SigmoidWitness

# Part of a large sample is enough to say which classes are likely together.
_MAX_CELLS = 1 << 22


def coordinate_contributions(witness: Witness, sample: Sample) -> tuple[Float64s, Float64s]:
    """``E (y_l - v_l) w_l(v)`` for each class l, whose sum is the correlation, and their standard errors."""
    mass = sample.mass
    total, square = np.zeros((2, sample.n_classes))
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        residual = -sample.proba[rows].astype(np.float64)
        residual[np.arange(residual.shape[0]), sample.labels[rows]] += 1.0
        residual *= witness.evaluate(sample.proba[rows]) * mass[rows, None]
        total += residual.sum(axis=0)
        square += np.einsum("ij,ij->j", residual, residual)
    return total, np.sqrt(np.maximum(square - total**2 * (mass @ mass), 0.0))


def projected_witness(sample: Sample, directions: Float64s) -> ProjectedWitness:
    """The exact best 1-Lipschitz function of ``<directions_l, v>`` for each class l."""
    curves = map_threads(lambda c: _projected_curve(sample, c, directions[c]), range(sample.n_classes))
    phis: tuple[ScalarFunction, ...] = tuple(curve.phi.simplified() for curve in curves)
    values = np.array([curve.value for curve in curves])
    leading = leading_classes(sample, directions)
    return ProjectedWitness(directions, phis, leading, values, sample.n_classes, sample.class_names)


def sigmoid_witness(sample: Sample, found: Sigmoids) -> SigmoidWitness:
    """The sigmoids as a witness, each turned round where it comes out negative."""
    directions, offsets = found.curves / found.slope, found.offsets
    leading = leading_classes(sample, directions)
    blank = SigmoidWitness(
        found.slope, directions, offsets, leading, found.values, sample.n_classes, sample.class_names
    )
    values, _ = coordinate_contributions(blank, sample)
    sign = np.where(values < 0, -1.0, 1.0)
    return replace(
        blank, directions=sign[:, None] * directions, offsets=sign * offsets, contributions=np.abs(values)
    )


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


def decision_witness(sample: Sample, losses: Float64s) -> DecisionWitness:
    """The mean residual where each action is best, scaled to length 1."""
    mass = sample.mass
    sums = np.zeros(losses.shape)
    blank = DecisionWitness(losses, sums, np.zeros(len(losses)), sample.n_classes, sample.class_names)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        action = blank.actions(sample.proba[rows])
        np.add.at(sums, (action, sample.labels[rows]), mass[rows])
        chosen = (action == np.arange(len(losses))[:, None]) * mass[rows]
        sums -= chosen @ sample.proba[rows]
    norms = np.linalg.norm(sums, axis=1)
    weights = sums / np.maximum(norms, 1e-300)[:, None]
    return DecisionWitness(losses, weights, norms, sample.n_classes, sample.class_names)


def leading_classes(sample: Sample, directions: Float64s, n_leading: int = 3) -> Ints:
    """For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first."""
    step = max(1, sample.proba.size // _MAX_CELLS)
    proba = sample.proba[::step].astype(np.float64)
    influence = np.abs(excesses(directions)) * (proba.T @ proba)
    leading: Ints = np.argsort(-influence, axis=1, kind="stable")[:, :n_leading]
    return leading


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


def _projected_curve(sample: Sample, label: int, direction: Float64s) -> SmoothCurve:
    return projected_curve(projected(sample, direction), class_residual(sample, label))
