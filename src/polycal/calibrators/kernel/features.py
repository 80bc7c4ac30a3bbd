"""Features of the kernel calibrator, and how much each of their weights is penalised."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Float64s, Floats
from polycal.calibrators.kernel import tuning
from polycal.kernels.kernels import Gaussian, median_distance
from polycal.sample import Sample, row_blocks, row_lots
from polycal.steps import Exp, InBlocks, Linear, Log, Program, Sum, gaussian_exponents

# Directions of the landmarks' span with a smaller part of the largest eigenvalue are rounding.
_NEGLIGIBLE = 1e-6
# Makes the draw of the landmarks another one than that of the folds.
_PURPOSE = 1
# Arrays as wide as the landmarks that predicting holds at a time.
_ARRAYS = 4

# What features are of: the baseline q, or the input at the baseline's temperature.
Source = Literal["baseline", "input"]


class Features(Protocol):
    """A map of predictions to numbers that a regression is linear in."""

    @property
    def source(self) -> Source:
        """What they are of."""

    @property
    def kind(self) -> str:
        """The name of their kind."""

    @property
    def n_landmarks(self) -> int:
        """How many predictions of the calibration data they compare with."""

    def of(self, log_proba: Floats) -> Floats:
        """The features of each row, from log q: first 1 and those of each class, with the class's probability."""

    def penalty(self, n_classes: int) -> Floats:
        """Relative penalties, of shape (n_features, k)."""

    def steps(self, weight: Float64s) -> Program:
        """The features times weights, as a program from q."""


@dataclass(frozen=True)
class KernelFeatures:
    """``[1, q, log(max(q, floor) / floor) / log(1 / floor)]`` of predictions q: all within [0, 1].

    Attributes
    ----------
    floor : float
        Smaller probabilities are not told apart.
    bias, own_proba, own_log : float
        Relative penalties of the weights that act within a class; all others have 1.
    source : {"baseline", "input"}
        What q is.
    """

    floor: float
    bias: float
    own_proba: float
    own_log: float
    source: Source
    n_landmarks: ClassVar[int] = 0

    @property
    def kind(self) -> str:
        """That of what they are of."""
        return self.source

    def of(self, log_proba: Floats) -> Floats:
        """The features of each row, from log q."""
        n, k = log_proba.shape
        out = np.empty((n, 1 + 2 * k), dtype=log_proba.dtype)
        out[:, 0] = 1.0
        np.exp(log_proba, out=out[:, 1 : k + 1])
        lowest = np.log(self.floor)
        logs = np.maximum(log_proba, float(lowest), out=out[:, k + 1 :])
        logs *= float(-1.0 / lowest)
        logs += 1.0
        # Exactly 0 at the floor, whatever the rounding.
        logs[log_proba <= float(lowest)] = 0.0
        return out

    def penalty(self, n_classes: int) -> Floats:
        """Relative penalties, of shape (1 + 2k, k): what a class says of itself is cheap."""
        out = np.ones((1 + 2 * n_classes, n_classes), dtype=np.float32)
        classes = np.arange(n_classes)
        out[0] = self.bias
        out[1 + classes, classes] = self.own_proba
        out[1 + n_classes + classes, classes] = self.own_log
        return out

    def steps(self, weight: Float64s) -> Program:
        """The features times weights, as a program from q."""
        k = weight.shape[1]
        by_proba, by_log = weight[1 : k + 1], weight[k + 1 :]
        linear = Linear(by_proba, weight[0])
        logs = Linear(by_log / -np.log(self.floor), by_log.sum(axis=0))
        return (Sum(((linear,), (Log(self.floor), logs))),)


def features_of_baseline(n_classes: int) -> KernelFeatures:
    """Of the baseline: smaller probabilities than the floor are noise there."""
    floor = 1e-4 if n_classes <= tuning.MANY_CLASSES else 1e-3
    return KernelFeatures(floor, bias=0.1, own_proba=0.1, own_log=0.01, source="baseline")


# Of the input, at the baseline's temperature. Where the baseline hides small probabilities behind a background, these
# tell them apart, and what they say of the class itself is little penalised: the baseline no longer says it.
FEATURES_OF_INPUT = KernelFeatures(1e-20, bias=0.001, own_proba=0.1, own_log=0.003, source="input")


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
    source: ClassVar[Source] = "input"
    kind: ClassVar[str] = "landmarks"

    @property
    def n_landmarks(self) -> int:
        """How many predictions of the calibration data they compare with."""
        return len(self.landmarks)

    def of(self, log_proba: Floats) -> Floats:
        """The features of each row, from log q."""
        plain = self.linear.of(log_proba)
        n, width = plain.shape
        out = np.empty((n, width + self.whitening.shape[1]), dtype=plain.dtype)
        out[:, :width] = plain

        whitening = self.whitening.astype(out.dtype)

        def fill(rows: slice) -> None:
            # In double precision: single would not tell predictions apart that lie close together.
            likeness = self.kernel.block(_floored(log_proba[rows]), self.landmarks)
            np.matmul(likeness.astype(out.dtype), whitening, out=out[rows, width:])

        map_threads(fill, row_blocks(n, self.landmarks.shape[0]))
        return out

    def penalty(self, n_classes: int) -> Floats:
        """Relative penalties, of shape (n_features, k)."""
        likeness = np.full((self.whitening.shape[1], n_classes), tuning.LANDMARK_PENALTY, dtype=np.float32)
        return np.concatenate([self.linear.penalty(n_classes), likeness])

    def steps(self, weight: Float64s) -> Program:
        """The features times weights, as a program from q."""
        width = 1 + 2 * weight.shape[1]
        k = self.landmarks.shape[1]
        largest = float(k * np.log(tuning.LANDMARK_FLOOR) ** 2)
        bell = (
            Log(tuning.LANDMARK_FLOOR),
            *gaussian_exponents(self.landmarks, float(self.kernel.scale), largest),
            Exp(),
            Linear(self.whitening @ weight[width:], np.zeros(k)),
        )
        bend = InBlocks((bell,), float(_ARRAYS * self.n_landmarks))
        return (Sum((self.linear.steps(weight[:width]), (bend,))),)


def fit_landmarks(sample: Sample, log_proba: Floats, seed: int, most: int) -> LandmarkFeatures:
    """Landmarks are rows chosen by lot, at most so many; the kernel's scale is a part of their median distance."""
    n = sample.n_samples
    most = min(most, tuning.MOST_NUMBERS // sample.n_classes, tuning.MOST_CELLS // n)
    n_landmarks = max(1, min(most, n // 2))
    draw = int(np.random.SeedSequence([seed, _PURPOSE]).generate_state(1)[0])
    rows = np.argsort(row_lots(sample, draw), kind="stable")[:n_landmarks]
    landmarks = _floored(log_proba[np.sort(rows)])
    kernel = Gaussian(tuning.LANDMARK_WIDTH * median_distance(landmarks))
    return LandmarkFeatures(
        FEATURES_OF_INPUT, landmarks, kernel, _whitening(kernel.block(landmarks, landmarks))
    )


def _floored(log_proba: Floats) -> Float64s:
    """Logarithms of predictions, none below that of the floor."""
    return np.maximum(log_proba, np.log(tuning.LANDMARK_FLOOR), dtype=np.float64)


def _whitening(gram: Floats) -> Float64s:
    """A root of the inverse of the kernel matrix, the directions of largest eigenvalue first."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _NEGLIGIBLE * values[-1]
    root: Float64s = vectors[:, kept] / np.sqrt(values[kept])
    return root[:, ::-1]
