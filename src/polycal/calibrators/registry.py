"""Calibrators by name. The command lists the names without importing the calibrators."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from polycal._validation import with_names

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


def check_calibrators(calibrators: Any, seed: int = 0) -> "dict[str, Calibrator]":
    """Validate calibrators by name: a mapping, or a list of calibrators and of names of them."""
    if isinstance(calibrators, str) or not isinstance(calibrators, Iterable):
        calibrators = [calibrators]
    if not isinstance(calibrators, Mapping):
        calibrators = with_names(list(calibrators))
    return {
        str(name): check_unfitted(one, f"calibrators[{name!r}]", seed) for name, one in calibrators.items()
    }


def check_unfitted(calibrator: Any, name: str, seed: int = 0) -> "Calibrator":
    """Validate a calibrator that is to be fitted, which may be given by its name."""
    if isinstance(calibrator, str):
        return make_calibrator(calibrator, seed)
    if isinstance(calibrator, type) or not hasattr(calibrator, "_fit_sample"):
        raise TypeError(
            f"{name} must be a calibrator such as polycal.TemperatureScaling(), or its name; got {calibrator!r}."
        )
    checked: Calibrator = calibrator
    return checked


def find_class(name: str) -> "type[Calibrator]":
    """The class of that name."""
    module, family = CALIBRATORS[name]
    found: type[Calibrator] = getattr(import_module(f"polycal.calibrators.{module}"), family)
    return found
