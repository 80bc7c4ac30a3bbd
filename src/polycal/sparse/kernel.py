"""Witnesses from a reproducing kernel that read lists of classes."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.families.auditor import AMPLIFICATIONS, amplified_gains
from polycal.families.witness import Witness
from polycal.kernels.kernels import Kernel
from polycal.sparse._gate import sparse_sample
from polycal.sparse._lists import Landmarks, known_residual
from polycal.sparse._sample import SparseSample, sums_at
from polycal.storage.rules import Array, Part, Real, expect

# Coefficients and amplification beyond this could overflow in single precision.
_STEEPEST = 1e20


@dataclass(frozen=True, eq=False, repr=False)
class ListKernelWitness(Witness):
    r"""w_l(v) = c sum_j a_jl ker(u_j, t), clipped to [-1, 1], where t is the list that is kept of v.

    Classes that a list leaves out share one weight, that of a class "none of the listed". So the correlation of
    a row follows from its list, whatever the rest is like:
    :math:`\langle y - v, w \rangle = \sum_{l \in t} (y_l - v_l) w_l + ([\text{label not in } t] - \text{rest}) w_{k}`.

    Attributes
    ----------
    kernel : Kernel
        The likeness of two lists.
    landmarks : Landmarks
        The lists u_j.
    coefficients : ndarray of shape (n_classes + 1, n_landmarks)
        a_jl; the last row is that of all classes not listed.
    strengths : ndarray of shape (n_classes + 1,)
        What each class adds to the correlation on the rows it was found on, with c = 1.
    amplification : float
        c, at least 1.
    """

    kernel: Annotated[Kernel, Part((Kernel,))]
    landmarks: Annotated[Landmarks, Part((Landmarks,))]
    coefficients: Annotated[Floats, Array("floats", "n_classes+1 size", low=-_STEEPEST, high=_STEEPEST)]
    strengths: Annotated[Float64s, Array("float64", "n_classes+1")]
    amplification: Annotated[float, Real(low=1, high=_STEEPEST)]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "list-kernel"

    def _check(self) -> None:
        super()._check()
        agree = (
            self.landmarks.n_classes == self.n_classes and self.landmarks.size == self.coefficients.shape[1]
        )
        expect(agree, "the landmarks must be of the same classes and number")

    def evaluate(self, proba: Floats) -> Float64s:
        """At full predictions, which are lists without a rest."""
        values: Float64s = self.landmarks.dense_likeness(self.kernel, proba) @ self.coefficients[:-1].T
        values *= self.amplification
        return np.clip(values, -1.0, 1.0, out=values)

    def correlations(self, sample: Any) -> Float64s:
        """``<y - v, w(v)>`` of each row of a `SparseSample` (or of a `Sample`)."""
        if not isinstance(sample, SparseSample):
            return super().correlations(sample)
        out = np.empty(sample.n_samples)
        for rows in self.landmarks.blocks(sample):
            part = sample.take(np.arange(rows.start, rows.stop))
            indptr, residual, values = self._entries(part, np.ones(part.n_samples))
            gains = residual * np.clip(self.amplification * values, -1.0, 1.0)
            out[rows] = sums_at(np.repeat(np.arange(part.n_samples), np.diff(indptr)), gains, part.n_samples)
        return out

    def amplified(self, y_true: Any, y_proba: Any, *, sample_weight: Any = None) -> "ListKernelWitness":
        """Choose the amplification c that suits rows which the witness was not found on, and is not judged on.

        Parameters
        ----------
        y_true, y_proba, sample_weight
            As for `polycal.sparse.sparse_sample`.

        Returns
        -------
        ListKernelWitness
        """
        sample = sparse_sample(y_true, y_proba, remainder="anywhere", sample_weight=sample_weight)
        mass, gains = sample.mass, np.zeros(AMPLIFICATIONS.size)
        for rows in self.landmarks.blocks(sample):
            part = sample.take(np.arange(rows.start, rows.stop))
            _, residual, values = self._entries(part, mass[rows])
            gains += amplified_gains(residual[:, None], values[:, None], np.ones(1))
        best = float(AMPLIFICATIONS[np.argmax(gains)]) if gains.max() > 0 else 1.0
        return replace(self, amplification=best)

    def describe(self) -> str:
        """The kernel, and the classes that count most."""
        names = [*(self.name(c) for c in np.argsort(-self.strengths[:-1], kind="stable")[:3].tolist())]
        return f"{self.kernel.describe()} over {self.landmarks.size} lists, strongest for {', '.join(names)}"

    def _entries(self, part: SparseSample, weight: Float64s) -> tuple[Any, Float64s, Float64s]:
        """Row pointers, residuals and values of the witness (before clipping), entry by entry."""
        from polycal._compiled.lists import entry_products  # noqa: PLC0415 - imports numba

        indptr, indices, residual = known_residual(part, weight)
        likeness = self.landmarks.likeness(self.kernel, part)
        return indptr, residual, entry_products(indptr, indices, likeness, self.coefficients)
