"""The error of every set of classes at once: its value at a set, and the gain of flipping each class."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.sample import Sample, row_blocks

Float32s = NDArray[np.float32]

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


class Climbable(Protocol):
    """What a climb asks of a landscape."""

    def at(self, member: Bools) -> Point:
        """Evaluate a set."""

    def quick_gains(self, point: Point) -> Float64s:
        """What flipping each class gains at least."""


@dataclass(frozen=True, eq=False)
class Landscape:
    """Single-precision copies of the predictions and of the residuals that define the value of a set.

    Attributes
    ----------
    proba : ndarray of float32, shape (n_samples, n_classes)
    residual : ndarray of float32, shape (n_samples, n_classes)
        Residuals times the mass of their row; each row sums to 0, so a set and its complement are alike.
    """

    proba: Float32s
    residual: Float32s

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(self.proba.shape[1])

    def at(self, member: Bools) -> Point:
        """Evaluate a set."""
        members = np.flatnonzero(member)
        predicted = _kernels().subset_sums(self.proba, members)
        current = _kernels().subset_sums(self.residual, members)
        return Point(member, _value(predicted, current), predicted, current)

    def flipped(self, point: Point, label: int) -> Point:
        """Evaluate the set with one class more or less."""
        member = point.member.copy()
        member[label] = not member[label]
        sign = 1.0 if member[label] else -1.0
        predicted = point.predicted + sign * self.proba[:, label]
        current = point.current + sign * self.residual[:, label]
        return Point(member, _value(predicted, current), predicted, current)

    def quick_gains(self, point: Point) -> Float64s:
        """What flipping each class gains at least: the weight function stays as it is. One pass, O(nk)."""
        order = np.argsort(point.predicted)
        table = _kernels().sorted_weight(point.predicted, point.current, order, _N_CELLS)
        gains: Float64s = _kernels().flip_gains(
            self.proba, self.residual, point.member, point.predicted, point.current, table
        )
        return gains

    def exact_gains(self, point: Point) -> Float64s:
        """What flipping each class gains. k sorts, O(kn log n)."""
        values = [self.flipped(point, label).value for label in range(self.n_classes)]
        return np.array(values) - point.value


def plain_landscape(sample: Sample) -> Landscape:
    """The landscape of the sample's own labels."""
    proba = _search_proba(sample)
    mass = sample.mass.astype(np.float32)
    residual = -mass[:, None] * proba
    residual[np.arange(sample.n_samples), sample.labels] += mass
    return Landscape(proba, residual)


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
    plain, mass = plain_landscape(sample), sample.mass
    expected = expected_labels(plain.proba, sample.labels, mass) - plain.proba
    expected *= mass.astype(np.float32)[:, None]
    surprise = plain.residual - expected
    share = max(_LEAST_SHARE, share_of_signal(surprise, mass))
    return Landscape(plain.proba, _shrunken(expected, mass, 1.0) + _shrunken(surprise, mass, share))


def share_of_signal(residual: Float32s, mass: Float64s) -> float:
    """The James-Stein factor of the class totals: the share of their squares that noise does not explain."""
    total = residual.sum(axis=0, dtype=np.float64)
    noise = np.einsum("ij,ij->", residual, residual, dtype=np.float64) - (total @ total) * (mass @ mass)
    return max(0.0, 1.0 - float(noise / max(total @ total, 1e-300)))


def _shrunken(residual: Float32s, mass: Float64s, share: float) -> Float32s:
    """The class totals times their share of signal, and the rest times ``share``."""
    total = residual.sum(axis=0, dtype=np.float64) * (share_of_signal(residual, mass) - share)
    shrunken: Float32s = np.float32(share) * residual
    shrunken += np.outer(mass, total).astype(np.float32)
    return shrunken


def expected_labels(proba: Float32s, labels: Ints, mass: Float64s) -> Float32s:
    """The most likely label distributions of the form ``p_j ~ v_j^a pi_j^b``, with pi the mean prediction.

    The power a mends the confidence, b the preference for classes that are predicted often. Both are learnt
    from all rows together, so hardly any of the labels' noise is in them.
    """
    from polycal._compiled import powers as kernels  # noqa: PLC0415 - imports numba

    log_proba = np.log(np.maximum(proba, np.float32(_LOWEST_PROBA)))
    log_use = np.log(np.maximum(mass @ proba * proba.shape[1], _LOWEST_USE))
    powers, scale = np.array([1.0, 0.0]), 1.0
    loss, slope, bend = kernels.power_loss(log_proba, log_use, labels, mass, *powers)
    for _ in range(_MAX_STEPS):
        # Newton; by least squares, because b has no effect where all classes are used alike.
        step = np.linalg.lstsq(bend, slope, rcond=1e-9)[0]
        if slope @ step < 1e-9:
            break
        trial = np.clip(powers - scale * step, -_LARGEST_POWER, _LARGEST_POWER)
        new_loss, new_slope, new_bend = kernels.power_loss(log_proba, log_use, labels, mass, *trial)
        if new_loss < loss:
            powers, loss, slope, bend = trial, new_loss, new_slope, new_bend
        else:
            scale /= 4
    expected: Float32s = kernels.power_labels(log_proba, log_use, *powers)
    return expected
