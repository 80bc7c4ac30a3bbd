"""Witnesses that weigh each class by the side of a hyperplane on which the prediction lies."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.steps import Lookup, Program
from polycal.witness._base import State
from polycal.witness._directions import DirectionsWitness


@dataclass(frozen=True, eq=False, repr=False)
class HalfspaceWitness(DirectionsWitness):
    """w_l(v) = s_l where ``<a_l, v> >= t_l``, else -s_l, for each class l.

    Attributes
    ----------
    directions : ndarray of shape (k, k)
        a_l in row l.
    places : ndarray of shape (k,)
        The thresholds t_l.
    signs : ndarray of shape (k,)
        s_l, which is 1 or -1.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.
    """

    directions: Float64s
    places: Float64s
    signs: Float64s
    leading: Ints
    contributions: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "halfspace"

    def _weights(self, values: Float64s) -> Float64s:
        return np.where(values >= self.places, self.signs, -self.signs)

    def _weight_steps(self) -> Program:
        # A step includes its upper edge, and the upper side its threshold: the edge is the number just below that.
        edges = np.column_stack([np.full(self.n_classes, -np.inf), np.nextafter(self.places, -np.inf)])
        heights = np.column_stack([-self.signs, self.signs])
        return (Lookup(edges.ravel(), heights.ravel(), 2 * np.arange(self.n_classes + 1)),)

    def state(self) -> State:
        """Directions, thresholds, signs and contributions."""
        return {
            "directions": self.directions,
            "places": self.places,
            "signs": self.signs,
            "leading": self.leading,
            "contributions": self.contributions,
        }

    @classmethod
    def from_state(
        cls, state: State, n_classes: int, class_names: tuple[str, ...] | None
    ) -> "HalfspaceWitness":
        """Rebuild from `state`."""
        return cls(
            state["directions"],
            state["places"],
            state["signs"],
            state["leading"],
            state["contributions"],
            n_classes,
            class_names,
        )
