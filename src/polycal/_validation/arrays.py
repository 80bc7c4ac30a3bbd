"""The gate for arrays: probabilities, weights and other numbers, and whole samples and chunks of them."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._text import advice
from polycal._typing import Bools, Float64s, Floats
from polycal._validation.classes import check_labels, refuse_rows, resolve_class_names
from polycal._validation.containers import column_names, to_numpy
from polycal._validation.features import check_features
from polycal._validation.lists import REMAINDERS, check_listed, is_sparse
from polycal._validation.mistakes import check_order, hint_at_one, unless_swapped
from polycal._validation.options import check_choice, check_real
from polycal.listed import ListedSample
from polycal.sample import Remainder, Sample, drift_allowed, exact_row_sums, row_blocks, row_sums

# Squares of larger weights, and sums of these, would overflow.
_MOST_WEIGHT = 1e100


def _logits() -> str:
    return "If these are logits, " + advice("pass from_logits=True.", "use --from-logits.")


def check_sample(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    normalize: bool = False,
    remainder: Remainder | None = None,
    name: str = "y_true",
    features: Any = None,
    feature_names: Any = None,
) -> Sample:
    """Validate labels, predictions, weights and features together; ``name`` is what the labels are called.

    A SciPy sparse matrix becomes a `ListedSample`; without ``remainder`` it is refused, for what needs all classes.
    """
    check_order(y_proba, {name: y_true, "sample_weight": sample_weight})
    if normalize:
        y_proba = normalized(y_proba)
    with unless_swapped(y_true, y_proba, name):
        sample = _check_predictions(y_proba, class_names, remainder, from_logits=from_logits)
        labels = check_labels(y_true, sample.n_classes, sample.class_names, name)
    check_length(name, labels, "y_proba", sample.proba.shape[0])
    weight = None if sample_weight is None else check_weight(sample_weight)
    if weight is not None:
        check_length("sample_weight", weight, "y_proba", sample.proba.shape[0])
    if features is None and feature_names is not None:
        raise ValueError("feature_names names columns of features, which are not given; give features.")
    table = None if features is None else check_features(features, sample.proba.shape[0], feature_names)
    sample = replace(sample, labels=labels, sample_weight=weight, features=table)
    hint_at_one(sample, name)
    return sample.closed() if isinstance(sample, ListedSample) and remainder == "class" else sample


def check_chunk(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    normalize: bool = False,
    remainder: Remainder | None = None,
    features: Any = None,
) -> Sample | None:
    """Validate a chunk of rows; None if it has none. All weights of a chunk may be 0."""
    rows = y_proba if is_sparse(y_proba) else to_numpy(y_proba, "y_proba")
    if to_numpy(y_true, "y_true").shape == (0,) and rows.shape[:1] == (0,):
        return None
    weight = None if sample_weight is None else to_numpy(sample_weight, "sample_weight")
    weightless = weight is not None and weight.dtype.kind in "biuf" and not weight.any()
    if weight is not None and weightless:
        # Rows that do not count are rows all the same; the weight of all chunks together must be positive.
        weight = np.ones(weight.shape)
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=weight,
        class_names=class_names,
        from_logits=from_logits,
        normalize=normalize,
        remainder=remainder,
        features=features,
    )
    return replace(sample, sample_weight=np.zeros(sample.n_samples)) if weightless else sample


def _check_predictions(
    y_proba: Any, class_names: Any, remainder: Remainder | None, *, from_logits: bool
) -> Sample:
    """Predictions of either form and their class names; the labels are yet to come."""
    if not is_sparse(y_proba) or remainder is None:
        proba, names = check_proba(y_proba, class_names=class_names, from_logits=from_logits)
        return Sample(proba, np.empty(0, dtype=np.int64), None, names)
    if from_logits:
        raise ValueError(
            "y_proba lists logits, which have no rest: a class that is not listed would have logit 0."
        )
    check_choice(remainder, "remainder", REMAINDERS)
    sample = check_listed(y_proba, remainder)
    if sample.n_samples == 0:
        raise ValueError("y_proba is empty; at least one row is needed.")
    return replace(sample, class_names=resolve_class_names(class_names, None, sample.n_classes))


def check_proba(
    y_proba: Any,
    *,
    class_names: Any = None,
    from_logits: bool = False,
    normalize: bool = False,
    name: str = "y_proba",
) -> tuple[Floats, tuple[str, ...] | None]:
    """Validate predictions: ``(n, k)`` probabilities (or logits, when said so), and the class names."""
    if is_sparse(y_proba):
        raise TypeError(
            f"{name} is a sparse matrix, but full predictions are needed here: pass {name}.toarray()."
        )
    if normalize:
        y_proba = normalized(y_proba, name)
    array = _as_floats(to_numpy(y_proba, name), name)
    if array.ndim == 1:
        proba = _two_columns(array, name, from_logits=from_logits)
    else:
        proba = _softmax(array, name) if from_logits else _check_rows(array, name)
    return proba, resolve_class_names(class_names, column_names(y_proba), proba.shape[1])


def _as_floats(array: NDArray[Any], name: str) -> Floats:
    """Shape and dtype: an ``(n, k)`` array of float16, float32 or float64, or an ``(n,)`` one for two classes."""
    if array.ndim not in {1, 2}:
        raise ValueError(f"{name} must have shape (n, k), or (n,) for two classes; got shape {array.shape}.")
    if array.shape[0] == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if array.ndim == 2 and array.shape[1] < 2:
        raise ValueError(
            f"{name} has {array.shape[1]} column(s); give one column per class, or for two classes a "
            f"one-dimensional array of the probabilities of class 1{advice(f' ({name}.ravel())', '')}."
        )
    if array.dtype == object:
        array = _object_to_float(array, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    return array if array.dtype.kind == "f" and array.dtype.itemsize <= 8 else array.astype(np.float64)


def _object_to_float(array: NDArray[Any], name: str) -> Floats:
    """Numbers kept as Python objects (a mixed data frame, None for missing) as float64."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers: {error}.") from error


def _two_columns(array: Floats, name: str, *, from_logits: bool) -> Floats:
    """Class 1's probabilities (or log-odds) as two columns, which sum to 1 by construction."""
    if from_logits:
        return _softmax(np.column_stack([np.zeros_like(array), array]), name)
    refuse_rows(name, array, ~((array >= 0) & (array <= 1)), "is not a probability:", _logits())
    out = np.empty((array.size, 2), dtype=np.promote_types(array.dtype, np.float32))
    out[:, 1] = array
    np.subtract(1, out[:, 1], out=out[:, 0])
    return out


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


def normalized(y_proba: Any, name: str = "y_proba") -> Floats:
    """Probabilities that were rounded, each row divided by its sum, which rounding leaves near 1."""
    array = _as_floats(to_numpy(y_proba, name), name).astype(np.float64)
    if array.ndim == 1:
        return array
    total = row_sums(array)
    moved = _rounding(array.shape[1])
    refuse_rows(
        name,
        total,
        ~(np.abs(total - 1.0) <= moved + 1e-9),
        "is not a rounded row of probabilities; its sum is",
        f"Rounding to one decimal leaves sums from {1 - moved:g} to {1 + moved:g}. {_logits()}",
    )
    return array / total[:, None]


def _row_totals(block: Floats, name: str, start: int, eps: float) -> Float64s:
    """Row sums of a block that passes; a row with a (tiny) negative gets sum 2, to be renormalised."""
    total = row_sums(block)
    refuse_rows(
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
        refuse_rows(name, low, low < -eps, "holds a negative probability:", _logits(), start)
    off = np.abs(total - 1.0) > eps**0.5
    if off.any():
        off[off] = _is_off(block[off], total[off])
    if off.any():
        fix = _sum_advice(total[off][0], block.shape[1])
        allowed = f"Rows of {block.dtype} may be off by {eps**0.5:.2g}"
        refuse_rows(name, total, off, "does not sum to 1; its sum is", f"{allowed}: {fix} {_logits()}", start)
    return total if low is None else np.where(low < 0, 2.0, total)


def _rounding(n_classes: int) -> float:
    """How far rounding to one decimal can move the sum of a row; half of it at most is believed."""
    return min(0.05 * n_classes, 0.5)


def _sum_advice(total: float, n_classes: int) -> str:
    """What to do about a row with this sum: dividing by it mends rounding, and hides a column that is no class."""
    if abs(total - 1.0) <= _rounding(n_classes):
        return advice("divide rounded rows by their sums.", "if they were rounded, use --normalize.")
    if abs(total - 100.0) <= 100 * _rounding(n_classes):
        return "if these are percentages, divide them by 100."
    return "that is more than rounding does; is every column a class?"


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
        refuse_rows(
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


def check_weight(sample_weight: Any, name: str = "sample_weight") -> Float64s:
    """Validate weights: finite, non-negative, not all zero."""
    array = to_numpy(sample_weight, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be of shape (n,); got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers; got dtype {array.dtype}.")
    weight = np.ascontiguousarray(array, dtype=np.float64)
    refuse_rows(name, weight, ~np.isfinite(weight), "is not finite:", "Drop that row or give it a weight.")
    refuse_rows(name, weight, weight < 0, "is negative:", "Weights count rows: use 0 to leave a row out.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not 0 < total <= _MOST_WEIGHT:
        raise ValueError(f"{name} sums to {total:g}; its sum must be positive and at most {_MOST_WEIGHT:g}.")
    return weight


def check_examples(X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Float64s, Float64s | None]:
    """Validate examples: rows on the simplex, one target in [-1, 1] each, weights."""
    points, _ = check_proba(X, name="X")
    targets = _check_targets(y, points.shape[0])
    weight = None if sample_weight is None else check_weight(sample_weight)
    if weight is not None:
        check_length("sample_weight", weight, "X", targets.size)
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


def check_values(values: Any, low: float, high: float) -> Float64s:
    """Validate values of [low, high]; rounding errors are clipped."""
    check_real(low, "low", low=-np.finfo(np.float64).max)
    check_real(high, "high", low=np.nextafter(low, np.inf), high=np.finfo(np.float64).max)
    array = to_numpy(values, "values")
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"values must be numbers, of shape (n,); got shape {array.shape} and dtype {array.dtype}."
        )
    x = array.astype(np.float64)
    slack = 1e-9 * (high - low)
    bad = ~((x >= low - slack) & (x <= high + slack))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"values[{row}] is {x[row]:.6g}, outside [{low:g}, {high:g}]. Give a range that holds all."
        )
    return np.clip(x, low, high)


def check_length(name: str, array: NDArray[Any], other: str, n_rows: int) -> None:
    """One entry for each row of another array."""
    if array.shape[0] != n_rows:
        raise ValueError(
            f"{name} has {array.shape[0]} entries but {other} has {n_rows} rows; give one for each."
        )
