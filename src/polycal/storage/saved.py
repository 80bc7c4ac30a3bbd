"""Objects that are saved: found by role and family, packed field by field, and checked by their own class.

A role is what an object can do (witness, state, kernel, ...); a family is one way of doing it. A field is saved if
its annotation carries a rule (see `polycal.storage.rules`). Every object that is read is held to its rules, and so are
those that users make.

On disk an object is a JSON tree with the arrays beside it. ``{"is": "kernel/gaussian", "scale": 0.2}`` is an object,
``{"array": "points"}`` an array, a list a tuple, ``{"of": {...}}`` a dictionary; numbers and texts are themselves. Many
objects that are nothing but one-dimensional arrays are joined: ``{"are": [families], "knots": {"array": ..., "sizes":
...}}``, since thousands of functions would be thousands of files in the archive.
"""

from collections.abc import Sequence
from importlib import import_module
from inspect import get_annotations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Path
from polycal.storage.model import Arrays, save_object
from polycal.storage.rules import Array, Rule, Sizes, expect

_BASES: dict[str, type["Saved"]] = {}
_FAMILIES: dict[str, type["Saved"]] = {}


def _declared(cls: type) -> dict[str, Rule]:
    """The rules in a class's own annotations."""
    return {
        name: rule
        for name, annotation in get_annotations(cls).items()
        for rule in getattr(annotation, "__metadata__", ())
        if isinstance(rule, Rule)
    }


class Saved:
    """Something that is written to a file and read back, alone or as part of something else.

    The base class of a role says ``role``, and in ``homes`` which module defines which family, so that reading
    imports that module only. A family says ``family``; a class without one is not saved.
    """

    role: ClassVar[str]
    family: ClassVar[str]
    homes: ClassVar[dict[str, str]] = {}
    # The rules of the fields; a field declared anew without a rule keeps the one it had.
    _rules: ClassVar[dict[str, Rule]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._rules = cls._rules | _declared(cls)
        if "role" in cls.__dict__:
            _BASES[cls.role] = cls
        if "family" in cls.__dict__:
            _FAMILIES[f"{cls.role}/{cls.family}"] = cls

    def _saved_values(self) -> dict[str, Any]:
        """The fields, without the underscores of private ones."""
        return {name.lstrip("_"): getattr(self, name) for name in self._rules}

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        """An object from what `_saved_values` gave, or from anything at all: it is not trusted, and may raise."""
        return cls(**values)

    def _check(self) -> None:
        """Refuse fields that are not what their rules say, in one line."""
        sizes = Sizes(self)
        for name, rule in self._rules.items():
            rule.check(getattr(self, name), name.lstrip("_"), sizes)


class Checked(Saved):
    """A frozen dataclass that is saved: all its objects are held to their rules as soon as they are made."""

    def __post_init__(self) -> None:
        self._check()


def save(thing: Saved, path: Path) -> None:
    """Write an object to one file, to be read back by `polycal.load`; what could not be read is not written."""
    contents = packed(thing)
    thing._check()
    save_object(path, *contents)


def find(name: str) -> type[Saved]:
    """The class of ``role/family``, from the module that defines it."""
    role, _, family = name.partition("/")
    if name not in _FAMILIES and role in _BASES and family in _BASES[role].homes:
        import_module(_BASES[role].homes[family])
    if name not in _FAMILIES:
        raise ValueError(f"there is no {name[:60]!r} in this polycal")
    return _FAMILIES[name]


def packed(thing: Saved) -> tuple[dict[str, Any], Arrays]:
    """An object as a tree for JSON, and its arrays."""
    arrays: Arrays = {}
    return _pack(thing, arrays, ""), arrays


def unpacked(node: Any, arrays: Arrays) -> Any:
    """The inverse of `packed`. A tree from a file is not trusted, and may raise anything."""
    match node:
        case {"is": str(name), **fields}:
            # Its module comes first: it imports those of its parts.
            cls = find(name)
            thing = cls._rebuilt({str(field): unpacked(value, arrays) for field, value in fields.items()})
            thing._check()
            return thing
        case {"are": list(names)}:
            return _unpack_joined(names, node, arrays)
        case {"of": dict(items)}:
            return {name: unpacked(value, arrays) for name, value in items.items()}
        case {"array": str(name)}:
            return arrays[name]
        case list():
            return tuple(unpacked(value, arrays) for value in node)
        case dict():
            raise ValueError(f"an entry of its header is of no known kind: {sorted(node)[:3]}")
        case _:
            return node


def _pack(value: Any, arrays: Arrays, path: str) -> Any:
    if isinstance(value, Saved):
        fields = value._saved_values()
        _refuse_unnamed(value)
        inner = {name: _pack(field, arrays, _join(path, name)) for name, field in fields.items()}
        return {"is": f"{value.role}/{value.family}", **inner}
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"array": path}
    if isinstance(value, dict):
        return {"of": {name: _pack(item, arrays, _join(path, name)) for name, item in value.items()}}
    if isinstance(value, tuple | list):
        if _are_flat(value):
            return _pack_joined(value, arrays, path)
        return [_pack(item, arrays, _join(path, str(i))) for i, item in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _refuse_unnamed(value: Saved) -> None:
    """Refuse to save what could not be found again."""
    name = f"{value.role}/{getattr(value, 'family', '')}"
    if _FAMILIES.get(name) is not type(value):
        raise TypeError(f"a {type(value).__name__} cannot be saved: it is of no family that polycal knows.")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _are_flat(values: Sequence[Any]) -> bool:
    """Whether several objects are nothing but one-dimensional arrays, the same for all."""
    if len(values) < 2 or not all(isinstance(value, Saved) for value in values):
        return False
    rules = [value._rules for value in values]
    # Calibrators say otherwise what they hold.
    return (
        bool(rules[0])
        and all(own.keys() == rules[0].keys() for own in rules)
        and all(
            isinstance(rule, Array) and len(rule.shape.split()) == 1 for own in rules for rule in own.values()
        )
    )


def _pack_joined(things: Sequence[Saved], arrays: Arrays, path: str) -> dict[str, Any]:
    node: dict[str, Any] = {"are": [f"{thing.role}/{thing.family}" for thing in things]}
    for field in things[0]._rules:
        name = _join(path, field)
        parts = [getattr(thing, field) for thing in things]
        arrays[name] = np.concatenate(parts)
        arrays[f"{name}.sizes"] = np.array([part.size for part in parts], dtype=np.int64)
        node[field] = {"array": name, "sizes": f"{name}.sizes"}
    return node


def _unpack_joined(names: list[str], fields: dict[str, Any], arrays: Arrays) -> tuple[Saved, ...]:
    columns = {
        field: _split(arrays[node["array"]], arrays[node["sizes"]], len(names))
        for field, node in fields.items()
        if field != "are"
    }
    return tuple(
        find(name)._rebuilt({field: parts[i] for field, parts in columns.items()})
        for i, name in enumerate(names)
    )


def _split(array: NDArray[Any], sizes: NDArray[Any], n: int) -> list[NDArray[Any]]:
    """An array in parts of the sizes given."""
    expect(array.ndim == 1 and sizes.shape == (n,) and sizes.dtype.kind == "i", "joined fields must be flat")
    expect(
        n == 0 or (sizes.min() >= 0 and sizes.sum() == array.size), "the sizes of joined fields must add up"
    )
    return np.split(array, np.cumsum(sizes)[:-1])


def plain_items(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that JSON gives back as they are, with NumPy's numbers as Python's."""
    items = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    return {
        name: value
        for name, value in items.items()
        if value is None or type(value) in {bool, int, float, str}
    }
