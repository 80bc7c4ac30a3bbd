"""A calibrator from what its ``save`` wrote."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from polycal import calibrators
from polycal.calibrators._base import ATTRIBUTE, Calibrator
from polycal.calibrators._packing import unpack_steps
from polycal.storage.damage import readable
from polycal.storage.model import Arrays


def rebuild_calibrator(meta: dict[str, Any], arrays: Arrays) -> Calibrator:
    """The calibrator of a saved object; a header or arrays that do not make one are a ``ValueError``."""
    for module in iter_modules(calibrators.__path__):
        import_module(f"{calibrators.__name__}.{module.name}")
    with readable("a calibrator"):
        calibrator = Calibrator.families[meta["family"]](**meta["params"])
        calibrator._set_classes(*_classes(meta))
        calibrator.steps_ = unpack_steps(meta["steps"], arrays)
        for name in calibrator.saved_attributes:
            _set_attribute(calibrator, name, arrays)
        _probe(calibrator)
        return calibrator


def _set_attribute(calibrator: Calibrator, name: str, arrays: Arrays) -> None:
    """Set a fitted attribute; one that came after the first version has a default in its class."""
    if ATTRIBUTE + name in arrays or not hasattr(calibrator, name):
        value = arrays[ATTRIBUTE + name]
        setattr(calibrator, name, value if value.ndim else value.item())


def _classes(meta: dict[str, Any]) -> tuple[int, tuple[str, ...] | None]:
    n_classes, names = int(meta["n_classes"]), meta["class_names"]
    if names is not None and len(names) != n_classes:
        raise ValueError(f"{len(names)} names for {n_classes} classes")
    return n_classes, None if names is None else tuple(map(str, names))


def _probe(calibrator: Calibrator) -> None:
    """Refuse steps that do not fit together, by taking one row through them."""
    k = calibrator.n_classes_
    with np.errstate(all="ignore"):
        out = calibrator._map(np.full((1, k), 1.0 / k))
    if out.shape != (1, k) or not np.isfinite(out).all():
        raise ValueError("its steps do not lead from probabilities to probabilities")
