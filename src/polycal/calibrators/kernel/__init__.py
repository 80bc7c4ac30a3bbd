"""The kernel calibrator."""

from polycal.calibrators.kernel.calibrator import KernelCalibrator

__all__ = ["KernelCalibrator"]
