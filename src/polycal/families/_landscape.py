"""The error of every set of classes at once: its value at a set, and the gain of flipping each class."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.sample import Sample, row_blocks

Float32s = NDArray[np.float32]

# Eigenvectors at each end of the spectrum.
N_VECTORS = 2
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
    order : ndarray of int64, shape (n_samples,)
        The rows by growing prediction.
    """

    member: Bools
    value: float
    predicted: Float64s
    current: Float64s
    order: Ints


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
    def gains_by(self, point: Point, table: Float64s) -> Float64s:
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
        return _point(member, predicted, current)

    def flipped(self, point: Point, label: int) -> Point:
        """Evaluate the set with one class more or less."""
        member = point.member.copy()
        member[label] = not member[label]
        return self.at(member)

    def quick_gains(self, point: Point) -> Float64s:
        """What flipping each class gains at least: the weight function stays as it is. One pass."""
        table = _kernels().sorted_weight(point.predicted, point.current, point.order, _N_CELLS)
        return self.gains_by(point, table)

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
        return _point(member, predicted, current)

    def gains_by(self, point: Point, table: Float64s) -> Float64s:
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
        return ends(np.linalg.eigh(joint + joint.T)[1])


def ends(vectors: Float64s) -> Float64s:
    """The first and the last columns."""
    n_each = min(N_VECTORS, vectors.shape[1])
    return np.concatenate([vectors[:, :n_each], vectors[:, -n_each:]], axis=1)


def full_landscape(sample: Sample) -> FullLandscape:
    """The landscape of the sample's own labels."""
    proba = _search_proba(sample)
    mass = sample.mass.astype(np.float32)
    residual = -mass[:, None] * proba
    residual[np.arange(sample.n_samples), sample.labels] += mass
    return FullLandscape(proba, residual, sample.mass)


def _search_proba(sample: Sample) -> Float32s:
    """The predictions in single precision, without denormal numbers."""
    proba: Float32s = np.empty(sample.proba.shape, dtype=np.float32)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        block: Floats = sample.proba[rows]
        proba[rows] = np.where(block < _TINY, 0.0, block)
    return proba


def _point(member: Bools, predicted: Float64s, current: Float64s) -> Point:
    order = np.argsort(predicted)
    value = float(_kernels().sorted_error(predicted, current, order))
    return Point(member, value, predicted, current, order)


def _kernels() -> Any:
    """The compiled passes; importing them imports numba, so only when first needed."""
    from polycal._compiled import subset as kernels  # noqa: PLC0415

    return kernels


_MAX_STEPS = 30
_LARGEST_POWER = 10.0
# Lower probabilities, and lower parts of what the average class is given, count as these.
LOWEST_PROBA = 1e-8
LOWEST_USE = 1e-3


def expected_labels(proba: Float32s, labels: Ints, mass: Float64s) -> Float32s:
    """The most likely label distributions of the form ``p_j ~ v_j^a pi_j^b``, with pi the mean prediction.

    The power a mends the confidence, b the preference for classes that are predicted often. Both are learnt
    from all rows together, so hardly any of the labels' noise is in them.
    """
    from polycal._compiled import powers as kernels  # noqa: PLC0415 - imports numba

    log_proba = np.log(np.maximum(proba, np.float32(LOWEST_PROBA)))
    log_use = np.log(np.maximum(mass @ proba * proba.shape[1], LOWEST_USE))
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
