"""The witness of full smooth calibration: for each class, any l1-Lipschitz function of the whole prediction."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.sample import row_blocks
from polycal.steps import Affine, Clip, Distances, InBlocks, LargestOf, Program
from polycal.witness._base import State, Witness


@dataclass(frozen=True, eq=False, repr=False)
class FullSmoothWitness(Witness):
    """w_l(v) = max(-1, max_i (heights_i - ||v - points_i||_1)) over the stored points of class l.

    The smallest l1-Lipschitz function into [-1, 1] that reaches the heights at the points (McShane's
    extension), on the whole simplex. A class without stored points has the constant weight -1.

    Attributes
    ----------
    points : ndarray of float64, shape (n_points, n_classes)
        Predictions seen with a class more often than predicted.
    classes : ndarray of int64, shape (n_points,)
        The class each point speaks about.
    heights : ndarray of float64, shape (n_points,)
        The weight of that class there, in [-1, 1].
    """

    points: Float64s
    classes: Ints
    heights: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "full-smooth"

    def evaluate(self, proba: Floats) -> Float64s:
        """The weight of each class, from the nearest high points of that class."""
        out = np.full(proba.shape, -1.0)
        for label in np.unique(self.classes):
            own = self.classes == label
            out[:, label] = lipschitz_values(proba, self.points[own], self.heights[own])
        return out

    def describe(self) -> str:
        """The question asked."""
        return (
            "is each class as frequent as predicted, among predictions near one another? "
            f"({self.heights.size} predictions stored)"
        )

    def to_steps(self) -> Program:
        """The heights less the distances, and the largest of each class."""
        # A class without points gets one that is too low to count.
        classes = np.concatenate([self.classes, np.arange(self.n_classes)])
        order = np.argsort(classes, kind="stable")
        points = np.concatenate([self.points, np.zeros((self.n_classes, self.n_classes))])[order]
        heights = np.concatenate([self.heights, np.full(self.n_classes, -3.0)])[order]
        starts = np.searchsorted(classes[order], np.arange(self.n_classes + 1))
        program = Distances(points), Affine(-np.ones(1), heights), LargestOf(starts), Clip(-1.0, 1.0)
        return (InBlocks((program,), float(order.size)),)

    def state(self) -> State:
        """Points, classes and heights."""
        return {"points": self.points, "classes": self.classes, "heights": self.heights}

    @classmethod
    def from_state(
        cls, state: State, n_classes: int, class_names: tuple[str, ...] | None
    ) -> "FullSmoothWitness":
        """Rebuild from `state`."""
        return cls(state["points"], state["classes"], state["heights"], n_classes, class_names)


def lipschitz_values(proba: Floats, points: Floats, heights: Float64s) -> Float64s:
    """``max(-1, max_i (heights_i - ||v - points_i||_1))`` for each row v, in blocks."""
    from scipy.spatial.distance import cdist  # noqa: PLC0415 - not at `import polycal`

    out = np.empty(proba.shape[0])
    for rows in row_blocks(proba.shape[0], heights.size):
        below = cdist(proba[rows], points, "cityblock")
        np.subtract(heights, below, out=below)
        out[rows] = below.max(axis=1, initial=-1.0)
    return out
