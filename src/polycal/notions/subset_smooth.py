"""Subset smooth calibration: is the summed probability of every set of classes right?"""

from dataclasses import dataclass
from typing import ClassVar

from polycal._validation import check_integer
from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample
from polycal.search.subset import search_subsets
from polycal.search.subset_enumeration import affordable, enumerate_subsets
from polycal.witness.question import SubsetWitness


@dataclass(frozen=True)
class SubsetSmooth(Notion):
    r"""Subset smooth calibration: is the summed probability of every set of classes right?

    Parameters
    ----------
    max_size : int, optional
        m, the largest number of classes in a set. By default any.

    Notes
    -----
    Definition: the largest smooth calibration error over sets of classes,
    :math:`\mathrm{ssCE}_m = \sup_{|T| \le m} \mathrm{smCE}_T`, from 0 to 1; the weights are
    :math:`1_T\,\varphi(\langle 1_T, v\rangle)` with 1-Lipschitz :math:`\varphi` [1]_. Estimator: exact by trying every
    set while that takes at most about half a minute (about 15 classes for 10,000 rows), else a climb
    from many starts, whose value is a lower bound. Cost: a sort for each set tried. Bias: upwards, and more so the
    more sets there are: a set found on some rows must be judged on others (`SubsetAuditor`, `certify`).

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Definition of subset smooth calibration.

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.4, 0.4, 0.1, 0.1]] * 4 + [[0.1, 0.1, 0.4, 0.4]] * 4
    >>> estimate = pc.estimate_error([0, 1, 0, 1, 2, 3, 2, 3], y_proba, pc.SubsetSmooth())
    >>> round(estimate.value, 3), estimate.kind, estimate.witness.describe()
    (0.12, 'exact', 'is it 0 or 1?')
    """

    max_size: int | None = None
    name: ClassVar[str] = "subset-smooth"

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=1)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        exact = affordable(sample, self.max_size)
        found = enumerate_subsets(sample, self.max_size) if exact else search_subsets(sample, self.max_size)
        witness = SubsetWitness(
            found.members, found.curve.phi.simplified(), sample.n_classes, sample.class_names
        )
        how = "all" if exact else "search over"
        return ErrorEstimate(
            value=found.curve.value,
            kind="exact" if exact else "lower bound",
            notion=self,
            method=f"{how} {found.n_evaluated:,} subsets",
            n_steps=found.n_evaluated,
            n_samples=sample.n_samples,
            witness=witness,
        )
