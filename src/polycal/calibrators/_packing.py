"""Steps on disk: plain arrays and a description that JSON can hold."""

from dataclasses import fields
from typing import Any, cast

import numpy as np

from polycal.steps import Program, Step
from polycal.storage.model import Arrays


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
