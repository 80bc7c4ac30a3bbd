"""States from what was saved of them."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from polycal import states
from polycal.states._base import State
from polycal.storage.damage import readable
from polycal.storage.model import Arrays


def rebuild_state(meta: dict[str, Any], arrays: Arrays) -> State:
    """The state of a saved object."""
    for module in iter_modules(states.__path__):
        import_module(f"{states.__name__}.{module.name}")
    with readable("a state"):
        state = State.families[meta["family"]].rebuild(dict(meta["parameters"]), arrays)
        names = None if meta["class_names"] is None else tuple(map(str, meta["class_names"]))
        if meta["n_classes"] is None:
            # It has seen nothing, but may have been told the names.
            state.class_names = names
        else:
            state.resume(int(meta["n_samples"]), float(meta["total_weight"]), int(meta["n_classes"]), names)
        return state
