"""Sums of residuals weighed by likeness to landmarks, and the witness in the span of the landmarks."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.kernels._base import Kernel
from polycal.kernels.ball import ball_scale
from polycal.sample import Sample

# Added to the diagonal, relative to the kernel's bound: landmarks may be (nearly) equal.
_RIDGE = 1e-5
# As for the kernel auditor: a norm this small beside the largest it could be is rounding.
_RELATIVE_ZERO = 1e-8


@dataclass(eq=False)
class LandmarkSums:
    """``sum_i ker(u_j, v_i) z_i^l`` of shape (n_landmarks, k), and ``sum_i |z_i^l|``."""

    matrix: Float64s
    absolute: Float64s

    @classmethod
    def zero(cls, n_landmarks: int, n_classes: int) -> "LandmarkSums":
        """No rows."""
        return cls(np.zeros((n_landmarks, n_classes)), np.zeros(n_classes))

    def __add__(self, other: "LandmarkSums") -> "LandmarkSums":
        return LandmarkSums(self.matrix + other.matrix, self.absolute + other.absolute)

    def __iadd__(self, other: "LandmarkSums") -> "LandmarkSums":
        self.matrix += other.matrix
        self.absolute += other.absolute
        return self


def landmark_coefficients(kernel: Kernel, landmarks: Floats, sums: LandmarkSums) -> tuple[Float64s, Float64s]:
    """``(K + e)^-1 A_l / (lambda_l s)`` and lambda, its norm times s (or a little more)."""
    from scipy.linalg import cholesky, solve_triangular  # noqa: PLC0415 - slow to import

    points = landmarks.astype(np.float64)
    likeness = kernel.block(points, points)
    likeness[np.diag_indices_from(likeness)] += _RIDGE * kernel.bound
    factor = cholesky(likeness, lower=True, overwrite_a=True, check_finite=False)
    features = solve_triangular(factor, sums.matrix, lower=True, check_finite=False)
    forms = np.einsum("ij,ij->j", features, features)
    forms[forms <= _RELATIVE_ZERO * sums.absolute**2 * kernel.bound] = 0.0
    norms: Float64s = np.sqrt(forms)
    features *= ball_scale(kernel, norms)
    return solve_triangular(factor, features, lower=True, trans="T", check_finite=False), norms


def choose_landmarks(sample: Sample, n_random: int = 400) -> Floats:
    """The mean prediction of the rows of each most likely class, and the first ``n_random`` rows, in float32.

    With many classes the means matter most: predictions gather near the corners, and rows drawn at random miss
    most of a thousand of them.
    """
    top = np.argmax(sample.proba, axis=1)
    order = np.argsort(top, kind="stable")
    alike = np.split(order, np.flatnonzero(np.diff(top[order])) + 1)
    means = [sample.proba[rows].mean(axis=0, dtype=np.float64) for rows in alike]
    return np.concatenate([means, sample.proba[:n_random]]).astype(np.float32)
