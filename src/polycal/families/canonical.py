"""Every distinct prediction by itself: canonical calibration, and witnesses that are tables."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal._validation import check_real
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import Witness, linear, scaled
from polycal.sample import Sample
from polycal.steps import Clip, Distances, InBlocks, Program
from polycal.storage.rules import Array, Rows


@dataclass(frozen=True)
class Canonical(Notion):
    r"""Canonical calibration: given the whole prediction, is the label distributed as it says?

    Computed only where predictions repeat (a decision tree, a table of rules); with distinct predictions it
    cannot be estimated from fewer than exponentially many samples in k [1]_, and a ``ValueError`` says so.

    Parameters
    ----------
    min_repeats : float, default 2
        Refuse when a distinct prediction occurs fewer times than this on average.

    Notes
    -----
    Definition: all weight functions into :math:`[-1, 1]^k`, so the error is
    :math:`\mathbb{E}\,\|\mathbb{E}[y \mid v] - v\|_1`, from 0 to 2. Estimator: plug-in over groups of equal
    predictions. Cost: a sort of the rows, O(nk log n). Bias: upwards, of order :math:`\sqrt{k g / n}` for g
    distinct predictions.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Theorem on the sample complexity of canonical calibration.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.calibration_error([0, 1, 2, 2], [[0.5, 0.25, 0.25]] * 4, pc.Canonical())
    0.5
    """

    min_repeats: float = 2.0
    name: ClassVar[str] = "canonical"

    def __post_init__(self) -> None:
        check_real(self.min_repeats, "min_repeats", low=1)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        distinct, group = np.unique(sample.proba, axis=0, return_inverse=True)
        n_distinct = distinct.shape[0]
        if sample.n_samples < self.min_repeats * n_distinct:
            raise ValueError(
                f"Canonical error needs repeated predictions: {sample.n_samples} rows hold {n_distinct} distinct ones "
                f"(fewer than {self.min_repeats:g} rows each), and without repeats any finite sample looks "
                "miscalibrated. Use SubsetSmooth, Classwise or Confidence, or round the predictions first."
            )
        mass = sample.mass
        outcome = np.zeros(distinct.shape)
        np.add.at(outcome, (group, sample.labels), mass)
        expected = distinct * np.bincount(group, weights=mass, minlength=n_distinct)[:, None]
        gap = outcome - expected
        method = f"grouped by {n_distinct} distinct predictions"
        witness = TableWitness(distinct, np.sign(gap), sample.n_classes, sample.class_names)
        value = float(np.abs(gap).sum())
        return ErrorEstimate(value, "exact", self, method, n_distinct, sample.n_samples, witness)


# Predictions count as equal, for a program of steps, up to this distance, and fade out up to twice it.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class TableWitness(Witness):
    """w(v) = the weight listed for v; 0 for predictions that are not in the table.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_classes)
        The predictions.
    weights : ndarray of float64, shape (n_points, n_classes)
        Their weights, in [-1, 1].

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.estimate_error(made.labels, made.proba, pc.Canonical()).witness
    >>> witness(made.proba[:1]).shape
    (1, 4)
    """

    points: Annotated[Floats, Rows("floats", "n_points n_classes")]
    weights: Annotated[Float64s, Array("float64", "n_points n_classes", low=-1, high=1)]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "table"

    @cached_property
    def _position(self) -> dict[bytes, int]:
        return {point.tobytes(): i for i, point in enumerate(self.points)}

    def evaluate(self, proba: Floats) -> Float64s:
        """Look up each row, by its exact numbers."""
        rows = np.ascontiguousarray(proba, dtype=self.points.dtype)
        found = np.array([self._position.get(row.tobytes(), -1) for row in rows])
        return np.where(found[:, None] >= 0, self.weights[found], 0.0)

    def describe(self) -> str:
        """How many predictions it knows."""
        return f"is the label distributed as predicted, at each of {len(self.points)} distinct predictions?"

    def to_steps(self) -> Program:
        """The weight of the point at distance 0, up to rounding."""
        points = self.points.astype(np.float64)
        is_here = Distances(points), scaled(-1.0 / _ROUNDING, 2.0), Clip(0.0, 1.0)
        return (InBlocks(((*is_here, linear(self.weights)),), float(points.shape[0])),)
