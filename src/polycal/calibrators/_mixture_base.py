"""The base of the kernel calibrator: temperature scaling, mixed with a little background."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._likelihood import log_proba, minimise, total_weight, working_dtype
from polycal.calibrators.temperature import fit_inverse_temperature
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Log, Program, Softmax, run

# A weak prior on the three numbers (log 1/T, and the log odds of the background and of its uniform part): centre,
# and width. It counts as one row, so it matters for a handful of rows only.
_CENTRE = np.array([0.0, -5.0, 0.0])
_WIDTH = np.array([1.0, 8.0, 3.0])


@dataclass(frozen=True, eq=False)
class MixtureBase:
    r"""``q = (1 - e) softmax(log v / T) + e background``, the background a mixture of class frequencies and uniform.

    The background keeps every class possible: exact zeros in the input stop being infinite losses.

    Attributes
    ----------
    temperature : float
        T.
    background : ndarray of shape (n_classes,)
        What is added, of sum ``e``.
    """

    temperature: float
    background: Float64s

    @property
    def hidden(self) -> float:
        """The weight of the background, behind which smaller probabilities cannot be told apart."""
        return float(self.background.sum())

    def tempering_steps(self) -> Program:
        """The map from v to ``softmax(log v / T)``."""
        return Log(), Affine(np.array([1.0 / self.temperature]), np.zeros(1)), Softmax()

    def mixing_steps(self) -> Program:
        """The map from there to q."""
        return (Affine(np.array([1.0 - self.hidden]), self.background),)

    def log_proba(self, sample: Sample) -> Floats:
        """Log q of each row."""
        return _log_of((*self.tempering_steps(), *self.mixing_steps()), sample)

    def log_tempered(self, sample: Sample) -> Floats:
        """Log of each row at the temperature; minus infinity where it is lost to rounding."""
        return _log_of(self.tempering_steps(), sample)


def _log_of(steps: Program, sample: Sample) -> Floats:
    """The logarithm of what a program makes of each row."""
    out: Floats = np.empty(sample.proba.shape, dtype=working_dtype(sample))
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        with np.errstate(divide="ignore"):
            out[rows] = np.log(run(steps, sample.proba[rows].astype(np.float64)))
    return out


def fit_mixture_base(sample: Sample) -> MixtureBase:
    """The base of least log loss (with the weak prior): three numbers, by L-BFGS from temperature scaling."""
    logs, k, total = log_proba(sample), sample.n_classes, total_weight(sample)
    counts = np.bincount(sample.labels, total * sample.mass, minlength=k).astype(np.float64)
    frequency: Float64s = (counts + 1.0) / (total + k)
    start = np.array([np.log(fit_inverse_temperature(sample, logs)), -5.0, 0.0])
    logs = logs.astype(working_dtype(sample))
    logs -= logs.max(axis=1, keepdims=True)

    def objective(point: Float64s) -> tuple[float, Float64s]:
        loss, gradient = _loss(sample, logs, frequency, point)
        shift = (point - _CENTRE) / _WIDTH
        return loss + 0.5 * float(shift @ shift) / total, gradient + shift / _WIDTH / total

    point = minimise(objective, start, _WIDTH)
    mixed, uniform = _sigmoid(point[1]), _sigmoid(point[2])
    return MixtureBase(float(np.exp(-point[0])), mixed * ((1.0 - uniform) * frequency + uniform / k))


def _loss(sample: Sample, logs: Floats, frequency: Float64s, point: Float64s) -> tuple[float, Float64s]:
    """Log loss of the mixture, and its gradient by the three numbers."""
    inverse, mixed, uniform = np.exp(point[0]), _sigmoid(point[1]), _sigmoid(point[2])
    k = frequency.size
    loss, gradient, mass = 0.0, np.zeros(3), sample.mass
    for rows in row_blocks(*logs.shape):
        block, labels, weight = logs[rows], sample.labels[rows], mass[rows]
        tilted = np.exp(float(inverse) * block)
        total = np.einsum("ij->i", tilted)
        at_label = block[np.arange(labels.size), labels]
        scaled = tilted[np.arange(labels.size), labels].astype(np.float64) / total
        mean_log = np.einsum("ij,ij->i", tilted, block) / total
        background = (1.0 - uniform) * frequency[labels] + uniform / k
        proba = (1.0 - mixed) * scaled + mixed * background
        loss -= float(weight @ np.log(proba))
        weight = weight / proba
        gradient[0] -= float(weight @ (scaled * (at_label - mean_log))) * (1.0 - mixed) * inverse
        gradient[1] -= float(weight @ (background - scaled)) * mixed * (1.0 - mixed)
        gradient[2] -= float(weight @ (1.0 / k - frequency[labels])) * mixed * uniform * (1.0 - uniform)
    return loss, gradient


def _sigmoid(value: float) -> float:
    # Beyond that exp overflows, and the result is 0 to all digits.
    return float(1.0 / (1.0 + np.exp(min(-value, 700.0))))
