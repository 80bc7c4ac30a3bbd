"""Features of the kernel calibrator that bend: likeness to predictions of the calibration data."""

from dataclasses import dataclass

import numpy as np

from polycal._split import split_rows
from polycal._typing import Float64s, Floats
from polycal.calibrators._kernel_features import FEATURES_OF_INPUT, KernelFeatures
from polycal.kernels.radial import Gaussian, median_distance
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Exp, InBlocks, Linear, Log, Program, Sum, squared_distances

# Smaller probabilities are not told apart by the distance.
_FLOOR = 1e-10
# The kernel's scale, in units of the median distance: landmarks see a neighbourhood, not all rows.
_WIDTH = 0.1**0.5
# More landmarks gain little; and the features of all rows must fit into memory.
_MOST_LANDMARKS, _MOST_CELLS = 1000, 1 << 27
# Relative ridge on likeness.
_PENALTY = 0.3
# Directions of the landmarks' span with a smaller part of the largest eigenvalue are rounding.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """`KernelFeatures`, and the Nystrom features of a Gaussian kernel on logarithms.

    Attributes
    ----------
    linear : KernelFeatures
        The features that come first.
    landmarks : ndarray of shape (n_landmarks, n_classes)
        Predictions: logarithms, each divided by that of the floor.
    kernel : Gaussian
        On those logarithms.
    whitening : ndarray of shape (n_landmarks, n_directions)
        Makes the features' inner products the kernel's, on the landmarks.
    """

    linear: KernelFeatures
    landmarks: Floats
    kernel: Gaussian
    whitening: Floats

    def of(self, log_proba: Floats) -> Floats:
        """The features of each row, from log q."""
        plain = self.linear.of(log_proba)
        n, width = plain.shape
        out = np.empty((n, width + self.whitening.shape[1]), dtype=plain.dtype)
        out[:, :width] = plain
        for rows in row_blocks(n, self.landmarks.shape[0]):
            out[rows, width:] = self.kernel.block(_places(log_proba[rows]), self.landmarks) @ self.whitening
        return out

    def penalty(self, n_classes: int) -> Floats:
        """Relative weights of the ridge, of shape (n_features, k)."""
        likeness = np.full((self.whitening.shape[1], n_classes), _PENALTY, dtype=np.float32)
        return np.concatenate([self.linear.penalty(n_classes), likeness])

    def steps(self, weight: Float64s) -> Program:
        """The features times weights, as a program from q."""
        width = 1 + 2 * weight.shape[1]
        points: Float64s = self.landmarks.astype(np.float64)
        by_likeness = self.whitening.astype(np.float64) @ weight[width:]
        bell = (
            Log(_FLOOR),
            Affine(np.array([-1.0 / np.log(_FLOOR)]), np.zeros(1)),
            *squared_distances(points, float(self.kernel.scale), float(points.shape[1])),
            Affine(np.array([-0.5]), np.zeros(1)),
            Exp(),
            Linear(by_likeness, np.zeros(weight.shape[1])),
        )
        bend = InBlocks((bell,), float(points.shape[0]))
        return (Sum((self.linear.steps(weight[:width]), (bend,))),)


def fit_landmarks(sample: Sample, log_proba: Floats, seed: int) -> LandmarkFeatures:
    """Landmarks are rows chosen at random; the kernel's scale is a part of their median distance."""
    n = sample.n_samples
    n_landmarks = max(1, min(_MOST_LANDMARKS, n // 2, _MOST_CELLS // n))
    rows = split_rows(sample, (n_landmarks, n - n_landmarks), seed)[0]
    landmarks = _places(log_proba[rows])
    kernel = Gaussian(_WIDTH * median_distance(landmarks))
    exact = landmarks.astype(np.float64)
    whitening = _whitening(kernel.block(exact, exact))
    return LandmarkFeatures(FEATURES_OF_INPUT, landmarks, kernel, whitening.astype(landmarks.dtype))


def _places(log_proba: Floats) -> Floats:
    """Logarithms as parts of that of the floor: between -1 and 0."""
    lowest = float(np.log(_FLOOR))
    places: Floats = np.maximum(log_proba, lowest) / -lowest
    return places


def _whitening(gram: Floats) -> Floats:
    """A root of the inverse of the kernel matrix, the directions of largest eigenvalue first."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _NEGLIGIBLE * values[-1]
    root: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return root[:, ::-1]
