"""The gate for rows that come as they happen: labels that are missing, and columns of features."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._text import check_text
from polycal._typing import Bools
from polycal._validation.containers import column_names, to_numpy


def find_labelled(y_true: Any) -> tuple[NDArray[Any], Bools]:
    """The labels as an array, and which of them are there: None and NaN are labels that have not come."""
    array = to_numpy(y_true, "y_true")
    if array.ndim != 1 or array.dtype.kind not in "fO":
        return array, np.ones(array.shape[:1], dtype=np.bool_)
    missing = [value is None or value != value for value in array.tolist()]  # noqa: PLR0124 - NaN differs from itself
    there = ~np.array(missing, dtype=np.bool_)
    return array, there


def check_columns(features: Any, n_rows: int) -> dict[str, NDArray[Any]]:
    """Validate columns of features, a mapping or a data frame: values of each row as text, by the columns' names."""
    if features is None:
        return {}
    names = list(features) if isinstance(features, Mapping) else column_names(features)
    if names is None:
        raise TypeError(
            "features must be a data frame, or map names to columns, such as {'country': ['de', 'fr']}; "
            f"got {type(features).__name__}."
        )
    return {
        check_text(str(name), "column"): _column(features[name], f"features[{name!r}]", n_rows)
        for name in names
    }


def _column(values: Any, name: str, n_rows: int) -> NDArray[Any]:
    array = to_numpy(values, name)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), a value for each row; got {array.shape}.")
    return np.array([check_text(_word(value), "value") for value in array.tolist()], dtype=np.str_)


def _word(value: Any) -> str:
    """A value as text; whole numbers are whole, also where gaps have made them floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
