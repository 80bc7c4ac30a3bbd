"""Witnesses that weigh each class by one monomial of the prediction."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.steps import Linear, Product, Program
from polycal.witness._base import State, Witness


@dataclass(frozen=True, eq=False, repr=False)
class MonomialWitness(Witness):
    """w_l(v) = sign_l * product of v_i over the factors of class l.

    Attributes
    ----------
    factors : ndarray of int64, shape (n_classes, degree)
        The factors' classes, with repeats; -1 where there is none.
    signs : ndarray of float64, shape (n_classes,)
        -1, 0 or 1.
    strengths : ndarray of shape (n_classes,)
        What each class adds to the correlation on the rows it was found on.
    """

    factors: Ints
    signs: Float64s
    strengths: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "monomial"

    def evaluate(self, proba: Floats) -> Float64s:
        """The signed monomials."""
        out = np.tile(self.signs, (proba.shape[0], 1))
        # A last column of ones for the absent factors; float32 may be a little above 1.
        padded = np.minimum(np.concatenate([proba, np.ones((proba.shape[0], 1))], axis=1), 1.0)
        for column in self.factors.T:
            out *= padded[:, column]
        return out

    def describe(self) -> str:
        """The monomials of the classes that count most."""
        strongest = [int(c) for c in np.argsort(-self.strengths, kind="stable")[:3] if self.strengths[c] > 0]
        if not strongest:
            return "no class"
        return ", ".join(f"{self._monomial(c)} for {self.name(c)}" for c in strongest)

    def _monomial(self, c: int) -> str:
        sign = "-" if self.signs[c] < 0 else ""
        names = [f"p({self.name(int(i))})" for i in self.factors[c] if i >= 0]
        return sign + (" ".join(names) or "1")

    def to_steps(self) -> Program:
        """The product of the factors, each chosen by a matrix of zeros and ones."""
        factors = [(_factor(column, self.n_classes),) for column in self.factors.T]
        return (Product((_constants(self.signs), *factors)),)

    def state(self) -> State:
        """Factors, signs and strengths."""
        return {"factors": self.factors, "signs": self.signs, "strengths": self.strengths}

    @classmethod
    def from_state(
        cls, state: State, n_classes: int, class_names: tuple[str, ...] | None
    ) -> "MonomialWitness":
        """Rebuild from `state`."""
        return cls(state["factors"], state["signs"], state["strengths"], n_classes, class_names)


def _constants(values: Float64s) -> Program:
    """The same values for every row."""
    return (Linear(np.zeros((values.size, values.size)), values),)


def _factor(classes: Ints, n_classes: int) -> Linear:
    """The probability of one class for each column; 1 where the class is -1."""
    chosen = (classes == np.arange(n_classes)[:, None]).astype(np.float64)
    return Linear(chosen, (classes < 0).astype(np.float64))
