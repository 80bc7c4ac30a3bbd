"""Calibrators by name, as the command line gives them."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polycal.calibrators._base import Calibrator

# Module and class of those that need no arguments: the command lists them without importing them. "identity" is what
# the others are compared with.
CALIBRATORS = {
    "kernel": ("kernel", "KernelCalibrator"),
    "audited": ("audited", "AuditedCalibrator"),
    "temperature": ("temperature", "TemperatureScaling"),
    "ensemble-temperature": ("ensemble", "EnsembleTemperatureScaling"),
    "vector": ("vector", "VectorScaling"),
    "matrix": ("matrix", "MatrixScaling"),
    "dirichlet": ("dirichlet", "DirichletCalibrator"),
    "isotonic": ("isotonic", "IsotonicCalibrator"),
    "beta": ("beta", "BetaCalibrator"),
    "histogram": ("histogram", "HistogramCalibrator"),
    "identity": ("identity", "IdentityCalibrator"),
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
    module, family = CALIBRATORS[name]
    calibrator: Calibrator = getattr(import_module(f"polycal.calibrators.{module}"), family)()
    if "random_state" in calibrator.get_params(deep=False):
        calibrator.set_params(random_state=seed)
    return calibrator
