"""The sigmoid auditor: soft thresholds on weighted sums of the probabilities, one for each class."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from polycal._validation import check_integer, check_real
from polycal.auditors._base import Auditor
from polycal.auditors._cross_fit import cross_fit
from polycal.auditors._rows import weighted_rows
from polycal.sample import Sample
from polycal.search.effort import Effort
from polycal.search.points import distinct_points
from polycal.search.sigmoid import climb, ladder
from polycal.search.verdict import sigmoid_witness
from polycal.witness.sigmoid import SigmoidWitness


@dataclass(frozen=True)
class SigmoidAuditor(Auditor):
    r"""Look for soft thresholds on weighted sums of the probabilities beyond which each class is wrong.

    Parameters
    ----------
    slope : float, default 8
        L, at least 1: how sharp the thresholds may be.
    n_starts : int, default 2
        Random directions tried for each class, beside those that the data suggest.
    random_state : int, default 0
        Seed of the random directions and of the halves.

    Notes
    -----
    The witness is one of `Sigmoid`: :math:`\tanh(L\langle a_\ell, v\rangle + b_\ell)` for each class :math:`\ell`.
    Slopes 1, 2, 4, ..., L are tried: each half of the rows judges what was found on the other; the
    slope that does best is then searched for on all rows, and classes whose contribution does not hold up
    get weight 0. Cost: two searches in all on n rows, each of some ten passes of O(n k^2) for each slope.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> pc.SigmoidAuditor(4).find_witness(fit.labels[:4000], fit.proba[:4000]).correlation(fresh) > 0.05
    True
    """

    slope: float = 8.0
    _: KW_ONLY
    n_starts: int = 2
    random_state: int = 0

    def __post_init__(self) -> None:
        check_real(self.slope, "slope", low=1, high=1e6)
        check_integer(self.n_starts, "n_starts", minimum=0)
        check_integer(self.random_state, "random_state", minimum=0)

    def find(self, sample: Sample) -> SigmoidWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        level, kept = cross_fit(sample, self._levels, self.random_state)
        return self._levels(sample)[level].restricted(np.flatnonzero(kept))

    def _levels(self, sample: Sample) -> list[SigmoidWitness]:
        """The sigmoids of each slope."""
        points = distinct_points(sample)
        effort = Effort(self.n_starts, n_finalists=2, n_steps=15)
        rungs = climb(points, ladder(float(self.slope)), effort, self.random_state)
        return [sigmoid_witness(sample, rung.in_order_of(points)) for rung in rungs]
