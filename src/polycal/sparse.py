"""Former names: lists of classes go through the same functions as full predictions now."""

from typing import Any

from polycal._typing import Seed
from polycal._validation import check_sample
from polycal._validation.lists import check_lists
from polycal.families.kernel_lists import ListedKernelWitness as ListKernelWitness
from polycal.families.subset import SubsetAuditor
from polycal.inference.certificate import certify
from polycal.listed import ListedSample as SparseSample
from polycal.measures.smooth import SmoothInterval, smooth_calibration_error

__all__ = ["ListKernelWitness", "SmoothInterval", "SparseSample", "certify", "smooth_calibration_error"]
__all__ += ["find_subset", "sparse_sample"]


def sparse_sample(y_true: Any, y_proba: Any, *, remainder: Any = "unknown", **options: Any) -> Any:
    """Validate lists of classes; the options are those of `smooth_calibration_error`."""
    check_lists(y_proba)
    return check_sample(y_true, y_proba, remainder=remainder, **options)


def find_subset(
    y_true: Any,
    y_proba: Any,
    *,
    max_size: int | None = None,
    n_starts: int = 4,
    random_state: Seed = 0,
    **options: Any,
) -> Any:
    """Look for a set of classes as ``SubsetAuditor(max_size).find_witness`` does."""
    auditor = SubsetAuditor(max_size, n_starts=n_starts, random_state=random_state)
    return auditor.find(sparse_sample(y_true, y_proba, **options))
