"""What the subset search climbs, for lists of classes: values and gains in one pass over the listed entries."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.families.landscape import Point
from polycal.sparse._sample import SparseSample, sums_at

# Points at which a weight function is kept while the search looks at flips.
_N_CELLS = 1024


@dataclass(frozen=True, eq=False)
class SparseLandscape:
    """Predictions and residuals that define the value of a set, with the rest shared equally.

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

    def at(self, member: Bools) -> Point:
        """Evaluate a set."""
        lists = self.indptr, self.indices
        predicted = _lists().member_sums(*lists, self.proba, self.share, member)
        current = _lists().member_sums(*lists, self.residual, self.rest_residual, member)
        current += self.mass * self.shift[member].sum()
        value = _subset().sorted_error(predicted, current, np.argsort(predicted))
        return Point(member, float(value), predicted, current)

    def quick_gains(self, point: Point) -> Float64s:
        """What flipping each class gains at least: the weight function stays as it is. O(entries + n + k)."""
        order = np.argsort(point.predicted)
        table = _subset().sorted_weight(point.predicted, point.current, order, _N_CELLS)
        gains: Float64s = _lists().list_flip_gains(
            self.indptr,
            self.indices,
            self.proba,
            self.residual,
            self.share,
            self.rest_residual,
            self.mass,
            self.shift,
            point.member,
            point.predicted,
            point.current,
            table,
        )
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

    def share_of_signal(self) -> float:
        """The James-Stein factor of the class totals: the share of their squares that noise does not explain."""
        totals = self.totals()
        square = float(totals @ totals)
        noise = self.squares() - square * float(self.mass @ self.mass)
        return max(0.0, 1.0 - noise / max(square, 1e-300))

    def shrunken(self, share: float) -> "SparseLandscape":
        """The class totals times their share of signal, and the rest times ``share``."""
        return replace(
            self,
            residual=share * self.residual,
            rest_residual=share * self.rest_residual,
            shift=self.totals() * (self.share_of_signal() - share),
        )

    def plus(self, other: "SparseLandscape", sign: float = 1.0) -> "SparseLandscape":
        """The landscape of the sum of two residuals, for the same predictions."""
        return replace(
            self,
            residual=self.residual + sign * other.residual,
            rest_residual=self.rest_residual + sign * other.rest_residual,
            shift=self.shift + sign * other.shift,
        )

    def _rows(self) -> Ints:
        return np.repeat(np.arange(self.mass.size), np.diff(self.indptr))


def plain_landscape(sample: SparseSample) -> SparseLandscape:
    """The landscape of the sample's own labels."""
    mass, share = sample.mass, sample.share
    missing = np.flatnonzero(sample.label_entry < 0)
    # Labels that are not listed get an entry at the end of their row.
    places = sample.indptr[missing + 1]
    indices = np.insert(sample.indices, places, sample.labels[missing])
    proba = np.insert(sample.values, places, share[missing])
    added = np.zeros(sample.n_samples + 1, dtype=np.int64)
    added[missing + 1] = 1
    indptr = sample.indptr + np.cumsum(added)
    rows = np.repeat(np.arange(sample.n_samples), np.diff(indptr))
    residual = mass[rows] * ((indices == sample.labels[rows]) - proba)
    return SparseLandscape(
        indptr, indices, proba, residual, share, -mass * share, mass, np.zeros(sample.n_classes)
    )


def _subset() -> Any:
    """The compiled passes of the dense search; importing them imports numba, so only when first needed."""
    from polycal._compiled import subset as kernels  # noqa: PLC0415

    return kernels


def _lists() -> Any:
    """The compiled passes over lists."""
    from polycal._compiled import lists as kernels  # noqa: PLC0415

    return kernels
