"""Vector scaling, and the labels of rows nearby, which bend it where few rows could fit nothing that bends."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s
from polycal.calibrators.kernel import tuning
from polycal.calibrators.loss import total_weight
from polycal.calibrators.regression import rows_without
from polycal.kernels.kernels import Gaussian, median_distance
from polycal.sample import Sample
from polycal.steps import Affine, Exp, InBlocks, Linear, Log, Normalise, Program, Sum, gaussian_exponents, run


@dataclass(frozen=True)
class Neighbourhood:
    r"""How near labels must be to count, and how much they must be to matter.

    Where c is vector scaling, :math:`(m c(v) + \sum_i K(c(v), c(v_i)) 1_{y_i}) / (m + \sum_i K(c(v), c(v_i)))` with a
    Gaussian K on logarithms: what is expected of the label where those nearby are draws from it, and m rows before
    them agreed with c.

    Attributes
    ----------
    width : float
        Of K, as a part of the median distance.
    prior_rows : float
        m.
    """

    width: float
    prior_rows: float

    def steps(self, centre: Program, sample: Sample) -> Program:
        """The map, given vector scaling of the sample."""
        points = _points(run(centre, sample.proba.astype(np.float64)))
        n, k = points.shape
        counts = np.zeros((n, k))
        counts[np.arange(n), sample.labels] = total_weight(sample) * sample.mass
        largest = float(k * np.log(tuning.LANDMARK_FLOOR) ** 2)
        near: Program = (
            Log(tuning.LANDMARK_FLOOR),
            *gaussian_exponents(points, self.width * _unit(points), largest),
            Exp(),
            Linear(counts, np.zeros(k)),
        )
        before = Affine(np.array([self.prior_rows]), np.zeros(1))
        return *centre, Sum(((before,), (InBlocks((near,), 4.0 * n),))), Normalise(np.full(k, 1.0 / k))


def choose_neighbourhood(sample: Sample, folds: Sequence[slice], centres: Sequence[Program]) -> Neighbourhood:
    """That of the smallest log loss of held-out rows, given vector scaling without each fold.

    One is chosen from few: the rows of each fold cost as many products as there are others, once for every width.
    """
    rows_before = _rows_before(sample).tolist()
    tried = [Neighbourhood(width, rows) for width in tuning.NEAR_WIDTHS for rows in rows_before]
    total = sum(_log_likelihoods(sample, fold, centre) for fold, centre in zip(folds, centres, strict=True))
    return tried[int(np.argmax(total))]


def _log_likelihoods(sample: Sample, fold: slice, centre: Program) -> Float64s:
    """Those of a fold's rows, for every width and number of rows before."""
    proba, rest = run(centre, sample.proba.astype(np.float64)), rows_without(sample.n_samples, fold)
    points, labels = _points(proba), sample.labels
    own = proba[fold][np.arange(fold.stop - fold.start), labels[fold]]
    agrees, weight = labels[fold, None] == labels[rest], total_weight(sample) * sample.mass[rest]
    rows_before, out = _rows_before(sample)[:, None], list[Float64s]()
    for width in tuning.NEAR_WIDTHS:
        near = Gaussian(width * _unit(points[rest])).block(points[fold], points[rest]) * weight
        likely = (rows_before * own + (near * agrees).sum(axis=1)) / (rows_before + near.sum(axis=1))
        out.append(np.log(np.maximum(likely, tuning.POOL_FLOOR)) @ sample.mass[fold])
    return np.concatenate(out)


def _rows_before(sample: Sample) -> Float64s:
    """The numbers of rows that are tried: more where rows are so few that any choice is noise."""
    return np.array(tuning.NEAR_ROWS) * max(1.0, tuning.SCARCE_ROWS / total_weight(sample))


def _points(proba: Float64s) -> Float64s:
    """Where rows are."""
    return np.log(np.maximum(proba, tuning.LANDMARK_FLOOR))


def _unit(points: Float64s) -> float:
    """The median distance; no closer rows are told apart than rounding allows."""
    return max(median_distance(points), tuning.LEAST_UNIT)
