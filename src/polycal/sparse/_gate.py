"""The gate for truncated predictions: a sparse matrix becomes a `SparseSample`, or one clear error."""

from typing import Any, NamedTuple, cast

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal._validation import check_choice, check_distinct, check_labels, check_weight
from polycal.sparse._sample import Remainder, SparseSample, sums_at

REMAINDERS = ("unknown", "spread", "anywhere", "class")


class Lists(NamedTuple):
    """Listed classes and probabilities, row after row, in increasing order of class."""

    indptr: Ints
    indices: Ints
    values: Float64s
    eps: float


def sparse_sample(
    y_true: Any,
    y_proba: Any,
    *,
    remainder: Remainder = "unknown",
    sample_weight: Any = None,
    class_names: Any = None,
) -> SparseSample:
    """Validate predictions that list only some classes of each row.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, listed or not; or class names when these are known.
    y_proba : SciPy sparse matrix or array of shape (n_samples, n_classes)
        The stored entries are the listed classes with their probabilities; each row sums to at most 1. A stored 0
        is a listed class of probability 0.
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        What is said of the probability that a list leaves over. "unknown": the lists hold the most likely classes,
        so no other class has more than the least of them. "spread": all other classes have equal shares.
        "anywhere": nothing; other classes may even be more likely than listed ones. "class": it is the probability of
        one more class, ``n_classes``, which stands for "not listed"; a label that is not listed counts as it.
    sample_weight : array-like of shape (n_samples,), optional
    class_names : list of str, optional

    Returns
    -------
    SparseSample

    Notes
    -----
    With "class" nothing is unknown, because the question is another one: the set T of classes means "the label is
    one of T, and is listed" (or, if the extra class is in T, "or is not listed"). Its weight functions are functions of
    the prediction like others, so what is found in this way is miscalibration of the full predictions, exactly.

    Refused, with the row named: a class listed twice, what is no probability, a row that sums to more than 1, a row
    that lists all classes and sums to less, and with "unknown" a row whose rest is too large to belong to classes
    less likely than those listed. Memory: O(listed entries).

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> import polycal.sparse
    >>> polycal.sparse.sparse_sample([1, 2], csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]]))
    SparseSample(n_samples=2, n_classes=4, n_listed=4, remainder='unknown')
    """
    sample = check_sparse_chunk(
        y_true, y_proba, remainder=remainder, sample_weight=sample_weight, class_names=class_names
    )
    if sample.n_samples == 0:
        raise ValueError("y_proba is empty; at least one row is needed.")
    if sample.sample_weight is not None:
        check_weight(sample.sample_weight)
    return sample


def check_sparse_chunk(
    y_true: Any,
    y_proba: Any,
    *,
    remainder: Any = "unknown",
    sample_weight: Any = None,
    class_names: Any = None,
) -> SparseSample:
    """Validate a chunk, which unlike a sample may have no rows, or none that counts."""
    check_choice(remainder, "remainder", REMAINDERS)
    lists, n_classes = check_lists(y_proba)
    n_rows = lists.indptr.size - 1
    names = _check_names(class_names, n_classes)
    labels = check_labels(y_true, n_classes, names) if np.size(y_true) else np.empty(0, dtype=np.int64)
    _check_length("y_true", labels.size, n_rows)
    weight = None
    if sample_weight is not None and n_rows:
        # All weights of a chunk may be 0: only those of all chunks together must not.
        given = np.asarray(sample_weight)
        weight = (
            check_weight(given) if given.dtype.kind not in "biuf" or given.any() else np.zeros(given.size)
        )
        _check_length("sample_weight", weight.size, n_rows)
    sums = sums_at(_rows(lists), lists.values, n_rows)
    values, rest = _split_rest(lists, sums, n_classes)
    kind = cast("Remainder", remainder)
    if kind == "unknown":
        _check_top(lists, rest, n_classes)
    sample = SparseSample(lists.indptr, lists.indices, values, rest, labels, n_classes, kind, weight, names)
    return sample.closed() if kind == "class" else sample


def check_lists(y_proba: Any, name: str = "y_proba") -> tuple[Lists, int]:
    """Validate the entries of a sparse matrix; returns them and the number of classes."""
    if not (hasattr(y_proba, "tocsr") and getattr(y_proba, "ndim", 2) == 2):
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
    _refuse_row(sums > 1 + allowed, sums, "sums to {:.9g}, more than 1.")
    full = counts == n_classes
    _refuse_row(full & (sums < 1 - allowed), sums, "lists all classes but sums to {:.9g}; divide by the sum.")
    whole = full | (sums > 1 - lists.eps * (2 + counts))
    values = lists.values / np.where(whole, np.maximum(sums, 0.5), 1.0)[_rows(lists)]
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


def _check_names(class_names: Any, n_classes: int) -> tuple[str, ...] | None:
    return None if class_names is None else check_distinct(tuple(map(str, class_names)), n_classes)


def _check_length(name: str, size: int, n_rows: int) -> None:
    if size != n_rows:
        raise ValueError(f"{name} has {size} entries but y_proba has {n_rows} rows; give one per row.")
