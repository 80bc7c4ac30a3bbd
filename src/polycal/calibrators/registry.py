"""Calibrators by name. The command lists the names without importing the calibrators."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polycal.calibrators.base import Calibrator

# Module and class of those that need no arguments. "identity" is what the others are compared with.
CALIBRATORS = {
    "kernel": ("kernel", "KernelCalibrator"),
    "audited": ("audited", "AuditedCalibrator"),
    "temperature": ("temperature", "TemperatureScaling"),
    "ensemble-temperature": ("ensemble", "EnsembleTemperatureScaling"),
    "vector": ("vector", "VectorScaling"),
    "matrix": ("matrix", "MatrixScaling"),
    "dirichlet": ("matrix", "DirichletCalibrator"),
    "isotonic": ("one_vs_rest", "IsotonicCalibrator"),
    "beta": ("one_vs_rest", "BetaCalibrator"),
    "histogram": ("one_vs_rest", "HistogramCalibrator"),
    "identity": ("base", "IdentityCalibrator"),
}


def make_calibrator(name: str, seed: int = 0) -> "Calibrator":
    """The calibrator of that name, with its random steps, if any, from that seed.

    Examples
    --------
    >>> make_calibrator("temperature")
    TemperatureScaling()
    """
    if name not in CALIBRATORS:
        raise ValueError(f"method {name!r} is not one of {', '.join(CALIBRATORS)}.")
    calibrator = find_class(name)()
    if "random_state" in calibrator.get_params(deep=False):
        calibrator.set_params(random_state=seed)
    return calibrator


def find_class(name: str) -> "type[Calibrator]":
    """The class of that name."""
    module, family = CALIBRATORS[name]
    found: type[Calibrator] = getattr(import_module(f"polycal.calibrators.{module}"), family)
    return found
