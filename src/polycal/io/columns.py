"""Which column of a table is what, and what its labels mean: shared by CSV, Parquet and Feather."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Bools, Ints

SPECIAL_COLUMNS = ("label", "weight", "sample_weight", "evaluation")
# What these hold is not, or not always, a number.
TEXT_COLUMNS = ("label", "evaluation")
_INDEX_PREFIX = "__index_level_"  # what pandas calls the columns of an index it stores
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Columns:
    """The columns of a table by their role."""

    classes: tuple[str, ...]
    special: frozenset[str]

    @property
    def weight(self) -> str | None:
        """The column of weights, if there is one."""
        return next((name for name in ("weight", "sample_weight") if name in self.special), None)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The classes' names; columns 0, 1, 2, ... are positions, which is to have no names."""
        return None if self.classes == numbered(len(self.classes)) else self.classes


def numbered(n_classes: int) -> tuple[str, ...]:
    """Name the columns of classes that have no names."""
    return tuple(map(str, range(n_classes)))


def sort_columns(names: Sequence[str], classes: Sequence[str] | None = None) -> Columns:
    """Find the role of each column: a class if it is one of these; by default, unless its name is a special one."""
    there = Counter(names)
    twice = next((name for name, count in there.items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"two columns are called {twice!r}; rename one of them")
    if "weight" in there and "sample_weight" in there:
        raise ValueError("there are columns 'weight' and 'sample_weight'; keep one")
    if classes is None:
        classes = [n for n in names if n not in SPECIAL_COLUMNS and not n.startswith(_INDEX_PREFIX)]
    missing = next((name for name in classes if name not in there), None)
    if missing is not None:
        raise ValueError(f"there is no column {missing!r}, which is said to be a class")
    return Columns(tuple(classes), frozenset(names).intersection(SPECIAL_COLUMNS))


def writable_names(class_names: tuple[str, ...] | None, n_classes: int) -> tuple[str, ...]:
    """Name one column per class, refusing names that would be read back as something else."""
    if class_names is None:
        return numbered(n_classes)
    for name in class_names:
        if name in SPECIAL_COLUMNS or not name or name.startswith(_INDEX_PREFIX):
            raise ValueError(
                f"a table cannot have a class column called {name!r}; rename the class or write .npz"
            )
    return class_names


def labels_from_codes(
    codes: Ints, values: Sequence[Any], classes: tuple[str, ...], rows: Sequence[int] | None = None
) -> Ints:
    """Turn labels, given as positions in a list of distinct values, into positions among the classes.

    Values are class names if all of them are; otherwise whole numbers, which are positions already. Where classes are
    called by numbers that are not their positions, only names will do: in a file without the telling label, positions
    would be taken for names. ``rows`` are those that the values come from, for errors; by default the first of each.
    """

    def where(bad: int) -> str:
        row = int(np.argmax(codes == bad)) if rows is None else rows[bad]
        return f"label[{row}] is {values[bad]!r:.40}"

    position = {name: i for i, name in enumerate(classes)}
    found = [position.get(str(value)) for value in values]
    if None in found:
        by_name, found = found, [_whole(value) for value in values]
        if any(position.get(number, i) != i for i, number in enumerate(numbered(len(classes)))):
            bad = by_name.index(None)
            raise ValueError(
                f"{where(bad)}, which is not a class name ({_some(classes)}); "
                "where classes are called by numbers, give labels by name"
            )
    if None in found:
        # Where some are names, the offender is the one that is not.
        bad = by_name.index(None) if any(index is not None for index in by_name) else found.index(None)
        raise ValueError(
            f"{where(bad)}: labels must all be class names ({_some(classes)}), "
            "or all whole numbers, positions counted from 0"
        )
    return np.array(found, dtype=np.int64)[codes]


def flags_from_codes(codes: Ints, values: Sequence[Any]) -> Bools:
    """Turn true and false, in any spelling a table has for them, into a boolean array."""
    found = [_FLAGS.get(str(value).strip().lower()) for value in values]
    if None in found:
        bad = found.index(None)
        raise ValueError(f"evaluation[{int(np.argmax(codes == bad))}] is {values[bad]!r}; use true or false")
    return np.array(found, dtype=np.bool_)[codes]


def _whole(value: Any) -> int | None:
    """Read a whole number, also when it is text or was made a float by missing values elsewhere."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if abs(number) < 2**53 and number.is_integer() else None


def _some(names: tuple[str, ...]) -> str:
    """List the first few names."""
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "") or "the file has none"
