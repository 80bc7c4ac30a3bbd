"""Predictions that list only some classes, for numbers of classes at which full rows do not fit anywhere."""

from polycal.sparse._gate import sparse_sample
from polycal.sparse._sample import SparseSample
from polycal.sparse.certificate import certify
from polycal.sparse.kernel import ListKernelWitness
from polycal.sparse.smooth import SmoothInterval, smooth_calibration_error
from polycal.sparse.subset import find_subset

__all__ = [
    "ListKernelWitness",
    "SmoothInterval",
    "SparseSample",
    "certify",
    "find_subset",
    "smooth_calibration_error",
    "sparse_sample",
]
