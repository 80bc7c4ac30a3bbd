"""Subset smooth calibration: can the probabilities of any set of classes be summed and trusted?"""

from dataclasses import dataclass
from typing import ClassVar

from polycal._validation import check_integer
from polycal.notions._base import ErrorEstimate, Kind, Notion
from polycal.sample import Sample
from polycal.search.subset import search_subsets
from polycal.search.subset_enumeration import affordable, enumerate_subsets


@dataclass(frozen=True)
class SubsetSmooth(Notion):
    r"""Subset smooth calibration: can the probabilities of any set of classes be summed and trusted?

    Parameters
    ----------
    max_size : int, optional
        The largest number of classes in a set; by default any.

    See Also
    --------
    SubsetAuditor : A set that is also wrong on other rows, for many classes.

    Notes
    -----
    Definition: the weights are :math:`1_T\,\varphi(\langle 1_T, v\rangle)` for each set T of at most `max_size`
    classes and each 1-Lipschitz :math:`\varphi` into [-1, 1], so the error is the largest `smooth_calibration_error`
    of a set [1]_. A set and its complement have the same error; the witness names the smaller one.
    Estimator: every set is tried while that takes less than about half a minute (any set of 17 classes for 10,000
    rows, any pair of 400), which is exact; else a search from many starts, which is a lower bound. Cost: a sort for
    each set. Bias: upwards, and strongly for many classes, because the largest of many sets also picks noise.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration".

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> from polycal.notions.subset_smooth import SubsetSmooth
    >>> y_proba = np.tile([0.25, 0.25, 0.25, 0.25], (8, 1))
    >>> estimate = pc.estimate_error([0, 0, 0, 1, 2, 2, 2, 3], y_proba, SubsetSmooth())
    >>> estimate.value, estimate.kind, estimate.witness.subset
    (0.25, 'exact', [0, 2])
    """

    max_size: int | None = None
    name: ClassVar[str] = "subset-smooth"

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=1)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        kind: Kind
        if affordable(sample, self.max_size):
            found, kind = enumerate_subsets(sample, self.max_size), "exact"
            method = f"all {found.n_evaluated} subsets"
        else:
            found, kind = search_subsets(sample, self.max_size), "lower bound"
            method = f"search over {found.n_evaluated} subsets"
        if self.max_size is not None:
            method += f" of at most {self.max_size} classes"
        return ErrorEstimate(
            value=found.curve.value,
            kind=kind,
            notion=self,
            method=method,
            n_steps=found.n_evaluated,
            n_samples=sample.n_samples,
            witness=found.witness(sample),
        )
