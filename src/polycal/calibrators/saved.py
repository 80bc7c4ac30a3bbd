"""A calibrator from what its ``save`` wrote."""

from functools import cache
from types import SimpleNamespace
from typing import Any, get_origin, get_type_hints

import numpy as np

from polycal.calibrators.base import Calibrator
from polycal.steps import is_program, run
from polycal.storage.rules import ClassNames, Sizes, Whole, expect

# More classes than this are not probed with a row: the number is a claim that nothing else in the file may bear out.
_MOST_PROBED = 1 << 16
# What an attribute must be, by how its class annotates it.
_KINDS: dict[Any, tuple[set[type], str]] = {
    bool: ({bool}, "true or false"),
    int: ({int}, "a whole number"),
    float: ({float, int}, "a number"),
    str: ({str}, "a text"),
    np.ndarray: ({np.ndarray}, "an array"),
}
_ANYTHING = (set(_KINDS), "a number, a text or an array")


def set_fitted(calibrator: Calibrator, values: dict[str, Any]) -> None:
    """Set what `fit` would have set, from a file; what does not make a calibrator is refused in one line."""
    sizes = Sizes(SimpleNamespace(n_classes=values["n_classes"]))
    Whole(low=2).check(values["n_classes"], "n_classes", sizes)
    ClassNames().check(values["class_names"], "class_names", sizes)
    expect(is_program(values["steps"]), "steps must be a program")
    expect(isinstance(calibrator.from_logits, bool), "from_logits must be true or false")
    calibrator._set_classes(values["n_classes"], values["class_names"])
    calibrator.steps_ = values["steps"]
    for name in calibrator.saved_attributes:
        _set_attribute(calibrator, name, values["attributes"])
    _probe(calibrator)


def _set_attribute(calibrator: Calibrator, name: str, attributes: dict[str, Any]) -> None:
    """Set a fitted attribute; one that came after the first version has a default in its class."""
    if name in attributes or not hasattr(calibrator, name):
        value, hint = attributes[name], _hints(type(calibrator)).get(name)
        kinds, words = _KINDS.get(get_origin(hint) or hint, _ANYTHING)
        expect(type(value) in kinds, f"{name} must be {words}")
        setattr(calibrator, name, value)


@cache
def _hints(cls: type[Calibrator]) -> dict[str, Any]:
    """What the attributes of a class are annotated with; asking takes longer than all else about a small file."""
    return get_type_hints(cls)


def _probe(calibrator: Calibrator) -> None:
    """Refuse steps that do not fit together, by taking no row and then one row through them."""
    k, n_others = calibrator.n_classes_, calibrator._n_inputs - calibrator.n_classes_
    with np.errstate(all="ignore"):
        # Arrays without rows have shapes and take no memory.
        expect(
            run(calibrator.steps_, np.empty((0, k + n_others))).shape == (0, k),
            "its steps change the number of classes",
        )
        if k <= _MOST_PROBED:
            calibrator._map(np.hstack([np.full((1, k), 1.0 / k), np.full((1, n_others), np.nan)]))
