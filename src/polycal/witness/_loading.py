"""Witnesses from what was saved of them."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from polycal import witness
from polycal.storage.damage import readable
from polycal.storage.model import Arrays
from polycal.witness._base import Witness


def rebuild_witness(meta: dict[str, Any], arrays: Arrays) -> Witness:
    """The witness of a saved object."""
    for module in iter_modules(witness.__path__):
        import_module(f"{witness.__name__}.{module.name}")
    with readable("a witness"):
        names = meta["class_names"]
        family = Witness.families[meta["family"]]
        return family.from_state(
            arrays, int(meta["n_classes"]), None if names is None else tuple(map(str, names))
        )
