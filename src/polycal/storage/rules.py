"""What a field of a saved object must be, said in its annotation: ``members: Annotated[Ints, Array("int64", "m")]``.

Sizes are named. A name that the object has as an attribute (``n_classes``) stands for its value; any other name stands
for the size it is first met with, so that two fields of one name have one size. A following ``+1`` adds one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

# Numbers of this size can be squared, multiplied and added up without overflow in double precision, and added up in
# single precision: none of them becomes infinite or NaN inside a product of matrices.
LARGEST = 1e30
# Rows of half precision sum to 1 up to this.
ROW_SUM = 0.05

_DTYPES: dict[str, set[Any]] = {
    "float64": {np.dtype(np.float64)},
    "floats": {np.dtype(np.float32), np.dtype(np.float64)},
    "int64": {np.dtype(np.int64)},
    "uint64": {np.dtype(np.uint64)},
    "bool": {np.dtype(np.bool_)},
}


class Sizes:
    """The sizes of one object's fields."""

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._met: dict[str, int] = {}

    def agree(self, wanted: tuple[str | int, ...], shape: tuple[int, ...]) -> bool:
        """Whether an array has the shape wanted."""
        return len(wanted) == len(shape) and all(map(self._agrees, wanted, shape))

    def value(self, name: str) -> int:
        """The size of that name."""
        own = getattr(self._owner, name, None)
        return self._met[name] if own is None else int(own)

    def _agrees(self, wanted: str | int, size: int) -> bool:
        if isinstance(wanted, int):
            return size == wanted
        name = wanted.removesuffix("+1")
        size -= name != wanted
        if getattr(self._owner, name, None) is None:
            self._met.setdefault(name, size)
        return self.value(name) == size


class Rule(ABC):
    """What a field must be."""

    @abstractmethod
    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Refuse any other value, in one line."""


class Kept(Rule):
    """A field that its class checks in a way of its own."""

    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Accept anything."""


@dataclass(frozen=True)
class Whole(Rule):
    """A whole number in a range; with ``optional``, or None."""

    low: int = 0
    high: float = np.inf
    optional: bool = False

    def check(self, value: Any, name: str, sizes: Sizes) -> None:  # noqa: ARG002 - it has none
        """Refuse any other value, in one line."""
        if value is None and self.optional:
            return
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} must be a whole number; got {_words(value)}.")
        if not self.low <= value <= self.high:
            raise ValueError(f"{name} must lie in {self.low} to {self.high:g}; got {value}.")


@dataclass(frozen=True)
class Real(Rule):
    """A finite number in a closed range."""

    low: float = -LARGEST
    high: float = LARGEST

    def check(self, value: Any, name: str, sizes: Sizes) -> None:  # noqa: ARG002 - it has none
        """Refuse any other value, in one line."""
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{name} must be a number; got {_words(value)}.")
        if not self.low <= value <= self.high:
            raise ValueError(f"{name} must lie in {self.low:g} to {self.high:g}; got {value:g}.")


class Text(Rule):
    """A string."""

    def check(self, value: Any, name: str, sizes: Sizes) -> None:  # noqa: ARG002 - it has none
        """Refuse any other value, in one line."""
        if not isinstance(value, str):
            raise TypeError(f"{name} must be text; got {_words(value)}.")


class ClassSet(Rule):
    """None, a class, or several, by name or index; which of them there are shows once rows are seen."""

    def check(self, value: Any, name: str, sizes: Sizes) -> None:  # noqa: ARG002 - the number may not be known yet
        """Refuse any other value, in one line."""
        members = value if isinstance(value, list) else [] if value is None else [value]
        if any(isinstance(member, bool) or not isinstance(member, int | str) for member in members):
            raise TypeError(f"{name} must be class indices or names; got {_words(value)}.")


@dataclass(frozen=True)
class ClassNames(Rule):
    """None, or a tuple of distinct names: one for each class, or for each of what ``size`` counts."""

    size: str = "n_classes"

    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Refuse any other value, in one line."""
        if value is None:
            return
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            raise TypeError(f"{name} must be a tuple of names; got {_words(value)}.")
        if not sizes.agree((self.size,), (len(value),)):
            raise ValueError(f"{name} has {len(value)} names for {sizes.value(self.size)} {self.size[2:]}.")
        if len(set(value)) < len(value):
            raise ValueError(f"{name} holds a name twice.")


@dataclass(frozen=True)
class Names(Rule):
    """A tuple of names, as many as ``size`` says; some may be the same."""

    size: str

    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Refuse any other value, in one line."""
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            raise TypeError(f"{name} must be a tuple of names; got {_words(value)}.")
        if not sizes.agree((self.size,), (len(value),)):
            raise ValueError(f"{name} has {len(value)} names for {sizes.value(self.size)} {self.size[2:]}.")


@dataclass(frozen=True)
class Part(Rule):
    """An object of one of these classes; with a number of ``many``, a tuple of so many."""

    classes: tuple[type, ...]
    many: str | None = None

    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Refuse any other value, in one line."""
        parts = value if self.many is not None else (value,)
        if not isinstance(parts, tuple) or not all(isinstance(part, self.classes) for part in parts):
            wanted = " or ".join(cls.__name__ for cls in self.classes)
            raise TypeError(f"{name} must be a {wanted}; got {_words(value)}.")
        if self.many is not None and not sizes.agree((self.many,), (len(parts),)):
            raise ValueError(f"{name} has {len(parts)} entries; {sizes.value(self.many)} are needed.")


@dataclass(frozen=True)
class Array(Rule):
    """An array of one dtype ("floats": float32 or float64) and shape, without NaN, whose numbers lie in a range.

    Attributes
    ----------
    dtype, shape
        The shape in names and numbers, separated by spaces: ``"n_points n_classes"``; empty for numbers alone.
    low, high
        The range, closed.
    below
        Numbers are below the size of this name: the entries are positions.
    rises
        Whether entries increase strictly.
    """

    dtype: str
    shape: str
    low: float = -LARGEST
    high: float = LARGEST
    below: str | None = None
    rises: bool = False

    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Refuse any other value, in one line."""
        if not isinstance(value, np.ndarray) or value.dtype not in _DTYPES[self.dtype]:
            raise TypeError(f"{name} must be an array of {self.dtype}; got {_words(value)}.")
        if not sizes.agree(self._wanted, value.shape):
            raise ValueError(f"{name} must be of shape ({self.shape}); got {value.shape}.")
        if value.size == 0:
            return
        high = self.high if self.below is None else sizes.value(self.below) - 1
        least, most = value.min(), value.max()
        # No comparison holds for NaN.
        if not (least >= self.low and most <= high):
            raise ValueError(f"{name} must lie in {self.low:g} to {high:g}; got {least:g} to {most:g}.")
        if self.rises and not (value[1:] > value[:-1]).all():
            raise ValueError(f"{name} must increase.")

    @cached_property
    def _wanted(self) -> tuple[str | int, ...]:
        return tuple(int(size) if size.isdigit() else size for size in self.shape.split())


@dataclass(frozen=True)
class Rows(Array):
    """An array of predictions: rows that sum to 1, or, of ``listed`` probabilities, to at most 1."""

    low: float = 0.0
    high: float = 1.0 + ROW_SUM
    listed: bool = False

    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Refuse any other value, in one line."""
        super().check(value, name, sizes)
        total = value.sum(axis=-1, dtype=np.float64)
        off = total - 1.0 if self.listed else np.abs(total - 1.0)
        if (off > ROW_SUM).any():
            raise ValueError(f"{name} must hold rows that sum to 1; one is off by {off.max():g}.")


def expect(holds: Any, what: str) -> None:
    """Refuse an object for which something does not hold that concerns several of its fields."""
    if not holds:
        raise ValueError(f"{what}.")


def _words(value: Any) -> str:
    """A value of the wrong type."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return type(value).__name__
