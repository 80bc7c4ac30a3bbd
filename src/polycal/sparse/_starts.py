"""Sets of classes to climb from, by sparse products."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.families.subset import largest
from polycal.sparse._landscape import SparseLandscape
from polycal.sparse._sample import sums_at

# Eigenvectors at each end of the spectrum; their signs are all that matters.
_N_VECTORS = 2
_PRECISION, _MAX_ROUNDS = 1e-3, 100
# With fewer classes the matrix itself is small.
_FEW_CLASSES = 64


def start_sets(landscape: SparseLandscape, limit: int, n_random: int, seed: int) -> list[Bools]:
    """Sets to climb from: the classes seen too often, those seen too rarely, those whose residuals go with the
    predictions of one another, and ``n_random`` random sets.
    """
    ranks = class_ranks(landscape)
    rng = np.random.default_rng(seed)
    totals = landscape.totals()
    draws = [rng.uniform(-1.0, 1.0, ranks.size)[ranks] for _ in range(n_random + 1)]
    scores = [totals, -totals, *_joint_scores(landscape, draws[0]), *draws[1:]]
    return [largest(score, limit) for score in scores]


def class_ranks(landscape: SparseLandscape) -> Ints:
    """The place of each class in order of use: random choices made in this order follow a relabelling."""
    return np.argsort(np.lexsort((landscape.totals(), landscape_mean(landscape))))


def landscape_mean(landscape: SparseLandscape) -> Float64s:
    """The mean prediction of each class."""
    rows = np.repeat(np.arange(landscape.mass.size), np.diff(landscape.indptr))
    excess = landscape.mass[rows] * (landscape.proba - landscape.share[rows])
    mean = sums_at(landscape.indices, excess, landscape.n_classes)
    mean += landscape.mass @ landscape.share
    return mean


def _joint_scores(landscape: SparseLandscape, start: Float64s) -> Iterator[Float64s]:
    """Scores of classes that are wrong together, though perhaps none is alone: see the dense search.

    They are the extreme eigenvectors of ``E z v' + v z'``, and their negatives.
    """
    apply, k = _joint_product(landscape), landscape.n_classes
    if k <= _FEW_CLASSES:
        vectors = np.linalg.eigh(np.stack([apply(unit) for unit in np.eye(k)]))[1]
        n_each = min(_N_VECTORS, k)
        vectors = np.concatenate([vectors[:, :n_each], vectors[:, -n_each:]], axis=1)
    else:
        vectors = _extreme_vectors(apply, start)
    for vector in vectors.T:
        yield vector
        yield -vector


def _joint_product(landscape: SparseLandscape) -> Callable[[Float64s], Float64s]:
    """The matrix as what it does to a vector: sparse products, and inner ones for what all classes have in common."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

    shape = landscape.mass.size, landscape.n_classes
    rows = np.repeat(np.arange(shape[0]), np.diff(landscape.indptr))
    lists = landscape.indices, landscape.indptr
    share, rest, mass, shift = landscape.share, landscape.rest_residual, landscape.mass, landscape.shift
    proba = csr_array((landscape.proba - share[rows], *lists), shape=shape)
    residual = csr_array((landscape.residual - rest[rows], *lists), shape=shape)

    def apply(vector: Float64s) -> Float64s:
        total = vector.sum()
        predicted = proba @ vector + share * total
        current = residual @ vector + rest * total + mass * (shift @ vector)
        there = residual.T @ predicted + rest @ predicted + shift * (mass @ predicted)
        joint: Float64s = there + proba.T @ current + share @ current
        return joint

    return apply


def _extreme_vectors(apply: Callable[[Float64s], Float64s], start: Float64s) -> Float64s:
    """Eigenvectors at both ends of the spectrum, as columns; those that took shape in time."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # noqa: PLC0415 - slow to import

    operator: Any = LinearOperator(
        (start.size, start.size), matvec=lambda x: apply(x.ravel()), dtype=np.float64
    )
    try:
        _, vectors = eigsh(
            operator, 2 * _N_VECTORS, which="BE", v0=start, tol=_PRECISION, maxiter=_MAX_ROUNDS
        )
    except ArpackNoConvergence as stopped:
        vectors = stopped.eigenvectors
    return np.asarray(vectors, dtype=np.float64)
