"""The projection auditor: smooth functions of weighted sums of the probabilities, one for each class."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from polycal._validation import check_integer, check_real
from polycal.auditors._base import Auditor
from polycal.auditors._cross_fit import cross_fit
from polycal.auditors._rows import weighted_rows
from polycal.sample import Sample
from polycal.search.effort import Effort
from polycal.search.points import distinct_points
from polycal.search.projected import search_directions
from polycal.search.verdict import projected_witness
from polycal.witness.projected import ProjectedWitness


@dataclass(frozen=True)
class ProjectionAuditor(Auditor):
    r"""Look for weighted sums of the probabilities through which each class looks wrong.

    Parameters
    ----------
    m : float, optional
        Bound on the squared Euclidean length of the directions; by default k, which is no bound.
    n_starts : int, default 2
        Random directions tried for each class, beside those that the data suggest.
    random_state : int, default 0
        Seed of the random directions and of the halves.

    Notes
    -----
    The witness is one of `ProjectedSmooth`: :math:`\varphi_\ell(\langle a_\ell, v\rangle)` for each class :math:`\ell`.
    Directions are sought in three degrees of freedom: each class's own, the best of those that the data suggest, and
    those reached from there by gradient ascent. Each half of the rows judges what was found on the other; the degree
    that does best is then searched for on all rows, and classes whose contribution does not hold up get weight 0.
    Cost: two searches in all on n rows, each some ten to hundred sorts of n numbers for each class.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> pc.ProjectionAuditor().find_witness(fit.labels[:4000], fit.proba[:4000]).correlation(fresh) > 0.05
    True
    """

    m: float | None = None
    _: KW_ONLY
    n_starts: int = 2
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.m is not None:
            check_real(self.m, "m", low=0)
        check_integer(self.n_starts, "n_starts", minimum=0)
        check_integer(self.random_state, "random_state", minimum=0)

    def find(self, sample: Sample) -> ProjectedWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        level, kept = cross_fit(sample, self._levels, self.random_state)
        return self._levels(sample)[level].restricted(np.flatnonzero(kept))

    def _levels(self, sample: Sample) -> list[ProjectedWitness]:
        """Own classes, directions that the data suggest, directions climbed to."""
        points = distinct_points(sample)
        m = float(sample.n_classes if self.m is None else min(self.m, sample.n_classes))
        effort = Effort(self.n_starts, n_finalists=1, n_steps=15)
        found = search_directions(points, m, effort, self.random_state)
        return [projected_witness(sample, points.by_class_square(directions)) for directions in found]
