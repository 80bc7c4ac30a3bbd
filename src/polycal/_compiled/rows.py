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
