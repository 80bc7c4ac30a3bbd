"""The landscape of lists of classes: values and gains in one pass over the listed entries; and what lists hide."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.families._landscape import (
    LOWEST_PROBA,
    LOWEST_USE,
    N_VECTORS,
    Landscape,
    Point,
    ends,
    fit_powers,
    full_landscape,
)
from polycal.listed import ListedSample, csr, with_entries
from polycal.measures.smooth import smooth_error, smooth_interval
from polycal.sample import Sample, ask_subset, sums_at

# With more classes, eigenvectors are found by iteration; their signs are all that matters.
_FEW_CLASSES, _PRECISION, _MAX_ROUNDS = 64, 1e-3, 100
# A recalibration by two numbers cannot say everything: this share of what it leaves unsaid is always kept.
_LEAST_SHARE = 0.25
# Sets are thinned again and again, each time to this share of their classes.
_THINNED = 0.7


@dataclass(frozen=True, eq=False)
class ListedLandscape(Landscape):
    """Predictions and residuals of lists, with the rest of each row shared equally.

    The residual of row i and class j is ``residual`` at the entry (i, j) if there is one and else ``rest_residual``
    of the row; plus ``mass`` of the row times ``shift`` of the class.

    Attributes
    ----------
    indptr, indices : ndarray of int64
        The entries of each row: listed classes, and the label.
    proba, residual : ndarray of float64, one per entry
        Predicted probability, and residual times the mass of the row.
    share, rest_residual, mass : ndarray of float64, shape (n_samples,)
        Probability and residual of each class without an entry, and the weight of the row.
    shift : ndarray of float64, shape (n_classes,)
        Added to the residuals of a class in all rows.
    """

    indptr: Ints
    indices: Ints
    proba: Float64s
    residual: Float64s
    share: Float64s
    rest_residual: Float64s
    mass: Float64s
    shift: Float64s

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(self.shift.size)

    def _sums(self, member: Bools) -> tuple[Float64s, Float64s]:
        from polycal._compiled.lists import member_sums  # noqa: PLC0415 - imports numba

        predicted = member_sums(self.indptr, self.indices, self.proba, self.share, member)
        current = member_sums(self.indptr, self.indices, self.residual, self.rest_residual, member)
        current += self.mass * self.shift[member].sum()
        return predicted, current

    def gains_by(self, point: Point, table: Float64s) -> Float64s:
        from polycal._compiled.lists import list_flip_gains  # noqa: PLC0415 - imports numba

        entries = self.indptr, self.indices, self.proba, self.residual
        rows = self.share, self.rest_residual, self.mass, self.shift
        at = point.member, point.predicted, point.current
        gains: Float64s = list_flip_gains(*entries, *rows, *at, table)
        return gains

    def totals(self) -> Float64s:
        """The sum of the residuals of each class."""
        excess = self.residual - self.rest_residual[self._rows()]
        totals = sums_at(self.indices, excess, self.n_classes)
        totals += self.rest_residual.sum()
        totals += self.shift
        return totals

    def squares(self) -> float:
        """The sum of the squares of all residuals, of a landscape without shift."""
        n_others = self.n_classes - np.diff(self.indptr)
        return float(self.residual @ self.residual + n_others @ self.rest_residual**2)

    def expected(self, sample: Sample) -> Self:
        """The landscape of the residuals that are expected of the labels.

        All classes that a row does not list count as one, whose probability is then shared equally among them.
        """
        if not isinstance(sample, ListedSample):
            raise TypeError("the landscape is one of lists.")
        model = _ListedPowers(sample)
        listed, rest = model.probabilities(fit_powers(model.loss))
        other = rest / np.maximum(sample.n_classes - sample.n_listed, 1)
        is_listed = np.ones(self.indices.size, dtype=np.bool_)
        is_listed[self.indptr[1:][sample.label_entry < 0] - 1] = False
        rows = self._rows()
        proba = other[rows]
        proba[is_listed] = listed
        return replace(
            self,
            residual=self.mass[rows] * (proba - self.proba),
            rest_residual=self.mass * (other - self.share),
        )

    def scaled(self, scale: float, shift: Float64s) -> Self:
        """The residuals times a number, plus the mass of the row times one number per class."""
        return replace(
            self,
            residual=scale * self.residual,
            rest_residual=scale * self.rest_residual,
            shift=scale * self.shift + shift,
        )

    def plus(self, other: Self, sign: float = 1.0) -> Self:
        """The landscape of the sum of two residuals, for the same predictions."""
        return replace(
            self,
            residual=self.residual + sign * other.residual,
            rest_residual=self.rest_residual + sign * other.rest_residual,
            shift=self.shift + sign * other.shift,
        )

    def joint_vectors(self, start: Float64s) -> Float64s:
        """Eigenvectors at both ends of the spectrum, as columns; those that took shape in time."""
        from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # noqa: PLC0415 - slow to import

        apply, k = self._joint_product(), self.n_classes
        if k <= _FEW_CLASSES:
            return ends(np.linalg.eigh(np.stack([apply(unit) for unit in np.eye(k)]))[1])
        operator: Any = LinearOperator((k, k), matvec=lambda x: apply(x.ravel()), dtype=np.float64)
        try:
            _, vectors = eigsh(
                operator, 2 * N_VECTORS, which="BE", v0=start, tol=_PRECISION, maxiter=_MAX_ROUNDS
            )
        except ArpackNoConvergence as stopped:
            vectors = stopped.eigenvectors
        return np.asarray(vectors, dtype=np.float64)

    def _joint_product(self) -> Callable[[Float64s], Float64s]:
        """``E z v' + v z'`` as what it does to a vector: sparse products, and inner ones for what classes share."""
        rows, share, rest, mass, shift = self._rows(), self.share, self.rest_residual, self.mass, self.shift
        proba = csr(self.indptr, self.indices, self.proba - share[rows], self.n_classes)
        residual = csr(self.indptr, self.indices, self.residual - rest[rows], self.n_classes)

        def apply(vector: Float64s) -> Float64s:
            total = vector.sum()
            predicted = proba @ vector + share * total
            current = residual @ vector + rest * total + mass * (shift @ vector)
            there = residual.T @ predicted + rest @ predicted + shift * (mass @ predicted)
            joint: Float64s = there + proba.T @ current + share @ current
            return joint

        return apply

    def _rows(self) -> Ints:
        return np.repeat(np.arange(self.mass.size), np.diff(self.indptr))


def plain_landscape(sample: Sample) -> Landscape:
    """The landscape of the sample's own labels."""
    return _listed_landscape(sample) if isinstance(sample, ListedSample) else full_landscape(sample)


def _listed_landscape(sample: ListedSample) -> ListedLandscape:
    """Labels that are not listed get an entry at the end of their row."""
    mass, share = sample.mass, sample.share
    missing = np.flatnonzero(sample.label_entry < 0)
    indptr, indices, proba = with_entries(sample, missing, sample.labels[missing], share[missing])
    rows = np.repeat(np.arange(sample.n_samples), np.diff(indptr))
    residual = mass[rows] * ((indices == sample.labels[rows]) - proba)
    shift = np.zeros(sample.n_classes)
    return ListedLandscape(indptr, indices, proba, residual, share, -mass * share, mass, shift)


def shrunken_landscape(sample: Sample) -> Landscape:
    """The landscape of what is expected of the labels, and of their surprises as far as these are no noise.

    Class totals are what a search over sets of classes overfits most: those of both parts are shrunk.
    """
    plain = plain_landscape(sample)
    expected = plain.expected(sample)
    surprise = plain.plus(expected, -1.0)
    share = max(_LEAST_SHARE, surprise.share_of_signal())
    return expected.shrunken(1.0).plus(surprise.shrunken(share))


class _ListedPowers:
    """The model of `expected_labels` for lists: one column for each listed class, and one for all others together."""

    def __init__(self, sample: ListedSample) -> None:
        self._sample, self._rows, self._mass = sample, sample.rows, sample.mass
        use = sums_at(sample.indices, sample.values * self._mass[self._rows], sample.n_classes)
        self._logs = _logs(sample.values, use[sample.indices] * sample.n_classes)
        mean_rest = float(self._mass @ sample.share) * sample.n_classes
        self._rest_logs = _logs(sample.rest, np.full(sample.n_samples, mean_rest))
        # Where nothing is left over, the other classes are out of the question, unless one of them came about.
        possible = (sample.rest > 0) | (sample.label_entry < 0)
        self._penalty = np.where(possible, 0.0, -np.inf)

    def probabilities(self, powers: Float64s) -> tuple[Float64s, Float64s]:
        """Of the listed classes, and of all others together."""
        scores, rest_scores = powers @ self._logs, powers @ self._rest_logs + self._penalty
        top = rest_scores.copy()
        np.maximum.at(top, self._rows, scores)
        listed, rest = np.exp(scores - top[self._rows]), np.exp(rest_scores - top)
        total = self._sample.row_sums(listed) + rest
        return listed / total[self._rows], rest / total

    def loss(self, a: float, b: float) -> tuple[float, Float64s, Float64s]:
        """The mean log loss, its gradient and its second derivatives."""
        listed, rest = self.probabilities(np.array([a, b]))
        mass, entry = self._mass, self._sample.label_entry
        is_listed = entry >= 0
        hit = np.where(is_listed, listed[entry] if listed.size else 0.0, rest)
        seen = self._logs[:, entry[is_listed]] @ mass[is_listed]
        seen += self._rest_logs[:, ~is_listed] @ mass[~is_listed]
        mean = rest * self._rest_logs
        mean += np.stack([self._sample.row_sums(listed * logs) for logs in self._logs])
        squares = (self._logs * (listed * mass[self._rows])) @ self._logs.T
        squares += (self._rest_logs * (rest * mass)) @ self._rest_logs.T
        loss = -float(mass @ np.log(np.maximum(hit, 1e-300)))
        return loss, mean @ mass - seen, squares - (mean * mass) @ mean.T


def _logs(proba: Float64s, use: Float64s) -> Float64s:
    """Logarithms of the probabilities and of how much the classes are used beside the average class."""
    return np.log([np.maximum(proba, LOWEST_PROBA), np.maximum(use, LOWEST_USE)])


def least_hidden(sample: ListedSample, landscape: Landscape, sets: list[Ints]) -> Bools:
    """Of some sets and of parts of them, the one of largest value, less what lists may hide of it."""
    points = [point for members in sets for point in _thinned(landscape, members)]
    return max(points, key=lambda point: _kept(sample, point)).member


def _thinned(landscape: Landscape, members: Ints) -> Iterator[Point]:
    """The set, and ever smaller ones, without the classes that matter least."""
    point = landscape.at(np.isin(np.arange(landscape.n_classes), members))
    order = members[np.argsort(landscape.quick_gains(point)[members], kind="stable")]
    yield point
    while order.size > 1:
        order = order[: int(_THINNED * order.size)]
        yield landscape.at(np.isin(np.arange(landscape.n_classes), order))


def _kept(sample: ListedSample, point: Point) -> float:
    """The value of a set, less what lists may hide of it."""
    members = np.flatnonzero(point.member)
    shared = smooth_error(ask_subset(replace(sample, remainder="spread"), members))
    return point.value - (shared - smooth_interval(ask_subset(sample, members))[0].low)
