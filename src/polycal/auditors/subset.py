"""The subset auditor: the set of classes whose summed probability is most wrong."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from polycal._validation import check_integer
from polycal.auditors._base import Auditor
from polycal.auditors._rows import weighted_rows
from polycal.auditors._shrunken import shrunken_landscape
from polycal.sample import Sample
from polycal.search.found_subset import found_subset, size_limit
from polycal.search.subset import class_ranks, climb_all, search_part, start_sets
from polycal.witness.question import SubsetWitness


@dataclass(frozen=True)
class SubsetAuditor(Auditor):
    r"""Look for the set of classes whose summed probability is most wrong.

    Parameters
    ----------
    max_size : int, optional
        The largest number of classes in the set; by default any.
    n_starts : int, default 4
        Random sets to start from, beside the classes seen too often, those seen too rarely, and the sets whose
        residuals go with their predictions most.
    random_state : int, default 0
        Seed of the random starts.

    See Also
    --------
    SubsetSmooth : The largest error over all sets, on the same rows.

    Notes
    -----
    The witness is one of `SubsetSmooth`: :math:`1_T\,\varphi(\langle 1_T, v\rangle)`, with the best
    :math:`\varphi` for the set T on the rows given. Its ``subset`` lists the classes of T.

    Search: from each start, flip the classes that gain most while :math:`\varphi` is kept, and find the best
    :math:`\varphi` of the new set, in turn. A set and its complement are one question; the smaller is returned.

    Regularisation: k yes/no choices fit the noise of a few rows a class. So the search does not look at the
    residuals themselves but at their expectation under :math:`p_j \propto v_j^a \pi_j^b`, a recalibration by two
    numbers (:math:`\pi` is the mean prediction), plus a share of what this leaves over. The share is the
    James-Stein factor of the class totals, which noise pulls to 0 and n to 1, and at least a quarter; the totals
    themselves, which such a search overfits most, are shrunk without that limit.

    Cost: a few dozen passes over the predictions, O(nk) each.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration".

    Examples
    --------
    >>> import numpy as np
    >>> from polycal.auditors.subset import SubsetAuditor
    >>> y_proba = np.full((100, 5), 0.2)
    >>> y_true = np.repeat(["cat", "car", "dog", "bus", "bike"], [28, 16, 28, 14, 14])
    >>> names = ["cat", "car", "dog", "bus", "bike"]
    >>> SubsetAuditor().find_witness(y_true, y_proba, class_names=names).subset
    ['cat', 'dog']
    """

    max_size: int | None = None
    _: KW_ONLY
    n_starts: int = 4
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=1)
        check_integer(self.n_starts, "n_starts", minimum=0)
        check_integer(self.random_state, "random_state", minimum=0)

    def find(self, sample: Sample) -> SubsetWitness:
        """Look for a set of classes in a validated sample."""
        sample = weighted_rows(sample)
        limit = size_limit(sample.n_classes, self.max_size)
        part = search_part(sample, self.random_state)
        landscape = shrunken_landscape(part)
        starts = start_sets(landscape, class_ranks(part), limit, self.n_starts, self.random_state)
        climbs = climb_all(landscape, starts, limit)
        members = np.flatnonzero(climbs[0].point.member)
        n_evaluated = sum(climb.n_evaluated for climb in climbs)
        return found_subset(sample, members, limit, n_evaluated).witness(sample)
