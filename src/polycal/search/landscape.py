"""What the subset search climbs: the value of any set of classes, and the gain of flipping each one."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Bools, Float64s, Floats
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
