"""Passes over the rows of predictions: one reading of each row, and no array of their size."""

import math

import numpy as np

from polycal._compiled import compiled


@compiled
def top_classes(proba):
    """The most likely class of each row (the first of equals) and its probability, as float64 and at most 1."""
    n, k = proba.shape
    top = np.empty(n, dtype=np.int64)
    confidence = np.empty(n)
    for i in range(n):
        best = 0
        high = proba[i, 0]
        for c in range(1, k):
            if proba[i, c] > high:
                high = proba[i, c]
                best = c
        top[i] = best
        confidence[i] = min(np.float64(high), 1.0)
    return top, confidence


@compiled
def top_sets(proba, labels, m):
    """The sum of the m largest entries of each row, at most 1, and whether the label's is one (the first of equals)."""
    n, k = proba.shape
    total = np.empty(n)
    hit = np.empty(n, dtype=np.bool_)
    m = min(m, k)
    best = np.empty(m)
    for i in range(n):
        y = labels[i]
        if y < 0 or y >= k:
            raise ValueError("a label is not one of the classes")
        own = proba[i, y]
        rank = 0
        for c in range(k):
            p = proba[i, c]
            if p > own or (p == own and c < y):
                rank += 1
            if c < m or p > best[m - 1]:
                j = min(c, m - 1)
                while j > 0 and best[j - 1] < p:
                    best[j] = best[j - 1]
                    j -= 1
                best[j] = p
        row = 0.0
        for j in range(m):
            row += best[j]
        total[i] = 1.0 if m == k else min(row, 1.0)
        hit[i] = rank < m
    return total, hit


@compiled
def subset_sums(proba, members):
    """The sum of each row over some classes, as float64 and at most 1."""
    n, k = proba.shape
    for c in members:
        if c < 0 or c >= k:
            raise ValueError("a member is not one of the classes")
    total = np.empty(n)
    for i in range(n):
        row = 0.0
        for c in members:
            row += np.float64(proba[i, c])
        total[i] = min(row, 1.0)
    return total


@compiled
def score_sums(proba, labels, weight, floor):
    """The weighted sums of "the most likely class is right", ``||y - v||^2`` and ``-log max(v_y, floor)``."""
    n, k = proba.shape
    right, squared, log = 0.0, 0.0, 0.0
    for i in range(n):
        w = weight[i]
        best = 0
        high = proba[i, 0]
        square = 0.0
        for c in range(k):
            p = proba[i, c]
            square += np.float64(p) * np.float64(p)
            if p > high:
                high = p
                best = c
        y = labels[i]
        truth = np.float64(proba[i, y])
        right += w * (best == y)
        squared += w * (square + 1.0 - 2.0 * truth)
        log -= w * math.log(min(max(truth, floor), 1.0))
    return np.array([right, squared, log])


@compiled
def top_listed(indptr, indices, values, other):
    """`top_classes` of lists whose other classes all have the row's ``other`` probability."""
    n = indptr.size - 1
    top = np.empty(n, dtype=np.int64)
    confidence = np.empty(n)
    for i in range(n):
        best, high = -1, -1.0
        # The first class that is not listed: lists are in increasing order.
        free = 0
        for e in range(indptr[i], indptr[i + 1]):
            if values[e] > high:
                best, high = indices[e], values[e]
            free += indices[e] == free
        if best < 0 or other[i] > high or (other[i] == high and free < best):
            best, high = free, other[i]
        top[i] = best
        confidence[i] = min(high, 1.0)
    return top, confidence


@compiled
def top_sets_listed(indptr, indices, values, labels, n_classes, m, rest, most, hides, anywhere):
    """`top_sets` of lists: the least and the most that the sum can be, the answer, and whether it is not known.

    Classes that are not listed share the row's ``rest`` equally. Unless it ``hides``: then none of them has more than
    the row's ``most``, and they come after all listed classes, or ``anywhere``.
    """
    n, m = indptr.size - 1, min(m, n_classes)
    low, high = np.empty(n), np.empty(n)
    hit, unsure = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    best = np.empty(m)
    for i in range(n):
        y, n_others = labels[i], n_classes - (indptr[i + 1] - indptr[i])
        other = rest[i] / max(n_others, 1)
        own, is_listed, before = other, False, 0
        for e in range(indptr[i], indptr[i + 1]):
            before += indices[e] < y
            if indices[e] == y:
                own, is_listed = values[e], True
        hidden = hides and rest[i] > 0 and n_others > 0
        rank, found = 0, 0
        for e in range(indptr[i], indptr[i + 1]):
            rank += values[e] > own or (values[e] == own and indices[e] < y)
            found = _insert(best, found, values[e])
        for _ in range(0 if hidden else min(m, n_others)):
            found = _insert(best, found, other)
        total = 0.0
        for j in range(found):
            total += best[j]
        low[i] = high[i] = total
        if not hidden:
            rank += n_others if other > own else (y - before if other == own else 0)
            hit[i] = rank < m
            continue
        missing, last = m - found, best[m - 1]
        low[i] = total + other * missing
        if anywhere:
            high[i] = total + rest[i] if missing > 0 else max(total, total - last + rest[i])
        else:
            high[i] = total + min(rest[i], missing * most[i])
        if is_listed:
            # As many others, all of them larger, would take its place.
            unsure[i] = anywhere and 0 < m - rank <= n_others and (m - rank) * own <= rest[i]
            hit[i] = rank < m and not unsure[i]
        else:
            unsure[i] = missing > 0 or (anywhere and last <= rest[i])
    return np.minimum(low, 1.0), np.minimum(high, 1.0), hit, unsure


@compiled
def _insert(best, found, value):
    """Put a value among the largest ones so far, from large to small; how many there are then."""
    if found == best.size and value <= best[found - 1]:
        return found
    j = min(found, best.size - 1)
    while j > 0 and best[j - 1] < value:
        best[j] = best[j - 1]
        j -= 1
    best[j] = value
    return min(found + 1, best.size)
