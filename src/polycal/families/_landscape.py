"""The error of every set of classes at once: its value at a set, and the gain of flipping each class."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.listed import ListedSample, csr, with_entries
from polycal.sample import Sample, row_blocks, sums_at

Float32s = NDArray[np.float32]

# Eigenvectors at each end of the spectrum, and how precisely their signs must be known where there are many classes.
_N_VECTORS, _FEW_CLASSES, _PRECISION, _MAX_ROUNDS = 2, 64, 1e-3, 100
# Points at which a weight function is kept while the search looks at flips.
_N_CELLS = 1024
# Smaller probabilities are 0 to the search: denormal numbers would make it ten times slower.
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Point:
    """A set of classes as the search sees it.

    Attributes
    ----------
    member : ndarray of bool, shape (n_classes,)
        The set T.
    value : float
        Its smooth calibration error (in the landscape).
    predicted, current : ndarray of shape (n_samples,)
        ``<1_T, v>``, and the residual ``<1_T, z>`` times the row's mass.
    """

    member: Bools
    value: float
    predicted: Float64s
    current: Float64s


class Landscape(ABC):
    """Predictions and residuals that define the value of a set of classes.

    Attributes
    ----------
    mass : ndarray of float64, shape (n_samples,)
        The weight of each row, by which its residuals are multiplied.
    """

    mass: Float64s

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes, k."""

    @abstractmethod
    def _sums(self, member: Bools) -> tuple[Float64s, Float64s]:
        """The prediction and the residual of a set, in each row."""

    @abstractmethod
    def _flip_gains(self, point: Point, table: Float64s) -> Float64s:
        """What flipping each class gains with the weight function of a table."""

    @abstractmethod
    def totals(self) -> Float64s:
        """The sum of the residuals of each class."""

    @abstractmethod
    def squares(self) -> float:
        """The sum of the squares of all residuals."""

    @abstractmethod
    def expected(self, sample: Sample) -> Self:
        """The landscape of the residuals that are expected of the labels, see `expected_labels`."""

    @abstractmethod
    def scaled(self, scale: float, shift: Float64s) -> Self:
        """The residuals times a number, plus the mass of the row times one number per class."""

    @abstractmethod
    def plus(self, other: Self, sign: float = 1.0) -> Self:
        """The landscape of the sum of two residuals, for the same predictions."""

    @abstractmethod
    def joint_vectors(self, start: Float64s) -> Float64s:
        """Eigenvectors at both ends of the spectrum of ``E z v' + v z'``, as columns."""

    def at(self, member: Bools) -> Point:
        """Evaluate a set."""
        predicted, current = self._sums(member)
        return Point(member, _value(predicted, current), predicted, current)

    def flipped(self, point: Point, label: int) -> Point:
        """Evaluate the set with one class more or less."""
        member = point.member.copy()
        member[label] = not member[label]
        return self.at(member)

    def quick_gains(self, point: Point) -> Float64s:
        """What flipping each class gains at least: the weight function stays as it is. One pass."""
        order = np.argsort(point.predicted)
        table = _kernels().sorted_weight(point.predicted, point.current, order, _N_CELLS)
        return self._flip_gains(point, table)

    def exact_gains(self, point: Point) -> Float64s:
        """What flipping each class gains. k evaluations."""
        values = [self.flipped(point, label).value for label in range(self.n_classes)]
        return np.array(values) - point.value

    def share_of_signal(self) -> float:
        """The James-Stein factor of the class totals: the share of their squares that noise does not explain."""
        totals = self.totals()
        square = float(totals @ totals)
        noise = self.squares() - square * float(self.mass @ self.mass)
        return max(0.0, 1.0 - noise / max(square, 1e-300))

    def shrunken(self, share: float) -> Self:
        """The class totals times their share of signal, and the rest times ``share``."""
        return self.scaled(share, self.totals() * (self.share_of_signal() - share))


@dataclass(frozen=True, eq=False)
class FullLandscape(Landscape):
    """Single-precision copies of full predictions and of their residuals.

    Attributes
    ----------
    proba : ndarray of float32, shape (n_samples, n_classes)
    residual : ndarray of float32, shape (n_samples, n_classes)
        Residuals times the mass of their row; each row sums to 0, so a set and its complement are alike.
    """

    proba: Float32s
    residual: Float32s
    mass: Float64s

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(self.proba.shape[1])

    def _sums(self, member: Bools) -> tuple[Float64s, Float64s]:
        members = np.flatnonzero(member)
        return _kernels().subset_sums(self.proba, members), _kernels().subset_sums(self.residual, members)

    def flipped(self, point: Point, label: int) -> Point:
        """Evaluate the set with one class more or less."""
        member = point.member.copy()
        member[label] = not member[label]
        sign = 1.0 if member[label] else -1.0
        predicted = point.predicted + sign * self.proba[:, label]
        current = point.current + sign * self.residual[:, label]
        return Point(member, _value(predicted, current), predicted, current)

    def _flip_gains(self, point: Point, table: Float64s) -> Float64s:
        at = point.member, point.predicted, point.current
        gains: Float64s = _kernels().flip_gains(self.proba, self.residual, *at, table)
        return gains

    def totals(self) -> Float64s:
        """The sum of the residuals of each class."""
        totals: Float64s = self.residual.sum(axis=0, dtype=np.float64)
        return totals

    def squares(self) -> float:
        """The sum of the squares of all residuals."""
        return float(np.einsum("ij,ij->", self.residual, self.residual, dtype=np.float64))

    def expected(self, sample: Sample) -> Self:
        """The landscape of the residuals that are expected of the labels."""
        residual = expected_labels(self.proba, sample.labels, self.mass) - self.proba
        residual *= self.mass.astype(np.float32)[:, None]
        return replace(self, residual=residual)

    def scaled(self, scale: float, shift: Float64s) -> Self:
        """The residuals times a number, plus the mass of the row times one number per class."""
        residual: Float32s = np.float32(scale) * self.residual
        residual += np.outer(self.mass, shift).astype(np.float32)
        return replace(self, residual=residual)

    def plus(self, other: Self, sign: float = 1.0) -> Self:
        """The landscape of the sum of two residuals, for the same predictions."""
        return replace(self, residual=self.residual + np.float32(sign) * other.residual)

    def joint_vectors(self, start: Float64s) -> Float64s:  # noqa: ARG002 - all vectors are found
        """Eigenvectors at both ends of the spectrum, as columns."""
        joint = (self.residual.T @ self.proba).astype(np.float64)
        return _ends(np.linalg.eigh(joint + joint.T)[1])


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

    def _flip_gains(self, point: Point, table: Float64s) -> Float64s:
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
            return _ends(np.linalg.eigh(np.stack([apply(unit) for unit in np.eye(k)]))[1])
        operator: Any = LinearOperator((k, k), matvec=lambda x: apply(x.ravel()), dtype=np.float64)
        try:
            _, vectors = eigsh(
                operator, 2 * _N_VECTORS, which="BE", v0=start, tol=_PRECISION, maxiter=_MAX_ROUNDS
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


def _ends(vectors: Float64s) -> Float64s:
    """The first and the last columns."""
    n_each = min(_N_VECTORS, vectors.shape[1])
    return np.concatenate([vectors[:, :n_each], vectors[:, -n_each:]], axis=1)


def plain_landscape(sample: Sample) -> Landscape:
    """The landscape of the sample's own labels."""
    if isinstance(sample, ListedSample):
        return _listed_landscape(sample)
    proba = _search_proba(sample)
    mass = sample.mass.astype(np.float32)
    residual = -mass[:, None] * proba
    residual[np.arange(sample.n_samples), sample.labels] += mass
    return FullLandscape(proba, residual, sample.mass)


def _listed_landscape(sample: ListedSample) -> ListedLandscape:
    """Labels that are not listed get an entry at the end of their row."""
    mass, share = sample.mass, sample.share
    missing = np.flatnonzero(sample.label_entry < 0)
    indptr, indices, proba = with_entries(sample, missing, sample.labels[missing], share[missing])
    rows = np.repeat(np.arange(sample.n_samples), np.diff(indptr))
    residual = mass[rows] * ((indices == sample.labels[rows]) - proba)
    shift = np.zeros(sample.n_classes)
    return ListedLandscape(indptr, indices, proba, residual, share, -mass * share, mass, shift)


def _search_proba(sample: Sample) -> Float32s:
    """The predictions in single precision, without denormal numbers."""
    proba: Float32s = np.empty(sample.proba.shape, dtype=np.float32)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        block: Floats = sample.proba[rows]
        proba[rows] = np.where(block < _TINY, 0.0, block)
    return proba


def _value(predicted: Float64s, current: Float64s) -> float:
    return float(_kernels().sorted_error(predicted, current, np.argsort(predicted)))


def _kernels() -> Any:
    """The compiled passes; importing them imports numba, so only when first needed."""
    from polycal._compiled import subset as kernels  # noqa: PLC0415

    return kernels


# A recalibration by two numbers cannot say everything: this share of what it leaves unsaid is always kept.
_LEAST_SHARE = 0.25
_MAX_STEPS = 30
_LARGEST_POWER = 10.0
# Lower probabilities, and lower parts of what the average class is given, count as these.
_LOWEST_PROBA = 1e-8
_LOWEST_USE = 1e-3


def shrunken_landscape(sample: Sample) -> Landscape:
    """The landscape of what is expected of the labels, and of their surprises as far as these are no noise.

    Class totals are what a search over sets of classes overfits most: those of both parts are shrunk.
    """
    plain = plain_landscape(sample)
    expected = plain.expected(sample)
    surprise = plain.plus(expected, -1.0)
    share = max(_LEAST_SHARE, surprise.share_of_signal())
    return expected.shrunken(1.0).plus(surprise.shrunken(share))


def expected_labels(proba: Float32s, labels: Ints, mass: Float64s) -> Float32s:
    """The most likely label distributions of the form ``p_j ~ v_j^a pi_j^b``, with pi the mean prediction.

    The power a mends the confidence, b the preference for classes that are predicted often. Both are learnt
    from all rows together, so hardly any of the labels' noise is in them.
    """
    from polycal._compiled import powers as kernels  # noqa: PLC0415 - imports numba

    log_proba = np.log(np.maximum(proba, np.float32(_LOWEST_PROBA)))
    log_use = np.log(np.maximum(mass @ proba * proba.shape[1], _LOWEST_USE))
    powers = fit_powers(lambda a, b: kernels.power_loss(log_proba, log_use, labels, mass, a, b))
    expected: Float32s = kernels.power_labels(log_proba, log_use, *powers)
    return expected


# From two powers to a loss, its gradient and its second derivatives.
_Loss = Callable[[float, float], tuple[float, Float64s, Float64s]]


def fit_powers(evaluate: _Loss) -> Float64s:
    """The powers of least loss, by Newton's method."""
    powers, scale = np.array([1.0, 0.0]), 1.0
    loss, slope, bend = evaluate(*powers)
    for _ in range(_MAX_STEPS):
        # By least squares, because b has no effect where all classes are used alike.
        step = np.linalg.lstsq(bend, slope, rcond=1e-9)[0]
        if slope @ step < 1e-9:
            break
        trial = np.clip(powers - scale * step, -_LARGEST_POWER, _LARGEST_POWER)
        new_loss, new_slope, new_bend = evaluate(*trial)
        if new_loss < loss:
            powers, loss, slope, bend = trial, new_loss, new_slope, new_bend
        else:
            scale /= 4
    return powers


class _ListedPowers:
    """The same for lists: one column for each listed class, and one for all others together."""

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
    return np.log([np.maximum(proba, _LOWEST_PROBA), np.maximum(use, _LOWEST_USE)])
