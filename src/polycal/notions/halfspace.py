"""Halfspace calibration: is each class right on either side of any hyperplane?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample
from polycal.search.effort import Effort
from polycal.search.halfspace import search_halfspaces
from polycal.search.points import distinct_points
from polycal.search.verdict import halfspace_witness


@dataclass(frozen=True)
class Halfspace(Notion):
    r"""Halfspace calibration: is each class right on either side of any hyperplane?

    Notes
    -----
    Definition: each coordinate of the weight is :math:`\mathrm{sign}(\langle a, v\rangle + b)` for any a and b.
    Auditing it is as hard as agnostically learning halfspaces, for which no polynomial algorithm is believed
    to exist [1]_. Estimator: a heuristic search. Sigmoids are climbed and sharpened up to slope 64, the best
    threshold along each direction found is exact by one sort, and hyperplanes are turned along lines on which
    the best place is again exact by one sort, while that gains. What is found is a lower bound; two classes
    leave only the threshold, and are exact. Predictions whose weighted sums differ by less than 1e-9 are not
    cut apart (for two classes all are). A search looks at no more than 32,768 distinct predictions; the value
    is that of the whole sample. Cost: O(n k^2) for the sigmoids, then some hundred sorts for each class, on all
    cores. Bias: upwards, at most of order :math:`k / \sqrt{n}`.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Theorem on
       the hardness of halfspace calibration.

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], pc.Halfspace())
    >>> estimate.value, estimate.kind
    (1.5, 'exact')
    """

    name: ClassVar[str] = "halfspace"

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        two = sample.n_classes == 2
        if two:
            # Thresholds on the probability of class 1, read without rounding.
            witness = halfspace_witness(sample, np.array([[0.0, 1.0], [0.0, 1.0]]), min_gap=0.0)
        else:
            points, effort = distinct_points(sample), Effort.for_classes(sample.n_classes)
            witness = halfspace_witness(sample, points.by_class_square(search_halfspaces(points, effort)))
        return ErrorEstimate(
            value=float(witness.contributions.sum()),
            kind="exact" if two else "lower bound",
            notion=self,
            method="every threshold" if two else "heuristic search, exact thresholds along directions found",
            n_steps=sample.n_classes,
            n_samples=sample.n_samples,
            witness=witness,
        )
