"""Witnesses from a reproducing kernel: weighted sums of likenesses to the predictions seen."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.kernels._base import Kernel
from polycal.kernels.products import kernel_times
from polycal.kernels.saved import unpack_kernel
from polycal.steps import Clip, InBlocks, Program
from polycal.witness._base import State, Witness
from polycal.witness._translation import kernel_steps, linear


@dataclass(frozen=True, eq=False, repr=False)
class KernelWitness(Witness):
    """w_l(v) = c sum_i a_il ker(v_i, v), clipped to [-1, 1].

    Attributes
    ----------
    kernel : Kernel
        The likeness of two predictions.
    points : ndarray of shape (n_points, n_classes)
        The predictions v_i it was found on.
    coefficients : ndarray of shape (n_points, n_classes)
        a_il.
    strengths : ndarray of shape (n_classes,)
        What each class adds to the correlation on the rows it was found on, with c = 1.
    amplification : float
        c, at least 1. With c = 1 the clipping only removes rounding.
    """

    kernel: Kernel
    points: Floats
    coefficients: Floats
    strengths: Float64s
    amplification: float
    n_classes: int
    class_names: tuple[str, ...] | None = None
    kind: ClassVar[str] = "kernel"

    def evaluate(self, proba: Floats) -> Float64s:
        """The weighted sums, in blocks."""
        at = proba.astype(self.points.dtype, copy=False)
        values = kernel_times(self.kernel, self.points, self.coefficients, at=at)
        values *= self.amplification
        return np.clip(values, -1.0, 1.0, out=values)

    def describe(self) -> str:
        """The kernel, and the classes that count most."""
        strongest = [c for c in np.argsort(-self.strengths, kind="stable")[:3] if self.strengths[c] > 0]
        classes = ", ".join(self.name(int(c)) for c in strongest) or "no class"
        return f"{self.kernel.describe()} over {self.points.shape[0]} predictions, strongest for {classes}"

    def to_steps(self) -> Program:
        """The kernel with each of the points, their weighted sum, and the clipping."""
        kernels = kernel_steps(self.kernel, self.points)
        if kernels is None:
            return super().to_steps()
        total = linear(self.coefficients.astype(np.float64) * self.amplification)
        return (InBlocks(((*kernels, total, Clip(-1.0, 1.0)),), float(self.points.shape[0])),)

    def state(self) -> State:
        """Kernel, points, coefficients and scale."""
        return {
            **self.kernel.state(),
            "points": self.points,
            "coefficients": self.coefficients,
            "strengths": self.strengths,
            "amplification": np.array(self.amplification),
        }

    @classmethod
    def from_state(cls, state: State, n_classes: int, class_names: tuple[str, ...] | None) -> "KernelWitness":
        """Rebuild from `state`."""
        return cls(
            unpack_kernel(state),
            state["points"],
            state["coefficients"],
            state["strengths"],
            float(state["amplification"]),
            n_classes,
            class_names,
        )
