"""Witnesses that weigh the residual of one yes/no question by a function of its predicted probability."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.functions import LipschitzFunction, ScalarFunction, StepFunction
from polycal.question import subset_words, top_class
from polycal.sample import Sample, subset_sums
from polycal.steps import Product, Program, Top
from polycal.witness._base import State, Witness
from polycal.witness._translation import function_steps, linear


@dataclass(frozen=True, eq=False, repr=False)
class SubsetWitness(Witness):
    """w(v) = 1_T phi(<1_T, v>): is the label in T?

    Attributes
    ----------
    members : ndarray of int64
        The classes of T, increasing.
    phi : LipschitzFunction or StepFunction
        The weight as a function of the predicted probability of T.
    """

    members: Ints
    phi: ScalarFunction
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "subset"

    @property
    def subset(self) -> list[int] | list[str]:
        """The classes of T: names if known, else indices."""
        if self.class_names is None:
            return [int(c) for c in self.members]
        return [self.class_names[c] for c in self.members]

    def evaluate(self, proba: Floats) -> Float64s:
        """``phi`` of the subset's probability on its members, 0 elsewhere."""
        out = np.zeros(proba.shape)
        out[:, self.members] = self.phi(subset_sums(proba, self.members))[:, None]
        return out

    def correlations(self, sample: Sample) -> Float64s:
        """``<1_T, y - v> phi(<1_T, v>)``, without the ``(n, k)`` values."""
        self._check_classes(sample)
        predicted = sample.subset_proba(self.members)
        return (sample.subset_hits(self.members) - predicted) * self.phi(predicted)

    def describe(self) -> str:
        """The question asked."""
        return subset_words(self.members, self.name)

    def to_steps(self) -> Program:
        """The probability of the subset, ``phi`` of it, and that on the members."""
        is_member = np.isin(np.arange(self.n_classes), self.members).astype(np.float64)
        return linear(is_member[:, None]), *function_steps([self.phi]), linear(is_member[None])

    def state(self) -> State:
        """Members and phi."""
        return {"members": self.members, **pack_functions([self.phi])}

    @classmethod
    def from_state(cls, state: State, n_classes: int, class_names: tuple[str, ...] | None) -> "SubsetWitness":
        """Rebuild from `state`."""
        return cls(state["members"], unpack_functions(state)[0], n_classes, class_names)


@dataclass(frozen=True, eq=False, repr=False)
class TopWitness(Witness):
    """w(v) = phi_l(v_l) e_l with l = argmax v: is the most likely class right?

    Attributes
    ----------
    phis : tuple of LipschitzFunction or StepFunction
        One function for all predicted classes (confidence), or one for each (top-label).
    """

    phis: tuple[ScalarFunction, ...]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "top"

    def evaluate(self, proba: Floats) -> Float64s:
        """``phi`` of the largest probability at the most likely class, 0 elsewhere."""
        top = np.argmax(proba, axis=1)
        rows = np.arange(top.size)
        out = np.zeros(proba.shape)
        out[rows, top] = self._weights(top, proba[rows, top].astype(np.float64))
        return out

    def correlations(self, sample: Sample) -> Float64s:
        """``(1[y = l] - v_l) phi_l(v_l)`` with l = argmax v, without the ``(n, k)`` values."""
        self._check_classes(sample)
        top, confidence = top_class(sample)
        values: Float64s = ((top == sample.labels) - confidence) * self._weights(top, confidence)
        return values

    def _weights(self, top: Ints, confidence: Float64s) -> Float64s:
        if len(self.phis) == 1:
            return self.phis[0](confidence)
        weights = np.zeros(top.size)
        for label in np.unique(top):
            weights[top == label] = self.phis[label](confidence[top == label])
        return weights

    def describe(self) -> str:
        """The question asked."""
        return "is the most likely class right?" + (
            "" if len(self.phis) == 1 else " (for each class it may be)"
        )

    def to_steps(self) -> Program:
        """The function of each class at its own probability, kept where the class is the most likely one."""
        top, k = (Top(),), self.n_classes
        if len(self.phis) > 1:
            return (Product((top, function_steps(self.phis))),)
        confidence = Product(((), top)), linear(np.ones((k, 1)))
        return (Product((top, (*confidence, *function_steps(self.phis)))),)

    def state(self) -> State:
        """The functions."""
        return pack_functions(self.phis)

    @classmethod
    def from_state(cls, state: State, n_classes: int, class_names: tuple[str, ...] | None) -> "TopWitness":
        """Rebuild from `state`."""
        return cls(unpack_functions(state), n_classes, class_names)


def pack_functions(functions: "tuple[ScalarFunction, ...] | list[ScalarFunction]") -> State:
    """Functions of one number as flat arrays: knots, heights, their counts, and whether they are steps."""
    return {
        "knots": np.concatenate([f.knots for f in functions]),
        "heights": np.concatenate([f.heights for f in functions]),
        "n_knots": np.array([f.knots.size for f in functions]),
        "n_heights": np.array([f.heights.size for f in functions]),
        "is_step": np.array([isinstance(f, StepFunction) for f in functions]),
    }


def unpack_functions(state: State) -> tuple[ScalarFunction, ...]:
    """The inverse of `pack_functions`."""
    knots = np.split(state["knots"], np.cumsum(state["n_knots"])[:-1])
    heights = np.split(state["heights"], np.cumsum(state["n_heights"])[:-1])
    return tuple(
        StepFunction(k, h) if step else LipschitzFunction(k, h)
        for k, h, step in zip(knots, heights, state["is_step"], strict=True)
    )
