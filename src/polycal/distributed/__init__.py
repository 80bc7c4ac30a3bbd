"""Audits and recalibration on Dask: the same states as in a stream, updated where the data is and merged as a tree.

Needs ``pip install 'polycal[dask]'``.
"""

from polycal.distributed._audit import audit
from polycal.distributed._recalibrate import apply_calibrator, fit_calibrator

__all__ = ["apply_calibrator", "audit", "fit_calibrator"]
