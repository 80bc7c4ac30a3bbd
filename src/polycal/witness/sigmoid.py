"""Witnesses that weigh each class by a sigmoid of a weighted sum of the probabilities."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.steps import Affine, Program, Sigmoid
from polycal.witness._base import State
from polycal.witness._directions import DirectionsWitness
from polycal.witness._translation import scaled


@dataclass(frozen=True, eq=False, repr=False)
class SigmoidWitness(DirectionsWitness):
    """w_l(v) = tanh(L <a_l, v> + b_l) for each class l.

    Attributes
    ----------
    slope : float
        L.
    directions : ndarray of shape (k, k)
        a_l in row l, with entries in [-1, 1].
    offsets : ndarray of shape (k,)
        b_l.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.
    """

    slope: float
    directions: Float64s
    offsets: Float64s
    leading: Ints
    contributions: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "sigmoid"

    def _weights(self, values: Float64s) -> Float64s:
        return np.tanh(self.slope * values + self.offsets)

    def _weight_steps(self) -> Program:
        # tanh(x) = 2 sigmoid(2 x) - 1.
        doubled = Affine(np.array([2.0 * self.slope]), 2.0 * self.offsets)
        return doubled, Sigmoid(), scaled(2.0, -1.0)

    def restricted(self, classes: Ints) -> "SigmoidWitness":
        """The same on some classes, tanh(0) = 0 on the others."""
        kept = np.isin(np.arange(self.n_classes), classes).astype(np.float64)
        return replace(
            self,
            directions=kept[:, None] * self.directions,
            offsets=kept * self.offsets,
            contributions=kept * self.contributions,
        )

    def state(self) -> State:
        """Slope, directions, offsets and contributions."""
        return {
            "slope": np.array(self.slope),
            "directions": self.directions,
            "offsets": self.offsets,
            "leading": self.leading,
            "contributions": self.contributions,
        }

    @classmethod
    def from_state(
        cls, state: State, n_classes: int, class_names: tuple[str, ...] | None
    ) -> "SigmoidWitness":
        """Rebuild from `state`."""
        return cls(
            float(state["slope"]),
            state["directions"],
            state["offsets"],
            state["leading"],
            state["contributions"],
            n_classes,
            class_names,
        )
