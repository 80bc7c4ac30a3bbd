"""A witness that knows a weight for each of finitely many predictions."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.steps import Clip, Distances, InBlocks, Program
from polycal.witness._base import State, Witness
from polycal.witness._translation import linear, scaled

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
    """

    points: Floats
    weights: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "table"

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

    def state(self) -> State:
        """Points and weights."""
        return {"points": self.points, "weights": self.weights}

    @classmethod
    def from_state(cls, state: State, n_classes: int, class_names: tuple[str, ...] | None) -> "TableWitness":
        """Rebuild from `state`."""
        return cls(state["points"], state["weights"], n_classes, class_names)
