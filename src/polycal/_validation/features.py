"""Features at the gate: data frames of any library, mappings and arrays become checked columns."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._text import check_text
from polycal._typing import Bools, Float64s
from polycal._validation.containers import column_names, is_missing, to_numpy
from polycal.features import TRUTH, Column, Features, some_names

# Seconds of a step of each of NumPy's units of time.
_SECOND = np.timedelta64(1_000_000, "us")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?$")


def check_features(features: Any, n_rows: int, feature_names: Any = None) -> Features:
    """Validate features: one entry for each row of the predictions in every column, names that differ."""
    if isinstance(features, Features):
        return _of_rows(features, n_rows)
    columns = _named_columns(features, feature_names)
    if not columns:
        raise ValueError("features has no column; give at least one, or drop features.")
    names = [str(name) for name, _ in columns]
    for name in names:
        check_text(name, "feature name")
    _refuse_twice(names)
    checked = [_checked(data, name, n_rows) for name, (_, data) in zip(names, columns, strict=True)]
    values = np.column_stack([values for _, values in checked])
    return Features(values, tuple(column for column, _ in checked))


def _refuse_twice(names: Sequence[Any]) -> None:
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"features has two columns of the name {twice!r}; rename one.")


def _of_rows(features: Features, n_rows: int) -> Features:
    """Features that were checked before, if they are of so many rows."""
    if features.n_rows != n_rows:
        raise ValueError(f"features has {features.n_rows} rows but y_proba has {n_rows}; give one for each.")
    return features


def check_masks(slices: Mapping[Any, Any], n_rows: int) -> Features:
    """Validate named masks: which rows belong to each slice, as columns of truth values."""
    if not slices:
        raise ValueError("slices names no slice; give at least one, or drop slices.")
    checked = []
    for name, mask in slices.items():
        array = to_numpy(mask, f"slices[{name!r}]")
        if array.dtype != np.bool_ or array.shape != (n_rows,):
            raise ValueError(
                f"slices[{str(name)!r}] must be true or false for each of the {n_rows} rows; got {array.dtype} of "
                f"shape {array.shape}. Columns of features are named in a list: slices=['sex', 'age']."
            )
        if not array.any():
            raise ValueError(f"slices[{str(name)!r}] has no row; leave it out.")
        checked.append(array.astype(np.float64))
    names = [check_text(str(name), "name of a slice") for name in slices]
    return Features(np.column_stack(checked), tuple(Column(name, "boolean", TRUTH) for name in names))


def _named_columns(features: Any, feature_names: Any) -> list[tuple[Any, Any]]:
    """The columns of any container, by name; named ones need no ``feature_names``."""
    module = type(features).__module__.partition(".")[0]
    if module in {"pandas", "polars", "pyarrow", "modin"}:
        named = _of_frame(features)
    elif isinstance(features, Mapping):
        named = list(features.items())
    else:
        return _of_array(to_numpy(features, "features"), feature_names)
    if feature_names is not None and [str(name) for name in feature_names] != [str(n) for n, _ in named]:
        raise ValueError(
            "features has names of its own, which feature_names contradicts; drop feature_names."
        )
    return named


def _of_frame(frame: Any) -> list[tuple[Any, Any]]:
    """The columns of a data frame, or of a series as one column, by narwhals."""
    import narwhals as nw  # noqa: PLC0415 - NumPy users should not pay for it

    if type(frame).__name__ == "LazyFrame":
        raise TypeError("features is a LazyFrame, whose rows are not there yet; give features.collect().")
    _refuse_twice(column_names(frame) or [])
    data = nw.from_native(frame, allow_series=True, eager_only=True)
    if isinstance(data, nw.Series):
        return [(data.name or "x0", data)]
    # Not by name: pandas calls columns by numbers, which would be taken for rows.
    return list(zip(data.columns, data.iter_columns(), strict=True))


def _of_array(array: NDArray[Any], feature_names: Any) -> list[tuple[Any, Any]]:
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2:
        raise ValueError(f"features must have shape (n_rows, n_features); got shape {array.shape}.")
    if feature_names is None:
        names: Sequence[Any] = [f"x{place}" for place in range(table.shape[1])]
    else:
        names = list(to_numpy(feature_names, "feature_names"))
    if len(names) != table.shape[1]:
        raise ValueError(
            f"feature_names has {len(names)} names for {table.shape[1]} columns of features; give one for each."
        )
    return [(name, table[:, place]) for place, name in enumerate(names)]


def _checked(data: Any, name: str, n_rows: int) -> tuple[Column, Float64s]:
    array, missing = _plain(data, name)
    if array.shape != (n_rows,):
        raise ValueError(
            f"feature {name!r} has {array.shape[0] if array.ndim else 0} entries but y_proba has {n_rows} rows; give "
            "one for each, in the same order."
        )
    if missing.all():
        return Column(name, "category"), np.full(n_rows, np.nan)
    column, values = _coded(array, missing, name)
    values[missing] = np.nan
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise ValueError(f"feature {name!r} is infinite in row {row}; clip it, or leave it empty.")
    return column, values


def _plain(data: Any, name: str) -> tuple[NDArray[Any], Bools]:
    """A column as an array of NumPy's own types, and where values are missing."""
    if hasattr(data, "is_null"):
        missing: Bools = np.asarray(data.is_null().to_numpy(), dtype=np.bool_)
        dtype = str(data.dtype)
        if dtype.startswith(("List", "Array", "Struct", "Binary")):
            raise TypeError(f"feature {name!r} holds {dtype}; give numbers, text, truth values or dates.")
        if dtype.startswith(("Int", "UInt", "Boolean")) and missing.any():
            # Whole numbers with gaps become objects or floats, by library.
            data = data.fill_null(False if dtype == "Boolean" else 0)
        array = np.asarray(data.to_numpy())
    else:
        array = to_numpy(data, f"feature {name!r}")
        missing = np.zeros(array.shape, dtype=np.bool_)
    if array.ndim != 1:
        raise ValueError(f"feature {name!r} must be one column; got shape {array.shape}.")
    array = _typed(array) if array.dtype.kind in "OU" else array
    if array.dtype.kind in "fmM":
        missing = missing | (np.isnat(array) if array.dtype.kind in "mM" else np.isnan(array))
    elif array.dtype == object:
        missing = missing | np.array([is_missing(value) for value in array], dtype=np.bool_)
    elif array.dtype.kind == "U":
        missing = missing | (array == "")
    return array, missing


def _typed(array: NDArray[Any]) -> NDArray[Any]:
    """Python objects of one kind as an array of that kind; others stay, to become text."""
    known = [value for value in array if not is_missing(value)]
    if all(isinstance(value, str) for value in known):
        # Files write truth values as text.
        if known and {text.lower() for text in set(known)} <= set(TRUTH):
            flags = [None if is_missing(text) else text.lower() == TRUTH[1] for text in array]
            return np.array(flags, dtype=object)
        return _dates(array, known)
    if all(isinstance(value, bool | np.bool_) for value in known):
        return array
    try:
        kept = [None if is_missing(value) else value for value in array]
        typed = (
            np.array(kept, dtype=np.float64)
            if _are_numbers(known)
            else np.array(kept, dtype="datetime64[us]")
        )
    except (TypeError, ValueError):
        return array
    return typed


def _dates(array: NDArray[Any], known: Sequence[str]) -> NDArray[Any]:
    """Text that is dates in every row, such as 2024-03-01 or 2024-03-01 12:30, as dates; other text as it is."""
    if not known or not all(_DATE.match(text) for text in known):
        return array
    try:
        kept = [np.datetime64("NaT") if is_missing(text) else np.datetime64(text, "us") for text in array]
    except ValueError:
        return array
    return np.array(kept, dtype="datetime64[us]")


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(hasattr(value, "__float__") and not isinstance(value, str) for value in values)


def _coded(array: NDArray[Any], missing: Bools, name: str) -> tuple[Column, Float64s]:
    """The column, and its numbers or codes; what stands where values are missing does not matter."""
    kind = array.dtype.kind
    if kind == "b":
        return Column(name, "boolean", TRUTH), array.astype(np.float64)
    if kind in "iuf":
        return Column(name, "number"), array.astype(np.float64)
    if kind in "mM":
        filled = np.where(missing, array.dtype.type(0, "us"), array).astype(f"{kind}8[us]")
        seconds = (filled.astype(np.int64)).astype(np.float64) / 1e6
        return Column(name, "date" if kind == "M" else "number"), seconds
    if kind not in "OUST":
        raise TypeError(f"feature {name!r} holds {array.dtype}; give numbers, text, truth values or dates.")
    known = array[~missing]
    if kind == "O" and known.size and all(isinstance(value, bool | np.bool_) for value in known):
        return Column(name, "boolean", TRUTH), np.where(missing, False, array).astype(np.float64)
    texts = np.array([str(value) for value in known], dtype=object) if kind == "O" else known.astype(str)
    for text in dict.fromkeys(texts.tolist()):
        check_text(text, f"value of feature {name!r}")
    categories, codes = np.unique(texts.astype(str), return_inverse=True)
    values = np.full(array.shape, np.nan)
    values[~missing] = codes
    return Column(name, "category", tuple(map(str, categories))), values


def check_column_names(names: Any, features: Features | None) -> tuple[str, ...]:
    """Validate a list of columns to slice by."""
    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted:
        raise ValueError("slices names no column; give at least one, or drop slices.")
    if features is None:
        raise ValueError(
            f"slices names the columns {some_names(wanted)}, but there are no features; give features."
        )
    for name in wanted:
        features.place(str(name))
    return tuple(str(name) for name in wanted)
