"""The decision auditor: losses whose best actions show residuals."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from polycal._validation import check_integer
from polycal.auditors._base import Auditor
from polycal.auditors._cross_fit import cross_fit
from polycal.auditors._rows import weighted_rows
from polycal.sample import Sample
from polycal.search.decision import search_losses
from polycal.search.points import distinct_points
from polycal.search.verdict import decision_witness
from polycal.witness.decision import DecisionWitness


@dataclass(frozen=True)
class DecisionAuditor(Auditor):
    r"""Look for losses for which the outcomes of the best actions do not come as predicted.

    Parameters
    ----------
    actions : int, default 2
        Most actions to choose from.
    n_starts : int, default 4
        Random directions tried, beside those that the data suggest.
    random_state : int, default 0
        Seed of the random directions and of the halves.

    Notes
    -----
    The witness is one of `Decision`: a vector of length at most 1 for each action. Losses are sought in growing
    freedom: a threshold along one direction that the data suggest, any hyperplane between two actions, then three and
    more actions. Each half of the rows judges what was found on the other; the degree that does best
    is then searched for on all rows, and classes whose contribution does not hold up get weight 0.
    Cost: two searches in all on n rows, each some hundred passes of O(n k).

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> pc.DecisionAuditor().find_witness(fit.labels[:4000], fit.proba[:4000]).correlation(fresh) > 0.02
    True
    """

    actions: int = 2
    _: KW_ONLY
    n_starts: int = 4
    random_state: int = 0

    def __post_init__(self) -> None:
        check_integer(self.actions, "actions", minimum=2)
        check_integer(self.n_starts, "n_starts", minimum=0)
        check_integer(self.random_state, "random_state", minimum=0)

    def find(self, sample: Sample) -> DecisionWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        level, kept = cross_fit(sample, self._levels, self.random_state)
        return self._levels(sample)[level].restricted(np.flatnonzero(kept))

    def _levels(self, sample: Sample) -> list[DecisionWitness]:
        """A threshold, two actions, three actions, ..."""
        points = distinct_points(sample)
        found = search_losses(points, self.actions, self.n_starts, self.random_state)
        return [decision_witness(sample, points.by_class(losses)) for losses in found]
