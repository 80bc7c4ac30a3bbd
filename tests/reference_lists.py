"""Oracles for truncated predictions: cut lists from full rows, and complete lists to full rows in many ways."""

import numpy as np
from scipy.sparse import csr_array


def truncated(proba, n_listed):
    """The largest entries of each row; a stored 0 stays listed."""
    keep = np.argsort(-proba, axis=1, kind="stable")[:, :n_listed]
    rows = np.repeat(np.arange(len(proba)), keep.shape[1])
    return csr_array(
        (np.take_along_axis(proba, keep, axis=1).ravel(), (rows, keep.ravel())), shape=proba.shape
    )


def ragged(proba, rng):
    """Lists of different lengths of the largest entries of each row, at least one."""
    counts = rng.integers(1, proba.shape[1] + 1, len(proba))
    keep = [np.sort(np.argsort(-row, kind="stable")[:c]) for row, c in zip(proba, counts, strict=True)]
    values = np.concatenate([row[k] for row, k in zip(proba, keep, strict=True)])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((values, np.concatenate(keep), indptr), shape=proba.shape)


def listed_classes(lists, row):
    return lists.indices[lists.indptr[row] : lists.indptr[row + 1]]


def spread(lists):
    """Full rows with the rest shared equally."""
    full = lists.toarray()
    for row in range(full.shape[0]):
        free = np.setdiff1d(np.arange(full.shape[1]), listed_classes(lists, row))
        full[row, free] = max(0.0, 1 - full[row].sum()) / max(free.size, 1)
    return full


def completed(lists, rng, *, top=True):
    """Full rows, the rest given to classes in random order: all of it, or (``top``) up to the least listed class."""
    full = lists.toarray()
    for row in range(full.shape[0]):
        listed = listed_classes(lists, row)
        free = np.setdiff1d(np.arange(full.shape[1]), listed)
        if free.size == 0:
            continue
        rest = max(0.0, 1 - full[row].sum())
        most = max(full[row, listed].min(), rest / free.size) if top else rest
        full[row] += rng.choice([0.0, 0.5, 1.0]) * _greedy(full.shape[1], free, rest, most, rng)
        left = max(0.0, 1 - full[row].sum())
        full[row] += left / max(rest, 1e-300) * _greedy(full.shape[1], free, rest, most, rng)
    return full / full.sum(axis=1, keepdims=True)


def _greedy(n_classes, free, rest, most, rng):
    """The rest given to classes in random order, at most ``most`` to each."""
    given = np.zeros(n_classes)
    left = rest
    for label in rng.permutation(free):
        given[label] = min(left, most)
        left -= given[label]
    return given
