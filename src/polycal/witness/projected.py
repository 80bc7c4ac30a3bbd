"""Witnesses that weigh each class by a 1-Lipschitz function of a weighted sum of the probabilities."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.functions import LipschitzFunction, ScalarFunction
from polycal.steps import Program
from polycal.witness._base import State
from polycal.witness._directions import DirectionsWitness
from polycal.witness._translation import function_steps
from polycal.witness.question import pack_functions, unpack_functions

# The weight of a class that a witness leaves out.
NOWHERE: ScalarFunction = LipschitzFunction(np.zeros(1), np.zeros(1))


@dataclass(frozen=True, eq=False, repr=False)
class ProjectedWitness(DirectionsWitness):
    """w_l(v) = phi_l(<a_l, v>) for each class l.

    Attributes
    ----------
    directions : ndarray of shape (k, k)
        a_l in row l, with entries in [-1, 1].
    phis : tuple of LipschitzFunction
        One function for each class.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.
    """

    directions: Float64s
    phis: tuple[ScalarFunction, ...]
    leading: Ints
    contributions: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "projected"

    def _weights(self, values: Float64s) -> Float64s:
        out = np.empty(values.shape)
        for c, phi in enumerate(self.phis):
            out[:, c] = phi(values[:, c])
        return out

    def _weight_steps(self) -> Program:
        return function_steps(self.phis)

    def restricted(self, classes: Ints) -> "ProjectedWitness":
        """The same on some classes, 0 on the others."""
        phis = [NOWHERE] * self.n_classes
        contributions = np.zeros(self.n_classes)
        for c in classes:
            phis[c], contributions[c] = self.phis[c], self.contributions[c]
        return replace(self, phis=tuple(phis), contributions=contributions)

    def state(self) -> State:
        """Directions, functions and contributions."""
        return {
            "directions": self.directions,
            "leading": self.leading,
            "contributions": self.contributions,
            **pack_functions(self.phis),
        }

    @classmethod
    def from_state(
        cls, state: State, n_classes: int, class_names: tuple[str, ...] | None
    ) -> "ProjectedWitness":
        """Rebuild from `state`."""
        return cls(
            state["directions"],
            unpack_functions(state),
            state["leading"],
            state["contributions"],
            n_classes,
            class_names,
        )
