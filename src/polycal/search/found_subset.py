"""A set of classes that a search returns, valued exactly on the whole sample."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Ints
from polycal.question import ask_subset
from polycal.sample import Sample
from polycal.smooth import SmoothCurve, smooth_curve
from polycal.witness.question import SubsetWitness


@dataclass(frozen=True, eq=False)
class FoundSubset:
    """A set of classes, the curve of its question, and what it took to find it.

    Attributes
    ----------
    members : ndarray of int64
        The classes, increasing.
    curve : SmoothCurve
        The exact smooth calibration error of "is the label one of `members`?".
    n_evaluated : int
        How many sets were looked at.
    """

    members: Ints
    curve: SmoothCurve
    n_evaluated: int

    def witness(self, sample: Sample) -> SubsetWitness:
        """The set with its optimal weight function."""
        return SubsetWitness(self.members, self.curve.phi.simplified(), sample.n_classes, sample.class_names)


def size_limit(n_classes: int, max_size: int | None) -> int:
    """How many classes a search may choose: all but one, if of every split one side is small enough."""
    return n_classes - 1 if max_size is None or max_size >= n_classes // 2 else max_size


def found_subset(sample: Sample, members: Ints, limit: int, n_evaluated: int) -> FoundSubset:
    """Value a set exactly. Where its complement is as good an answer, take the smaller of the two."""
    if limit == sample.n_classes - 1:
        members = _smaller_side(sample, members)
    return FoundSubset(members, smooth_curve(ask_subset(sample, members)), n_evaluated)


def _smaller_side(sample: Sample, members: Ints) -> Ints:
    """The set or its complement (their errors are equal): fewer classes, then less predicted probability."""
    others = np.setdiff1d(np.arange(sample.n_classes), members)
    if members.size != others.size:
        return members if members.size < others.size else others
    mean = sample.mass @ sample.proba
    return members if mean[members].sum() <= mean[others].sum() else others
