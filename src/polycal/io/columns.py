"""What the cells of a table mean: labels, marks, and columns that are read along. Shared by all tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._text import advice
from polycal._typing import Bools, Ints
from polycal.io.layout import numbered, one_column_names

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


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
        # Columns may be called p_cat, p_dog, ... for the classes cat, dog, ...
        short = {name: i for i, name in enumerate(_without_prefix(classes))}
        by_short = [short.get(str(value)) for value in values]
        found = found if None in by_short else by_short
    if None in found and len(classes) == 2:
        # Whether it is the second of two classes may be said by true and false.
        flags = [_FLAGS.get(str(value).strip().lower()) for value in values]
        found = found if None in flags else [*map(bool, flags)]
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
            f"or all whole numbers, positions counted from 0{_of_one_column(values, classes)}"
        )
    return np.array(found, dtype=np.int64)[codes]


def flags_from_codes(codes: Ints, values: Sequence[Any]) -> Bools:
    """Turn true and false, in any spelling a table has for them, into a boolean array."""
    found = [_FLAGS.get(str(value).strip().lower()) for value in values]
    if None in found:
        bad = found.index(None)
        raise ValueError(f"evaluation[{int(np.argmax(codes == bad))}] is {values[bad]!r}; use true or false")
    return np.array(found, dtype=np.bool_)[codes]


def values_from_codes(codes: Ints, values: Sequence[str]) -> NDArray[Any]:
    """A column of text that is read along: float64 if every cell is a number or empty, which is NaN; else text."""
    try:
        distinct: NDArray[Any] = np.array([float(value) if value.strip() else np.nan for value in values])
    except ValueError:
        distinct = np.array([*values, None], dtype=object)[:-1]
    return distinct[codes]


def _without_prefix(classes: tuple[str, ...]) -> list[str]:
    """Names without what all of them begin with, up to a mark such as ``_``; none if numbers would be left."""
    first = classes[0] if classes else ""
    prefixes = [first[: i + 1] for i, mark in enumerate(first) if mark in "_-.: "]
    shared = [prefix for prefix in prefixes if all(name.startswith(prefix) for name in classes)]
    names = [name.removeprefix(shared[-1]) for name in classes] if shared else []
    return [] if any(name.strip().isdecimal() or not name for name in names) else names


def _whole(value: Any) -> int | None:
    """Read a whole number, also when it is text or was made a float by missing values elsewhere."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if abs(number) < 2**53 and number.is_integer() else None


def _of_one_column(values: Sequence[Any], classes: tuple[str, ...]) -> str:
    """What to do where two classes got their names from their only column, and labels have others."""
    if len(values) != 2 or (classes != numbered(2) and classes != one_column_names(classes[-1])):
        return ""
    names = sorted(map(str, values))
    fix = advice(f"classes={names}", f"--classes {','.join(names)}")
    return f". To name the two classes, use {fix}; the column is the probability of the second"


def _some(names: tuple[str, ...]) -> str:
    """List the first few names."""
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "") or "the file has none"
