"""Projected smooth calibration: smooth calibration of every weighted sum of the probabilities."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_real
from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample
from polycal.search.effort import Effort
from polycal.search.points import distinct_points
from polycal.search.projected import search_directions
from polycal.search.verdict import projected_witness


@dataclass(frozen=True)
class ProjectedSmooth(Notion):
    r"""Projected smooth calibration: is each class right, seen through any weighted sum of the probabilities?

    The strongest notion known that can be audited in polynomial time in k (for a fixed error) [1]_: it bounds
    the smooth calibration error of every set of classes, and more.

    Parameters
    ----------
    m : float, optional
        Bound on the squared Euclidean length of the directions; by default k, which is no bound.

    Notes
    -----
    Definition: each coordinate :math:`\ell` of the weight is
    :math:`\varphi_\ell(\langle a_\ell, v\rangle)` with :math:`a_\ell \in [-1, 1]^k`,
    :math:`\|a_\ell\|_2^2 \le m` and :math:`\varphi_\ell` 1-Lipschitz into [-1, 1], so

    .. math:: \mathrm{psCE}_m = \sum_\ell \sup_{a, \varphi} \mathbb{E}[(y_\ell - v_\ell)\,\varphi(\langle a, v\rangle)].

    Estimator: along a given direction the best :math:`\varphi` is exact, as for `smooth_calibration_error`;
    directions are found by gradient ascent of that exact value from many starts, which are the same for every
    order of rows and (but for classes used exactly alike) of classes. What is found is a lower bound. Up to 6
    classes every set of classes is among the starts, so that the value is at least the subset smooth error
    of size m (of samples that are searched whole). A search looks at no more than 32,768 distinct predictions, or
    4 million probabilities; the value is that of the whole sample.

    *Two classes are exact.* Predictions are :math:`(1 - p, p)`, so
    :math:`\langle a, v\rangle = a_0 + (a_1 - a_0) p`, and a weight :math:`\varphi(\langle a, v\rangle)` is a
    function of p into [-1, 1] of Lipschitz constant :math:`|a_1 - a_0|`. In the box
    :math:`|a_1 - a_0| \le 2`, in the ball :math:`|a_1 - a_0| \le \sqrt{2 m}` (Cauchy-Schwarz with (-1, 1)); the
    direction :math:`(-c, c)` with :math:`c = \min(1, \sqrt{m/2})` lies in both and has the smaller of the two.
    Along it :math:`\varphi` runs through all functions of p with Lipschitz constant 2c, which
    contain those of every other direction. So one direction is enough.

    Cost: some hundred sorts of n numbers for each class, on all cores. Bias: upwards, and the more so the more
    classes there are: judge the witness on rows it has not seen.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section
       "Efficient Auditing for Projected Smooth Calibration".

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 0, 1], [0.2, 0.5, 0.9], pc.ProjectedSmooth())
    >>> round(estimate.value, 4), estimate.kind
    (0.4667, 'exact')
    """

    m: float | None = None
    name: ClassVar[str] = "projected-smooth"

    def __post_init__(self) -> None:
        if self.m is not None:
            check_real(self.m, "m", low=0)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        k = sample.n_classes
        m = float(k if self.m is None else min(self.m, k))
        two = k == 2
        witness = projected_witness(sample, _two_class_directions(m) if two else _directions(sample, m))
        return ErrorEstimate(
            value=float(witness.contributions.sum()),
            kind="exact" if two else "lower bound",
            notion=self,
            method="exact supremum over 1-Lipschitz weights, "
            + ("one direction for two classes" if two else "along directions found by gradient ascent"),
            n_steps=k,
            n_samples=sample.n_samples,
            witness=witness,
        )


def _two_class_directions(m: float) -> Float64s:
    """(-c, c) for both classes, as long as m allows."""
    c = min(1.0, np.sqrt(m / 2))
    return np.array([[-c, c], [-c, c]])


def _directions(sample: Sample, m: float) -> Float64s:
    """The best directions found, one row for each class."""
    points = distinct_points(sample)
    *_, best = search_directions(points, m, Effort.for_classes(sample.n_classes))
    return points.by_class_square(best)
