"""The quadratic penalty of maps with a full matrix."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s

# How much weaker than the entries off the diagonal, whose features are larger and many, the others are held.
_RATIO = 300.0


@dataclass(frozen=True)
class MatrixRidge:
    r"""``off_diagonal/2 sum_{i != j} W_ij^2 + diagonal/2 sum_i (W_ii - mean)^2 + bias/2 |b|^2``.

    The mean of the diagonal is free: it is the inverse of a temperature. Maps and steps are arrays of shape (k + 1, k),
    the bias below the matrix.

    Attributes
    ----------
    off_diagonal, diagonal, bias : float
        Strengths, not negative.
    """

    off_diagonal: float
    diagonal: float
    bias: float

    @classmethod
    def held(cls, off_diagonal: float) -> "MatrixRidge":
        """With the diagonal and the bias held in proportion."""
        return cls(off_diagonal, off_diagonal / _RATIO, off_diagonal / _RATIO)

    def per(self, total: float) -> "MatrixRidge":
        """The penalty that goes with a mean of losses where this one goes with their sum, ``total`` of them."""
        return MatrixRidge(self.off_diagonal / total, self.diagonal / total, self.bias / total)

    def strengths(self, n_classes: int) -> Float64s:
        """The strength for each entry, of shape (k + 1, k)."""
        out = np.full((n_classes + 1, n_classes), self.off_diagonal)
        np.fill_diagonal(out, self.diagonal)
        out[-1] = self.bias
        return out

    def gradient(self, point: Float64s) -> Float64s:
        """The derivative, which is linear: the penalty is half its product with the point."""
        out: Float64s = self.off_diagonal * point
        own = np.diagonal(point)
        np.fill_diagonal(out, self.diagonal * (own - own.mean()))
        out[-1] = self.bias * point[-1]
        return out

    def centred(self, step: Float64s) -> Float64s:
        """The step without what the softmax does not see, a shift of all classes; overwritten.

        Row by row, that is the shift after which the penalty's derivatives sum to 0: no other shift costs less. The
        rows depend on one another by the mean of the diagonal alone, so there is a closed form.
        """
        k = step.shape[1]
        others = (k - 1) * self.off_diagonal
        if others > 0.0:
            slopes = np.einsum("ij->i", self.gradient(step)[:-1])
            shift = (slopes + self.diagonal * slopes.mean() / others) / (others + self.diagonal)
            step[:-1] -= shift[:, None]
        step[-1] -= step[-1].mean()
        return step
