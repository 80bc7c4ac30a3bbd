"""What witnesses share that look at each class through one weighted sum of the probabilities."""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.steps import Program
from polycal.witness._base import Witness
from polycal.witness._translation import linear


class DirectionsWitness(Witness):
    """w_l(v) = a function of ``<a_l, v>``, with a direction a_l for each class l.

    Attributes
    ----------
    directions : ndarray of shape (k, k)
        a_l in row l.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.
    """

    directions: Float64s
    leading: Ints
    contributions: Float64s

    @abstractmethod
    def _weights(self, values: Float64s) -> Float64s:
        """The weights (m, k) from the projected values (m, k)."""

    @abstractmethod
    def _weight_steps(self) -> Program:
        """`_weights` as steps."""

    def to_steps(self) -> Program:
        """The weighted sums, and the function of each class at its own."""
        return linear(self.directions.T), *self._weight_steps()

    def evaluate(self, proba: Floats) -> Float64s:
        """The function of each class at its own weighted sum."""
        return self._weights(proba.astype(np.float64, copy=False) @ self.directions.T)

    def describe(self) -> str:
        """The classes that contribute most, each with the classes that its weight looks at."""
        order = np.argsort(-self.contributions, kind="stable")
        order = order[self.contributions[order] > 0]
        if order.size == 0:
            return "nothing found"
        parts = [f"{self.name(int(c))} by {self._direction_words(c)}" for c in order[:3]]
        more = [f"{order.size - 3} more classes"] if order.size > 3 else []
        return "weighs " + "; ".join(parts + more)

    def _direction_words(self, label: int) -> str:
        excess = excesses(self.directions[label][None])[0]
        return signed_names(excess, self.leading[label], self.name) or "a constant"


def excesses(directions: Float64s) -> Float64s:
    """Each row less its median: predictions sum to 1, so only differences between entries matter."""
    return directions - np.median(directions, axis=1, keepdims=True)


def signed_names(amounts: Float64s, order: Ints, name: Callable[[int], str]) -> str:
    """The classes in this order with the signs of their amounts, without those of amount 0."""
    signs = {c: "+" if amounts[c] > 0 else "-" for c in order.tolist() if abs(amounts[c]) > 1e-9}
    return " ".join(f"{sign}{name(c)}" for c, sign in signs.items())
