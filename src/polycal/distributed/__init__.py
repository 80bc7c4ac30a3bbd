"""Audits, monitors and recalibration on Dask: states as in a stream, updated where the data is and merged as a tree.

Needs ``pip install 'polycal[dask]'``.
"""

from polycal.distributed._audit import audit
from polycal.distributed._monitor import update_monitor
from polycal.distributed._recalibrate import apply_calibrator, fit_answers, fit_calibrator

__all__ = ["apply_calibrator", "audit", "fit_answers", "fit_calibrator", "update_monitor"]
