"""The gate for rows that come as they happen: labels that are missing, and columns of features."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polycal._text import check_text
from polycal._validation.arrays import check_length
from polycal._validation.classes import label_array
from polycal._validation.containers import column_names, is_missing, some_rows, to_numpy
from polycal._validation.lists import is_sparse
from polycal._validation.mistakes import check_order


class Labelled(NamedTuple):
    """Rows whose labels have come, and how many have none."""

    labels: NDArray[Any]
    y_proba: Any
    columns: dict[str, NDArray[Any]]
    n_missing: int


def find_labelled(y_true: Any, y_proba: Any, features: Any) -> Labelled:
    """Leave rows out whose label is None, NaN, or missing in another way; the predictions are checked later."""
    check_order(y_proba, {"y_true": y_true, "features": features})
    labels = label_array(y_true)
    columns = _check_columns(features, labels.size)
    there = np.ones(labels.size, dtype=np.bool_)
    if labels.dtype.kind in "fOUT":
        there[[i for i, value in enumerate(labels.tolist()) if is_missing(value)]] = False
    height = np.shape(y_proba)[:1]
    if there.all() or not height or is_sparse(y_proba):
        return Labelled(labels, y_proba, columns, 0)
    check_length("y_true", labels, "y_proba", height[0])
    columns = {name: values[there] for name, values in columns.items()}
    left = int(np.count_nonzero(~there))
    return Labelled(labels[there], some_rows(y_proba, there, "y_proba"), columns, left)


def _check_columns(features: Any, n_rows: int) -> dict[str, NDArray[Any]]:
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
    if is_missing(value):
        return "missing"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
