"""Mistakes that arrays alone do not show: swapped arguments, labels counted from 1, rows in another order."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from polycal._text import advice
from polycal._validation.containers import row_index, to_numpy
from polycal._validation.options import CalibrationWarning
from polycal.sample import Sample

# Rows from which on an accuracy says something.
_ENOUGH_ROWS = 50


@contextmanager
def unless_swapped(y_true: Any, y_proba: Any, name: str) -> Iterator[None]:
    """What is refused inside may be labels in the place of predictions: then that is what the error says."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if not _look_swapped(y_true, y_proba):
            raise
        order = "fit takes (proba, y)" if name == "y" else f"the order is ({name}, y_proba)"
        raise ValueError(
            f"{name} looks like predictions and y_proba like labels: did you swap them? Here {order}; metrics and "
            "audits take labels first, and fit predictions."
        ) from error


def _look_swapped(y_true: Any, y_proba: Any) -> bool:
    """Whether labels could be predictions and predictions labels."""
    try:
        labels, proba = to_numpy(y_true, "y_true"), to_numpy(y_proba, "y_proba")
    except (ValueError, TypeError):
        return False
    if (
        proba.ndim != 1
        or proba.shape[:1] != labels.shape[:1]
        or not proba.size
        or labels.dtype.kind not in "biuf"
    ):
        return False
    is_label = proba.dtype.kind in "OUST" or (
        proba.dtype.kind in "biuf" and bool((proba == np.round(proba)).all())
    )
    if labels.ndim == 2 and labels.shape[1] > 1:
        return is_label
    return (
        is_label
        and labels.ndim == 1
        and bool(((labels >= 0) & (labels <= 1)).all() and (labels % 1 > 0).any())
    )


def hint_at_one(sample: Sample, name: str) -> None:
    """Warn of labels that fit, but look counted from 1: rarely right as they are, and mostly right one lower."""
    labels, k = sample.labels, sample.n_classes
    if sample.is_listed or labels.size < _ENOUGH_ROWS or labels.min() < 1:
        return
    if np.count_nonzero(np.bincount(labels)) < max(2, k // 2):
        return
    # NumPy's, since `Sample.top_class` loads numba, which a fit does not need.
    top = sample.proba.argmax(axis=1)
    as_given, one_lower = float(np.mean(top == labels)), float(np.mean(top == labels - 1))
    if as_given <= 0.5 / k and one_lower >= 0.5:
        warnings.warn(
            f"{name} has no label 0, and the most likely class is right in {as_given:.0%} of the rows, but in "
            f"{one_lower:.0%} if every label is one lower: labels are positions counted from 0"
            f"{advice(', so subtract 1 if yours are counted from 1', '; if yours are counted from 1, give names')}.",
            CalibrationWarning,
            stacklevel=4,
        )


def check_order(y_proba: Any, others: dict[str, Any]) -> None:
    """Refuse a series whose index has the rows of the predictions' index in another order: position would be wrong.

    An index of other rows says nothing, and rows then belong together by their position.
    """
    index = row_index(y_proba)
    if index is None:
        return
    for name, other in others.items():
        rows = row_index(other)
        if rows is None or len(rows) != len(index) or rows.equals(index):
            continue
        if rows.sort_values().equals(index.sort_values()):
            raise ValueError(
                f"{name} has the same index as y_proba, in another order: pass {name}.loc[y_proba.index] to align "
                f"them, or {name}.to_numpy() if rows belong together by position."
            )
