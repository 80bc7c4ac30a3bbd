"""Recalibration from auditing."""

from polycal.calibrators.audited.calibrator import AuditedCalibrator

__all__ = ["AuditedCalibrator"]
