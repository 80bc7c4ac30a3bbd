"""Witnesses made of the decisions that some losses call for: one weight for each action."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.steps import Program, Top
from polycal.witness._base import State, Witness
from polycal.witness._directions import signed_names
from polycal.witness._translation import linear


@dataclass(frozen=True, eq=False, repr=False)
class DecisionWitness(Witness):
    """w(v) = g_a with a the action of least expected loss ``<r_a, v>``, the first of equals.

    Attributes
    ----------
    losses : ndarray of shape (n_actions, k)
        r_a in row a: the loss of the action for each label.
    weights : ndarray of shape (n_actions, k)
        g_a in row a, of Euclidean length at most 1: which classes come too often (positive) or too rarely
        (negative) where that action is best.
    contributions : ndarray of shape (n_actions,)
        ``E <y - v, w(v)>`` over the rows that choose each action, on the sample the witness was found on.
    """

    losses: Float64s
    weights: Float64s
    contributions: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "decision"

    def actions(self, proba: Floats) -> Ints:
        """The action chosen at each prediction."""
        chosen: Ints = np.argmin(proba.astype(np.float64, copy=False) @ self.losses.T, axis=1)
        return chosen

    def evaluate(self, proba: Floats) -> Float64s:
        """The weight of the action chosen."""
        return self.weights[self.actions(proba)]

    def describe(self) -> str:
        """The actions that contribute most, and the classes off most where they are best."""
        order = np.argsort(-self.contributions, kind="stable")
        order = order[self.contributions[order] > 0]
        if order.size == 0:
            return "nothing found"
        parts = [f"where action {a} is best {self._weight_words(self.weights[a])}" for a in order[:3]]
        more = [f"{order.size - 3} more actions"] if order.size > 3 else []
        return "; ".join(parts + more)

    def _weight_words(self, weight: Float64s) -> str:
        """Classes that come too often (+) or too rarely (-)."""
        return signed_names(weight, np.argsort(-np.abs(weight), kind="stable")[:3], self.name)

    def restricted(self, classes: Ints) -> "DecisionWitness":
        """The same on some classes, 0 on the others, each weight scaled to its old length."""
        weights = np.where(np.isin(np.arange(self.n_classes), classes), self.weights, 0.0)
        before, after = (np.linalg.norm(w, axis=1, keepdims=True) for w in (self.weights, weights))
        # A weight is the mean residual scaled, so cutting it down cuts its contribution in proportion.
        contributions = self.contributions * (after / np.maximum(before, 1e-300))[:, 0]
        scaled = np.where(after > 0, weights * (before / np.maximum(after, 1e-300)), 0.0)
        return replace(self, weights=scaled, contributions=contributions)

    def to_steps(self) -> Program:
        """Which action has the least loss, and its weight."""
        return linear(-self.losses.T), Top(), linear(self.weights)

    def state(self) -> State:
        """Losses, weights and contributions."""
        return {"losses": self.losses, "weights": self.weights, "contributions": self.contributions}

    @classmethod
    def from_state(
        cls, state: State, n_classes: int, class_names: tuple[str, ...] | None
    ) -> "DecisionWitness":
        """Rebuild from `state`."""
        return cls(state["losses"], state["weights"], state["contributions"], n_classes, class_names)
