"""The gate for lists: a SciPy sparse matrix becomes lists of classes, or one clear error."""

from typing import Any, NamedTuple

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.listed import ListedSample, csr
from polycal.sample import Remainder, sums_at

REMAINDERS = ("unknown", "spread", "anywhere", "class")


def is_sparse(y_proba: Any) -> bool:
    """Whether this is a SciPy sparse matrix or array."""
    return hasattr(y_proba, "tocsr")


class Lists(NamedTuple):
    """Listed classes and probabilities, row after row, in increasing order of class."""

    indptr: Ints
    indices: Ints
    values: Float64s
    eps: float


def check_listed(y_proba: Any, remainder: Remainder) -> ListedSample:
    """Validate lists; the labels of the sample are yet to come."""
    lists, n_classes = check_lists(y_proba)
    n_rows = lists.indptr.size - 1
    values, rest = _split_rest(lists, sums_at(_rows(lists), lists.values, n_rows), n_classes)
    if remainder == "unknown":
        _check_top(lists, rest, n_classes)
    proba = csr(lists.indptr, lists.indices, values, n_classes)
    return ListedSample(proba, np.zeros(n_rows, dtype=np.int64), rest=rest, remainder=remainder)


def check_entries(lists: Any, name: str) -> Any:
    """Validate lists without labels; returns them as a CSR array."""
    checked, n_classes = check_lists(lists, name)
    return csr(checked.indptr, checked.indices, checked.values, n_classes)


def check_lists(y_proba: Any, name: str = "y_proba") -> tuple[Lists, int]:
    """Validate the entries of a sparse matrix; returns them and the number of classes."""
    if not is_sparse(y_proba) or getattr(y_proba, "ndim", 2) != 2:
        raise TypeError(
            f"{name} must be a SciPy sparse matrix of shape (n, k); got {type(y_proba).__name__}."
        )
    if y_proba.shape[1] < 2:
        raise ValueError(f"{name} has {y_proba.shape[1]} column(s); give one column per class.")
    if y_proba.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {y_proba.dtype}.")
    dtype = y_proba.dtype if y_proba.dtype.kind == "f" else np.dtype(np.float64)
    indptr, indices, values = _entries(y_proba)
    lists = Lists(indptr, indices, values, float(np.finfo(dtype).eps))
    rows = _rows(lists)
    twice = np.flatnonzero((np.diff(rows) == 0) & (np.diff(indices) == 0))
    if twice.size:
        row, label = rows[twice[0]], indices[twice[0]]
        raise ValueError(f"{name}[{row}] lists class {label} twice; list each class once.")
    bad = ~((values >= 0) & (values <= 1 + lists.eps**0.5))
    if bad.any():
        place = int(np.argmax(bad))
        raise ValueError(f"{name}[{rows[place]}] holds {values[place]:.9g}, which is not a probability.")
    return lists, int(y_proba.shape[1])


def _entries(matrix: Any) -> tuple[Ints, Ints, Float64s]:
    """The stored entries by row and class. Entries stored twice stay so: SciPy would quietly add them up."""
    if matrix.format == "coo":
        rows, indices, values = matrix.row, matrix.col, matrix.data
    else:
        csr = matrix.tocsr()
        rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        indices, values = csr.indices, csr.data
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=matrix.shape[0]))])
    order = np.lexsort((indices, rows))
    return indptr.astype(np.int64), indices[order].astype(np.int64), values[order].astype(np.float64)


def _split_rest(lists: Lists, sums: Float64s, n_classes: int) -> tuple[Float64s, Float64s]:
    """Probabilities and what they leave over, with what is only rounding put right."""
    counts = np.diff(lists.indptr)
    allowed = lists.eps**0.5
    _refuse_row(sums > 1 + allowed, sums, "sums to {:.9g}, more than 1; divide by the sum.")
    full = counts == n_classes
    _refuse_row(full & (sums < 1 - allowed), sums, "lists all classes but sums to {:.9g}; divide by the sum.")
    whole = full | (sums > 1 - lists.eps * (2 + counts))
    # As for full rows: what the rounding of the sum leaves is not worth a change.
    drifting = whole & (np.abs(sums - 1.0) > lists.eps * np.maximum(2.0, counts**0.5))
    values = lists.values / np.where(drifting, np.maximum(sums, 0.5), 1.0)[_rows(lists)]
    return values, np.where(whole, 0.0, 1.0 - sums)


def _check_top(lists: Lists, rest: Float64s, n_classes: int) -> None:
    """Refuse lists that cannot hold the most likely classes."""
    counts = np.diff(lists.indptr)
    least = np.ones(counts.size)
    some = counts > 0
    if some.any():
        least[some] = np.minimum.reduceat(lists.values, lists.indptr[:-1][some])
    _refuse_row(
        rest > (n_classes - counts) * least + lists.eps**0.5,
        rest,
        "leaves {:.9g} to classes that are not listed, too much for classes less likely than the listed ones; "
        "list the most likely classes, or pass remainder='anywhere'.",
    )


def _rows(lists: Lists) -> Ints:
    return np.repeat(np.arange(lists.indptr.size - 1), np.diff(lists.indptr))


def _refuse_row(bad: Bools, values: Float64s, what: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"y_proba[{row}] " + what.format(values[row]))
