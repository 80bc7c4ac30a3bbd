"""The gate for classes: labels, class names, sets and groups of classes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._text import advice, check_text
from polycal._typing import Ints
from polycal._validation.containers import is_missing, to_numpy
from polycal._validation.options import is_whole
from polycal.sample import Sample


def check_labels(
    y_true: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str = "y_true"
) -> Ints:
    """Validate labels: class indices, or class names when these are known."""
    array = label_array(y_true, name)
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if array.dtype.kind in "biuf":
        return _integer_labels(array, n_classes, class_names, name)
    if array.dtype.kind in "OUST":
        return _named_labels(array, n_classes, class_names, name)
    raise TypeError(f"{name} must hold class indices or class names; got dtype {array.dtype}.")


def label_array(y_true: Any, name: str = "y_true") -> NDArray[Any]:
    """Labels of any kind as an array with one entry for each row."""
    array = to_numpy(y_true, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one label per row, of shape (n,); got shape {array.shape}. {_label_fix(array, name)}"
        )
    return array


def _integer_labels(
    array: NDArray[Any], n_classes: int, class_names: tuple[str, ...] | None, name: str
) -> Ints:
    """Numeric labels as class indices."""
    if array.dtype.kind == "f":
        refuse_rows(name, array, ~np.isfinite(array), "is missing or not finite:", "Drop that row.")
        refuse_rows(
            name,
            array,
            array != np.round(array),
            "is not a whole number:",
            "Labels are class indices or names.",
        )
    outside = (array < 0) | (array >= n_classes)
    if outside.any():
        fix = "Labels are column positions of y_proba, counted from 0." + _whose(
            array, n_classes, class_names, name
        )
        refuse_rows(name, array, outside, f"is outside 0..{n_classes - 1}:", fix)
    return np.ascontiguousarray(array, dtype=np.int64)


def _whose(array: NDArray[Any], n_classes: int, class_names: tuple[str, ...] | None, name: str) -> str:
    """A hint, if labels are names that are numbers, or would fit one lower."""
    if class_names is not None and set(map(str, np.unique(array).tolist())) <= set(class_names):
        return advice(f" These are class names: pass them as text, {name}.astype(str).", " Give names.")
    if array.min() == 1 and array.max() == n_classes:
        return " They look counted from 1: " + advice("subtract 1.", "subtract 1, or give names.")
    return advice(
        f" Those of a scikit-learn classifier are np.searchsorted(classifier.classes_, {name}).", ""
    )


def _named_labels(
    array: NDArray[Any], n_classes: int, class_names: tuple[str, ...] | None, name: str
) -> Ints:
    """Labels given as class names (or as whole numbers in an object array)."""
    values = array.tolist()
    if all(isinstance(v, Integral) for v in values):
        return _integer_labels(np.asarray(values, dtype=np.int64), n_classes, class_names, name)
    missing = [i for i, v in enumerate(values) if is_missing(v)]
    if missing:
        raise ValueError(f"{name}[{missing[0]}] is missing. Drop that row or give it a label.")
    if class_names is None:
        raise ValueError(
            f"{name} holds names such as {values[0]!r} but the classes have none; "
            + advice(
                "pass class_names in the column order of y_proba, or a data frame with named columns.",
                "name them by --classes, in the order of the columns.",
            )
        )
    position = {class_name: i for i, class_name in enumerate(class_names)}
    indices = [position.get(_text(v), -1) for v in values]
    if min(indices) < 0:
        row = indices.index(-1)
        raise ValueError(
            f"{name}[{row}] is {values[row]!r}, which is not one of the class names ({some_names(class_names)})."
        )
    return np.asarray(indices, dtype=np.int64)


def _label_fix(array: NDArray[Any], name: str) -> str:
    """How to make a label array one-dimensional."""
    if array.ndim == 2 and array.shape[1] == 1:
        return f"Use {name}.ravel()."
    return (
        f"For one-hot labels use {name}.argmax(axis=1)."
        if array.ndim == 2
        else "Give a one-dimensional array."
    )


def check_subset(subset: Any, sample: Sample, name: str = "subset") -> Ints | None:
    """Validate a set of classes, by index or name; returns sorted distinct indices, or None for None."""
    return None if subset is None else class_set(subset, sample.n_classes, sample.class_names, name)


def check_groups(groups: Any, sample: Sample) -> dict[str, Ints]:
    """Validate named groups: a mapping from a name to a set of classes."""
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise TypeError(
            f"groups must map a group's name to its classes, such as {{'animal': ['cat', 'dog']}}; "
            f"got {type(groups).__name__}."
        )
    return {
        check_text(str(group), "group name"): class_set(
            members, sample.n_classes, sample.class_names, name=f"groups[{group!r}]"
        )
        for group, members in groups.items()
    }


def class_set(subset: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str) -> Ints:
    """Sorted distinct class indices of a set of classes given by index or by name."""
    if isinstance(subset, str | Integral):
        subset = [subset]
    if not isinstance(subset, Iterable) or isinstance(subset, Mapping):
        raise TypeError(f"{name} must be a list of class indices or names; got {type(subset).__name__}.")
    members = list(subset)
    if not members:
        raise ValueError(f"{name} is empty; name at least one class.")
    indices = [class_index(member, n_classes, class_names, name) for member in members]
    if len(set(indices)) < len(indices):
        twice = members[indices.index(first_repeated(indices))]
        raise ValueError(f"{name} names class {twice!r} more than once; list each class once.")
    return np.sort(np.asarray(indices, dtype=np.int64))


def class_index(member: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str) -> int:
    """One class, by index or name."""
    if isinstance(member, str):
        if class_names is None:
            raise ValueError(
                f"{name} holds the name {member!r} but the classes have none; "
                + advice("pass class_names.", "name them by --classes.")
            )
        if member not in class_names:
            raise ValueError(
                f"{name} holds {member!r}, which is not one of the class names ({some_names(class_names)})."
            )
        return class_names.index(member)
    if not is_whole(member):
        quotes = " Put quotes around a name such as yes or no." if isinstance(member, bool) else ""
        raise TypeError(f"{name} must hold class indices or names; got {member!r}.{quotes}")
    if not 0 <= int(member) < n_classes:
        raise ValueError(f"{name} holds class {member}, outside 0..{n_classes - 1}.")
    return int(member)


def resolve_class_names(given: Any, columns: list[Any] | None, n_classes: int) -> tuple[str, ...] | None:
    """Names from the argument, else from string column labels; integer column labels must be 0 to k-1."""
    if given is None:
        if columns is None or len(columns) != n_classes:
            return None
        if all(isinstance(c, Integral) for c in columns):
            if list(columns) != list(range(n_classes)):
                raise ValueError(
                    f"y_proba has integer columns {columns[:4]}...; labels would be ambiguous. Rename the columns, "
                    "or pass class_names (labels are then names or positions)."
                )
            return None
        given = columns
    if isinstance(given, str):
        raise TypeError("class_names must be a list of names, not one string.")
    return check_distinct(tuple(_text(name) for name in given), n_classes)


def check_distinct(names: tuple[str, ...], n_classes: int) -> tuple[str, ...]:
    """Class names, one for each class and none twice."""
    if len(names) != n_classes:
        raise ValueError(
            f"class_names has {len(names)} names but y_proba has {n_classes} columns; give one per class."
        )
    if len(set(names)) < n_classes:
        raise ValueError(f"class_names holds {first_repeated(names)!r} twice; names must be distinct.")
    for name in names:
        check_text(name, "class name")
    return names


def check_same_classes(n_classes: int, known: int, other: str, name: str = "y_proba") -> None:
    """Refuse another number of classes than something else has; ``other`` says what, and ends with its verb."""
    if n_classes != known:
        raise ValueError(f"{name} has {n_classes} classes but {other} {known}; give the same classes.")


def agree_names(before: tuple[str, ...], now: tuple[str, ...] | None) -> None:
    """Refuse classes of other names, or in another order; a chunk need not name them."""
    if now is None or now == before:
        return
    check_same_classes(len(now), len(before), "those before had", "the chunk")
    place = next(i for i in range(len(now)) if now[i] != before[i])
    raise ValueError(
        f"class {place} of the chunk is {now[place]!r} but was {before[place]!r} before; give all chunks the same "
        "classes in the same order."
    )


def first_repeated(values: Sequence[Any]) -> Any:
    """The first value that is there more than once."""
    counts = Counter(values)
    return next(value for value in values if counts[value] > 1)


def _text(name: Any) -> str:
    """A name as text; bytes are UTF-8."""
    return name.decode() if isinstance(name, bytes) else str(name)


def some_names(names: tuple[str, ...]) -> str:
    """The first few names."""
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")


def refuse_rows(
    name: str, values: NDArray[Any], bad: NDArray[np.bool_], what: str, fix: str, start: int = 0
) -> None:
    """Raise for the first row marked bad, counting rows from ``start``."""
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}[{row + start}] {what} {values[row]:.9g}. {fix}")
