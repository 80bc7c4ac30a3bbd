"""Former names of what takes lists of classes: full predictions and lists go through the same functions now."""

from typing import Any

from polycal._validation import check_sample
from polycal.families.kernel_lists import ListedKernelWitness as ListKernelWitness
from polycal.families.questions import SubsetWitness
from polycal.families.subset import SubsetAuditor
from polycal.inference.certificate import certify
from polycal.listed import ListedSample
from polycal.listed import ListedSample as SparseSample
from polycal.measures.smooth import SmoothInterval, smooth_calibration_error
from polycal.sample import Remainder

__all__ = [
    "ListKernelWitness",
    "SmoothInterval",
    "SparseSample",
    "certify",
    "find_subset",
    "smooth_calibration_error",
    "sparse_sample",
]


def sparse_sample(
    y_true: Any, y_proba: Any, *, remainder: Remainder = "unknown", **options: Any
) -> ListedSample:
    """Validate lists: see `smooth_calibration_error` for the arguments."""
    sample = check_sample(y_true, y_proba, remainder=remainder, **options)
    if not isinstance(sample, ListedSample):
        raise TypeError(
            f"y_proba must be a SciPy sparse matrix of shape (n, k); got {type(y_proba).__name__}."
        )
    return sample


def find_subset(
    y_true: Any,
    y_proba: Any,
    *,
    max_size: int | None = None,
    n_starts: int = 4,
    random_state: int = 0,
    **options: Any,
) -> SubsetWitness:
    """Look for a set of classes as ``SubsetAuditor(max_size).find_witness`` does."""
    auditor = SubsetAuditor(max_size, n_starts=n_starts, random_state=random_state)
    return auditor.find(sparse_sample(y_true, y_proba, **options))
