"""The gate: the one place where user input becomes trusted arrays.

Every public function's first step is a ``check_*`` from here; nothing behind the gate checks again.
Each message names the argument, the first offending row, and the fix.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._containers import column_names, to_numpy
from polycal._text import check_text
from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.sample import Sample, drift_allowed, exact_row_sums, row_blocks, row_sums

# Squares of larger weights, and sums of these, would overflow.
_MOST_WEIGHT = 1e100
_LOGITS = "If these are logits, pass from_logits=True."


class CalibrationWarning(UserWarning):
    """A result that is right but easily misread."""


def check_sample(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> Sample:
    """Validate labels, predictions and weights together."""
    proba, names = check_proba(y_proba, class_names=class_names, from_logits=from_logits)
    labels = check_labels(y_true, proba.shape[1], names)
    _check_length("y_true", labels, proba)
    weight = None if sample_weight is None else check_weight(sample_weight)
    if weight is not None:
        _check_length("sample_weight", weight, proba)
    return Sample(proba, labels, weight, names)


def check_proba(
    y_proba: Any, *, class_names: Any = None, from_logits: bool = False, name: str = "y_proba"
) -> tuple[Floats, tuple[str, ...] | None]:
    """Validate predictions: ``(n, k)`` probabilities (or logits, when said so), and the class names."""
    array = _as_floats(to_numpy(y_proba, name), name)
    if array.ndim == 1:
        proba = _two_columns(array, name, from_logits=from_logits)
    else:
        proba = _softmax(array, name) if from_logits else _check_rows(array, name)
    return proba, _resolve_class_names(class_names, column_names(y_proba), proba.shape[1])


def check_labels(
    y_true: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str = "y_true"
) -> Ints:
    """Validate labels: class indices, or class names when these are known."""
    array = to_numpy(y_true, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one label per row, of shape (n,); got shape {array.shape}. {_label_fix(array, name)}"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if array.dtype.kind in "biuf":
        return _integer_labels(array, n_classes, name)
    if array.dtype.kind in "OUST":
        return _named_labels(array, n_classes, class_names, name)
    raise TypeError(f"{name} must hold class indices or class names; got dtype {array.dtype}.")


def check_weight(sample_weight: Any, name: str = "sample_weight") -> Float64s:
    """Validate weights: finite, non-negative, not all zero."""
    array = to_numpy(sample_weight, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be of shape (n,); got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers; got dtype {array.dtype}.")
    weight = np.ascontiguousarray(array, dtype=np.float64)
    _refuse(name, weight, ~np.isfinite(weight), "is not finite:", "Drop that row or give it a weight.")
    _refuse(name, weight, weight < 0, "is negative:", "Weights count rows: use 0 to leave a row out.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not 0 < total <= _MOST_WEIGHT:
        raise ValueError(f"{name} sums to {total:g}; its sum must be positive and at most {_MOST_WEIGHT:g}.")
    return weight


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
    indices = [_class_index(member, n_classes, class_names, name) for member in members]
    if len(set(indices)) < len(indices):
        twice = members[indices.index(_repeated(indices))]
        raise ValueError(f"{name} names class {twice!r} more than once; list each class once.")
    return np.sort(np.asarray(indices, dtype=np.int64))


def check_integer(value: Any, name: str, *, minimum: int) -> int:
    """Validate a whole number with a lower limit."""
    if not _is_whole(value) or int(value) < minimum:
        raise ValueError(f"{name} must be an integer, at least {minimum}; got {value!r}.")
    return int(value)


def check_real(value: Any, name: str, *, low: float, high: float = np.inf) -> float:
    """Validate a number of the closed interval [low, high]."""
    is_number = type(value) is not bool and isinstance(value, Real)
    if not is_number or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.")
    return float(value)


def _is_whole(value: Any) -> bool:
    """Whether this is a whole number; True and False are not."""
    return type(value) is not bool and isinstance(value, Integral)


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Validate one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return str(value)


def _as_floats(array: NDArray[Any], name: str) -> Floats:
    """Shape and dtype: an ``(n, k)`` array of float16, float32 or float64, or an ``(n,)`` one for two classes."""
    if array.ndim not in {1, 2}:
        raise ValueError(f"{name} must have shape (n, k), or (n,) for two classes; got shape {array.shape}.")
    if array.shape[0] == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if array.ndim == 2 and array.shape[1] < 2:
        raise ValueError(
            f"{name} has {array.shape[1]} column(s); give one column per class, or for two classes a "
            f"one-dimensional array of the probabilities of class 1 ({name}.ravel())."
        )
    if array.dtype == object:
        array = _object_to_float(array, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    return array if array.dtype.kind == "f" and array.dtype.itemsize <= 8 else array.astype(np.float64)


def _two_columns(array: Floats, name: str, *, from_logits: bool) -> Floats:
    """Class 1's probabilities (or log-odds) as two columns, which sum to 1 by construction."""
    if from_logits:
        return _softmax(np.column_stack([np.zeros_like(array), array]), name)
    _refuse(name, array, ~((array >= 0) & (array <= 1)), "is not a probability:", _LOGITS)
    out = np.empty((array.size, 2), dtype=np.promote_types(array.dtype, np.float32))
    out[:, 1] = array
    np.subtract(1, out[:, 1], out=out[:, 0])
    return out


def _object_to_float(array: NDArray[Any], name: str) -> Floats:
    """Numbers kept as Python objects (a mixed data frame, None for missing) as float64."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers: {error}.") from error


def _check_rows(array: Floats, name: str) -> Floats:
    """Rows finite, non-negative and summing to 1; drift within the dtype's tolerance is renormalised.

    Each row is judged by itself, so that any part of a sample is treated as it is within the whole.
    """
    out = np.ascontiguousarray(array, dtype=np.promote_types(array.dtype, np.float32))
    eps = float(np.finfo(array.dtype).eps)
    allowed = drift_allowed(out.dtype, array.shape[1])
    # Beyond this, sums are taken with care: exported models must come to the same rows.
    unclear = allowed - 0.5 * drift_allowed(np.float64, array.shape[1])
    for rows in row_blocks(*array.shape):
        drift = np.abs(_row_totals(array[rows], name, rows.start, eps) - 1.0)
        drifting = np.flatnonzero(drift > unclear)
        if drifting.size:
            block = np.maximum(array[rows][drifting], 0, dtype=np.float64)
            total = exact_row_sums(block)
            off = (np.abs(total - 1.0) > allowed) | (drift[drifting] == 1.0)
            out = out.copy() if np.may_share_memory(out, array) else out
            out[rows][drifting[off]] = block[off] / total[off, None]
    return out


def _row_totals(block: Floats, name: str, start: int, eps: float) -> Float64s:
    """Row sums of a block that passes; a row with a (tiny) negative gets sum 2, to be renormalised."""
    total = row_sums(block)
    _refuse(
        name,
        total,
        ~np.isfinite(total),
        "holds a NaN or an infinity; its sum is",
        "Drop or repair that row.",
        start,
    )
    low = None
    if block.min() < 0:
        low = block.min(axis=1)
        _refuse(name, low, low < -eps, "holds a negative probability:", _LOGITS, start)
    allowed = f"Rows of {block.dtype} may be off by {eps**0.5:.2g}: divide by the row sums. "
    off = np.abs(total - 1.0) > eps**0.5
    if off.any():
        off[off] = _is_off(block[off], total[off])
    _refuse(name, total, off, "does not sum to 1; its sum is", allowed + _LOGITS, start)
    return total if low is None else np.where(low < 0, 2.0, total)


def _is_off(rows: Floats, total: Float64s) -> Bools:
    """Which rows are off by more than their own precision, which is that of the smallest dtype that holds them.

    Predictions made in float32 and stored as float64 are float32 for all that.
    """
    off = np.ones(total.size, dtype=np.bool_)
    for dtype in (np.float32, np.float16):
        if np.dtype(dtype).itemsize < rows.dtype.itemsize:
            with np.errstate(over="ignore", under="ignore"):
                held = (rows.astype(dtype) == rows).all(axis=1)
            off &= ~held | (np.abs(total - 1.0) > float(np.finfo(dtype).eps) ** 0.5)
    return off


def _softmax(logits: Floats, name: str) -> Floats:
    """Row-wise softmax in blocks; minus infinity is probability 0, other non-finite logits are errors."""
    out = np.empty(logits.shape, dtype=np.promote_types(logits.dtype, np.float32))
    for rows in row_blocks(*logits.shape):
        block = logits[rows].astype(out.dtype)
        top = block.max(axis=1, keepdims=True)
        _refuse(
            name,
            top[:, 0],
            ~np.isfinite(top[:, 0]),
            "has no finite largest logit but",
            "Drop or repair that row.",
            rows.start,
        )
        np.exp(block - top, out=block)
        out[rows] = block / block.sum(axis=1, keepdims=True, dtype=np.float64)
    return out


def _resolve_class_names(given: Any, columns: list[Any] | None, n_classes: int) -> tuple[str, ...] | None:
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
        raise ValueError(f"class_names holds {_repeated(names)!r} twice; names must be distinct.")
    for name in names:
        check_text(name, "class name")
    return names


def _repeated(values: Sequence[Any]) -> Any:
    """The first value that is there more than once."""
    counts = Counter(values)
    return next(value for value in values if counts[value] > 1)


def _integer_labels(array: NDArray[Any], n_classes: int, name: str) -> Ints:
    """Numeric labels as class indices."""
    if array.dtype.kind == "f":
        _refuse(name, array, ~np.isfinite(array), "is missing or not finite:", "Drop that row.")
        _refuse(
            name,
            array,
            array != np.round(array),
            "is not a whole number:",
            "Labels are class indices or names.",
        )
    _refuse(
        name,
        array,
        (array < 0) | (array >= n_classes),
        f"is outside 0..{n_classes - 1}:",
        "Labels are column positions of y_proba, counted from 0.",
    )
    return np.ascontiguousarray(array, dtype=np.int64)


def _named_labels(
    array: NDArray[Any], n_classes: int, class_names: tuple[str, ...] | None, name: str
) -> Ints:
    """Labels given as class names (or as whole numbers in an object array)."""
    values = array.tolist()
    if all(isinstance(v, Integral) for v in values):
        return _integer_labels(np.asarray(values, dtype=np.int64), n_classes, name)
    missing = [i for i, v in enumerate(values) if v is None or v != v]  # noqa: PLR0124 - NaN differs from itself
    if missing:
        raise ValueError(f"{name}[{missing[0]}] is missing. Drop that row or give it a label.")
    if class_names is None:
        raise ValueError(
            f"{name} holds names such as {values[0]!r} but the classes have none; pass class_names in the column "
            "order of y_proba, or a data frame with named columns."
        )
    position = {class_name: i for i, class_name in enumerate(class_names)}
    indices = [position.get(_text(v), -1) for v in values]
    if min(indices) < 0:
        row = indices.index(-1)
        raise ValueError(
            f"{name}[{row}] is {values[row]!r}, which is not one of the class names ({_some(class_names)})."
        )
    return np.asarray(indices, dtype=np.int64)


def _text(name: Any) -> str:
    """A name as text; bytes are UTF-8."""
    return name.decode() if isinstance(name, bytes) else str(name)


def _class_index(member: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str) -> int:
    """One class, by index or name."""
    if isinstance(member, str):
        if class_names is None:
            raise ValueError(f"{name} holds the name {member!r} but the classes have none; pass class_names.")
        if member not in class_names:
            raise ValueError(
                f"{name} holds {member!r}, which is not one of the class names ({_some(class_names)})."
            )
        return class_names.index(member)
    if not _is_whole(member):
        raise TypeError(f"{name} must hold class indices or names; got {member!r}.")
    if not 0 <= int(member) < n_classes:
        raise ValueError(f"{name} holds class {member}, outside 0..{n_classes - 1}.")
    return int(member)


def _refuse(
    name: str, values: NDArray[Any], bad: NDArray[np.bool_], what: str, fix: str, start: int = 0
) -> None:
    """Raise for the first row marked bad, counting rows from ``start``."""
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}[{row + start}] {what} {values[row]:.9g}. {fix}")


def _check_length(name: str, array: NDArray[Any], proba: Floats) -> None:
    """One entry per row of the predictions."""
    if array.shape[0] != proba.shape[0]:
        raise ValueError(
            f"{name} has {array.shape[0]} entries but y_proba has {proba.shape[0]} rows; give one per row."
        )


def _label_fix(array: NDArray[Any], name: str) -> str:
    """How to make a label array one-dimensional."""
    if array.ndim == 2 and array.shape[1] == 1:
        return f"Use {name}.ravel()."
    return (
        f"For one-hot labels use {name}.argmax(axis=1)."
        if array.ndim == 2
        else "Give a one-dimensional array."
    )


def _some(names: tuple[str, ...]) -> str:
    """The first few names."""
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")


def check_examples(X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Float64s, Float64s | None]:
    """Validate examples: rows on the simplex, one target in [-1, 1] each, weights."""
    points, _ = check_proba(X, name="X")
    targets = _check_targets(y, points.shape[0])
    weight = None if sample_weight is None else check_weight(sample_weight)
    if weight is not None and weight.size != targets.size:
        raise ValueError(
            f"sample_weight has {weight.size} entries but X has {targets.size} rows; give one per row."
        )
    return points, targets, weight


def _check_targets(y: Any, n_rows: int) -> Float64s:
    array = to_numpy(y, "y")
    if array.shape != (n_rows,):
        raise ValueError(f"y must be one target per row of X, of shape ({n_rows},); got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"y must hold numbers from -1 to 1; got dtype {array.dtype}.")
    targets = array.astype(np.float64)
    if not (np.abs(targets) <= 1).all():
        row = int(np.argmin(np.abs(targets) <= 1))
        raise ValueError(
            f"y[{row}] is not a number from -1 to 1: {targets[row]:.6g}. Scale the targets first."
        )
    return targets
