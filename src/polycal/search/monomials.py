"""The monomial of the prediction that correlates best with each class's residual, by branch and bound."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.sample import Sample, row_blocks


@dataclass(frozen=True, eq=False)
class BestMonomials:
    """For each class l the monomial with the largest ``|E z_l v^e|`` found.

    Attributes
    ----------
    factors : ndarray of int64, shape (n_classes, degree)
        The factors of each class's monomial, -1 where there is none.
    correlations : ndarray of float64, shape (n_classes,)
        ``E z_l v^e``, with its sign.
    is_exact : bool
        Whether no monomial of at most the degree does better.
    n_tried : int
        Number of pairs of a class and a monomial whose correlation was computed.
    """

    factors: Ints
    correlations: Float64s
    is_exact: bool
    n_tried: int


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a class and a monomial, with a bound on the correlation of all multiples of the monomial."""

    classes: Ints
    factors: Ints
    bounds: Float64s

    def take(self, rows: Ints | Bools) -> "_Pairs":
        return _Pairs(self.classes[rows], self.factors[rows], self.bounds[rows])


def best_monomials(sample: Sample, degree: int, max_terms: int) -> BestMonomials:
    """Search all monomials of at most ``degree``, extending at most ``max_terms`` pairs of each degree.

    Each pair (class l, monomial e) is extended by all k factors in one matrix product. As 0 <= v <= 1, no multiple
    of e has a correlation larger in absolute value than the larger of E z_l^+ v^e and E z_l^- v^e. Pairs for which
    that is no more than the best found for l are dropped, which loses nothing.
    """
    k = sample.n_classes
    best = np.full((k, degree), -1, dtype=np.int64)
    correlations, pairs = _degree_zero(sample)
    is_exact, n_tried = True, k
    for length in range(1, degree + 1):
        pairs = pairs.take(pairs.bounds > np.abs(correlations)[pairs.classes])
        if pairs.classes.size > max_terms:
            is_exact = False
            pairs = pairs.take(np.argsort(-pairs.bounds, kind="stable")[:max_terms])
        if pairs.classes.size == 0:
            break
        values = _extended(sample, pairs)
        n_tried += values.size
        _record(best, correlations, pairs, values)
        if length < degree:
            positive = _extended(sample, pairs, positive=True)
            pairs = _children(pairs, np.maximum(positive, positive - values), correlations)
    return BestMonomials(best, correlations, is_exact, n_tried)


def _degree_zero(sample: Sample) -> tuple[Float64s, _Pairs]:
    """The mean residuals, and the pairs of each class with the monomial 1."""
    k = sample.n_classes
    correlations, positive = np.zeros(k), np.zeros(k)
    for rows in row_blocks(sample.n_samples, k):
        residual = _residual(sample, rows)
        correlations += residual.sum(axis=0)
        positive += np.maximum(residual, 0.0).sum(axis=0)
    bounds = np.maximum(positive, positive - correlations)
    return correlations, _Pairs(np.arange(k), np.empty((k, 0), dtype=np.int64), bounds)


def _extended(sample: Sample, pairs: _Pairs, *, positive: bool = False) -> Float64s:
    """``E z_l v^e v_i`` for each pair (l, e) and each class i; with z_l^+ in place of z_l when ``positive``."""
    out = np.zeros((pairs.classes.size, sample.n_classes))
    for rows in row_blocks(sample.n_samples, max(pairs.classes.size, sample.n_classes)):
        residual = _residual(sample, rows)
        if positive:
            np.maximum(residual, 0.0, out=residual)
        proba = np.minimum(sample.proba[rows], 1.0, dtype=np.float64)
        columns = np.ascontiguousarray(proba.T)
        weights = np.ascontiguousarray(residual.T)[pairs.classes]
        for factor in pairs.factors.T:
            weights *= columns[factor]
        out += weights @ proba
    return out


def _residual(sample: Sample, rows: slice) -> Float64s:
    """``mass_i (y_i - v_i)`` of a block of rows."""
    residual: Float64s = np.negative(sample.proba[rows], dtype=np.float64)
    residual[np.arange(rows.stop - rows.start), sample.labels[rows]] += 1.0
    if sample.sample_weight is None:
        residual /= sample.n_samples
    else:
        residual *= (sample.sample_weight[rows] / sample.sample_weight.sum())[:, None]
    return residual


def _record(best: Ints, correlations: Float64s, pairs: _Pairs, values: Float64s) -> None:
    """Take over, in place, every extension that beats the best of its class."""
    added = np.argmax(np.abs(values), axis=1)
    reached = values[np.arange(added.size), added]
    for row in np.argsort(np.abs(reached), kind="stable"):
        c = pairs.classes[row]
        if abs(reached[row]) > abs(correlations[c]):
            correlations[c] = reached[row]
            monomial = np.sort(np.append(pairs.factors[row], added[row]))
            best[c, : monomial.size] = monomial


def _children(pairs: _Pairs, bounds: Float64s, correlations: Float64s) -> _Pairs:
    """The extensions that may still lead to something better, each once."""
    rows, added = np.nonzero(bounds > np.abs(correlations)[pairs.classes, None])
    factors = np.sort(np.column_stack([pairs.factors[rows], added]), axis=1)
    keys = np.column_stack([pairs.classes[rows], factors])
    _, once = np.unique(keys, axis=0, return_index=True)
    return _Pairs(pairs.classes[rows][once], factors[once], bounds[rows, added][once])
