"""The file of a calibrator: plain arrays, and a description that JSON can hold."""

from dataclasses import fields
from typing import Any, cast

import numpy as np

from polycal._typing import Path
from polycal.calibrators.base import Calibrator
from polycal.calibrators.registry import CALIBRATORS, find_class
from polycal.steps import Program, Step
from polycal.storage.damage import readable
from polycal.storage.model import Arrays, save_object

# Fitted attributes are stored under this prefix.
_ATTRIBUTE = "attribute_"


def save_calibrator(calibrator: Calibrator, path: Path) -> None:
    """Write a fitted calibrator to one file."""
    names = calibrator.saved_attributes
    arrays: Arrays = {_ATTRIBUTE + name: np.asarray(getattr(calibrator, name)) for name in names}
    meta = {
        "family": calibrator.kind,
        "n_classes": calibrator.n_classes_,
        "class_names": calibrator.class_names_,
        "params": _plain_items(calibrator.get_params(deep=False)),
        "steps": pack_steps(calibrator.steps_, arrays),
    }
    save_object(path, "calibrator", meta, arrays)


def rebuild_calibrator(meta: dict[str, Any], arrays: Arrays) -> Calibrator:
    """The calibrator of a saved object; a header or arrays that do not make one are a ``ValueError``."""
    for name in CALIBRATORS:
        find_class(name)
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
    if _ATTRIBUTE + name in arrays or not hasattr(calibrator, name):
        value = arrays[_ATTRIBUTE + name]
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


def pack_steps(steps: Program, arrays: Arrays) -> list[dict[str, Any]]:
    """Describe each step by its kind and fields; its arrays are added to ``arrays`` and named in their place."""
    return [_pack_step(step, arrays) for step in steps]


def unpack_steps(description: list[dict[str, Any]], arrays: Arrays) -> Program:
    """The inverse of `pack_steps`. A description from a file is not trusted, and may raise anything."""
    return tuple(_unpack_step(dict(entry), arrays) for entry in description)


def _pack_step(step: Step, arrays: Arrays) -> dict[str, Any]:
    if type(step) is not Step.kinds.get(getattr(step, "kind", "")):
        raise TypeError(
            f"a {step.title} cannot be written without pickle; save the calibrator with joblib, "
            "or use one made of polycal's own steps."
        )
    values = {field.name: getattr(step, field.name) for field in fields(cast("Any", step))}
    return {"kind": step.kind} | {name: _pack_value(value, arrays) for name, value in values.items()}


def _pack_value(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, tuple):
        return [pack_steps(branch, arrays) for branch in value]
    if isinstance(value, np.ndarray):
        name = f"step_{len(arrays)}"
        arrays[name] = value
        return name
    return float(value)


def _unpack_step(entry: dict[str, Any], arrays: Arrays) -> Step:
    step = Step.kinds[entry.pop("kind")]
    return step(**{name: _unpack_value(value, arrays) for name, value in entry.items()})


def _unpack_value(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return tuple(unpack_steps(branch, arrays) for branch in value)
    return arrays[value] if isinstance(value, str) else float(value)


def _plain_items(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that JSON gives back as they are, with NumPy's numbers as Python's."""
    items = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    return {
        name: value
        for name, value in items.items()
        if value is None or type(value) in {bool, int, float, str}
    }
