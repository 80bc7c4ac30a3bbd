"""Features of the kernel calibrator that bend: likeness to predictions of the calibration data."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._kernel_features import FEATURES_OF_INPUT, KernelFeatures
from polycal.kernels.kernels import Gaussian, median_distance
from polycal.sample import Sample, row_blocks, split_rows
from polycal.steps import Exp, InBlocks, Linear, Log, Program, Sum, gaussian_exponents

# Smaller probabilities are not told apart by the distance.
_FLOOR = 1e-10
# The kernel's scale, in units of the median distance: landmarks see a neighbourhood, not all rows.
_WIDTH = 0.1**0.5
# More landmarks gain little; with many classes, predicting would be slow; and the features of all rows must fit into
# memory.
_MOST_LANDMARKS, _MOST_NUMBERS, _MOST_CELLS = 1000, 60_000, 1 << 26
# Relative ridge on likeness.
_PENALTY = 0.3
# Directions of the landmarks' span with a smaller part of the largest eigenvalue are rounding.
_NEGLIGIBLE = 1e-6
# Makes the draw of the landmarks another one than that of the folds.
_PURPOSE = 1
# Arrays as wide as the landmarks that predicting holds at a time.
_ARRAYS = 4


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """`KernelFeatures`, and the Nystrom features of a Gaussian kernel on logarithms.

    Attributes
    ----------
    linear : KernelFeatures
        The features that come first.
    landmarks : ndarray of shape (n_landmarks, n_classes)
        Logarithms of predictions, floored.
    kernel : Gaussian
        On those.
    whitening : ndarray of shape (n_landmarks, n_directions)
        Makes the features' inner products the kernel's, on the landmarks.
    """

    linear: KernelFeatures
    landmarks: Float64s
    kernel: Gaussian
    whitening: Float64s

    def of(self, log_proba: Floats) -> Floats:
        """The features of each row, from log q."""
        plain = self.linear.of(log_proba)
        n, width = plain.shape
        out = np.empty((n, width + self.whitening.shape[1]), dtype=plain.dtype)
        out[:, :width] = plain
        for rows in row_blocks(n, self.landmarks.shape[0]):
            # In double precision: single would not tell predictions apart that lie close together.
            out[rows, width:] = self.kernel.block(_floored(log_proba[rows]), self.landmarks) @ self.whitening
        return out

    def penalty(self, n_classes: int) -> Floats:
        """Relative weights of the ridge, of shape (n_features, k)."""
        likeness = np.full((self.whitening.shape[1], n_classes), _PENALTY, dtype=np.float32)
        return np.concatenate([self.linear.penalty(n_classes), likeness])

    def steps(self, weight: Float64s) -> Program:
        """The features times weights, as a program from q."""
        width = 1 + 2 * weight.shape[1]
        n_landmarks, k = self.landmarks.shape
        largest = float(k * np.log(_FLOOR) ** 2)
        bell = (
            Log(_FLOOR),
            *gaussian_exponents(self.landmarks, float(self.kernel.scale), largest),
            Exp(),
            Linear(self.whitening @ weight[width:], np.zeros(k)),
        )
        bend = InBlocks((bell,), float(_ARRAYS * n_landmarks))
        return (Sum((self.linear.steps(weight[:width]), (bend,))),)


def fit_landmarks(sample: Sample, log_proba: Floats, seed: int) -> LandmarkFeatures:
    """Landmarks are rows chosen at random; the kernel's scale is a part of their median distance."""
    n = sample.n_samples
    most = min(_MOST_LANDMARKS, _MOST_NUMBERS // sample.n_classes, _MOST_CELLS // n)
    n_landmarks = max(1, min(most, n // 2))
    draw = int(np.random.SeedSequence([seed, _PURPOSE]).generate_state(1)[0])
    rows = split_rows(sample, (n_landmarks, n - n_landmarks), draw)[0]
    landmarks = _floored(log_proba[rows])
    kernel = Gaussian(_WIDTH * median_distance(landmarks))
    return LandmarkFeatures(
        FEATURES_OF_INPUT, landmarks, kernel, _whitening(kernel.block(landmarks, landmarks))
    )


def _floored(log_proba: Floats) -> Float64s:
    """Logarithms of predictions, none below that of the floor."""
    return np.maximum(log_proba, np.log(_FLOOR), dtype=np.float64)


def _whitening(gram: Floats) -> Float64s:
    """A root of the inverse of the kernel matrix, the directions of largest eigenvalue first."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _NEGLIGIBLE * values[-1]
    root: Float64s = vectors[:, kept] / np.sqrt(values[kept])
    return root[:, ::-1]
