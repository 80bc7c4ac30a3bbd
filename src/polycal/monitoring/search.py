"""Short sets of classes that were off on rows gone by, to be watched from now on.

A search on past rows proves nothing, and nothing is claimed of it: the sets it finds are bet on with later rows.
"""

import numpy as np

from polycal._typing import Float64s, Floats, Ints

# The most classes of a set, the classes that a search begins with, and rows that it looks at.
_MOST_MEMBERS, _BEGINNINGS, SEARCH_ROWS = 5, 4, 2000
# The number of rows before the first search; then when they are so many times more, or at
# last so many more.
_FIRST, _GROWTH, _MOST = 100, 1.5, 2000


def next_search(n_rows: int) -> int:
    """The number of rows at which the first search after so many is due."""
    due = _FIRST
    while due <= n_rows:
        if due * (_GROWTH - 1.0) < _MOST:
            due = int(np.ceil(due * _GROWTH))
        else:
            due += _MOST * ((n_rows - due) // _MOST + 1)
    return due


def find_short_set(proba: Floats, labels: Ints) -> Ints:
    """A set of at most five classes whose probability was off where it was larger, or smaller, than on average.

    Classes are added one by one, each time the one that makes ``sum of (p - mean p) (yes - p)`` largest in standard
    deviations that it has if predictions are right; of the beginnings, and of the sizes on the way, the best wins.
    """
    own = proba.astype(np.float64)
    residual = -own
    residual[np.arange(labels.size), labels] += 1.0
    first = _scores(own, residual)
    best, members = 0.0, np.empty(0, dtype=np.int64)
    for beginning in np.argsort(-np.abs(first))[:_BEGINNINGS]:
        score, found = _grown(own, residual, int(beginning))
        if score > best:
            best, members = score, found
    return np.sort(members)


def _grown(own: Float64s, residual: Float64s, beginning: int) -> tuple[float, Ints]:
    """The best set on the way from one class to several."""
    chosen = [beginning]
    best, members = 0.0, chosen
    for _ in range(min(_MOST_MEMBERS, own.shape[1] - 1) - 1):
        predicted, off = own[:, chosen].sum(axis=1), residual[:, chosen].sum(axis=1)
        scores = np.abs(_scores(own + predicted[:, None], residual + off[:, None]))
        scores[chosen] = -np.inf
        chosen = [*chosen, int(scores.argmax())]
        if scores.max() > best:
            best, members = float(scores.max()), chosen
    return best, np.array(members, dtype=np.int64)


def _scores(predicted: Float64s, residual: Float64s) -> Float64s:
    """Of each column: how far it is off, in standard deviations."""
    tilt = predicted - predicted.mean(axis=0)
    spread = np.einsum("ij,ij,ij->j", tilt, tilt, np.maximum(predicted * (1.0 - predicted), 0.0))
    total: Float64s = np.einsum("ij,ij->j", tilt, residual) / np.sqrt(spread + 1e-9)
    return total
