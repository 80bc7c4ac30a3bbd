"""The baseline of the kernel calibrator: temperature scaling, mixed with a little background, and bent."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, log_softmax

from polycal._typing import Float64s, Floats
from polycal.calibrators.kernel.tuning import KNOTS, PRIOR_CENTRE, PRIOR_WIDTH
from polycal.calibrators.loss import (
    log_proba,
    tempered_at_label,
    total_weight,
    working_dtype,
)
from polycal.calibrators.optimise import scipy_lbfgs
from polycal.calibrators.regression import fit_tilt, tilt_derivatives
from polycal.calibrators.temperature import fit_inverse_temperature, temperature_steps
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Clip, Log, Program, Sum, run

# No classifier's log(1/T) is as large as this.
_LARGEST = 50.0


@dataclass(frozen=True, eq=False)
class Mixture:
    r"""``q = (1 - e) softmax(log v / T) + e background``, the background a mixture of class frequencies and uniform.

    The background keeps every class possible: exact zeros in the input stop being infinite losses.

    Attributes
    ----------
    temperature : float
        T.
    background : ndarray of shape (n_classes,)
        What is added, of sum ``e``.
    point : ndarray of shape (3,)
        What was fitted: ``log(1/T)``, and the log odds of ``e`` and of its uniform part.
    """

    temperature: float
    background: Float64s
    point: Float64s

    @property
    def hidden(self) -> float:
        """The weight of the background, behind which smaller probabilities cannot be told apart."""
        return float(self.background.sum())

    def tempering_steps(self) -> Program:
        """The map from v to ``softmax(log v / T)``."""
        return temperature_steps(self.temperature)

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


@dataclass(frozen=True, eq=False)
class Baseline:
    """A mixture, and the curve that bends it.

    Attributes
    ----------
    mixture : Mixture
    curve : SharedCurve
    """

    mixture: Mixture
    curve: "SharedCurve"

    def seen(self, sample: Sample) -> "Seen":
        """What it makes of a sample."""
        log_proba = self.mixture.log_proba(sample)
        self.curve.apply(log_proba)
        return Seen(log_proba, cache(lambda: self.mixture.log_tempered(sample)))


@dataclass(frozen=True, eq=False)
class Seen:
    """What a baseline makes of a sample: what models change, and what their features are of.

    Attributes
    ----------
    log_proba : ndarray of float, shape (n_samples, n_classes)
        Log q.
    log_tempered : callable
        Gives the logarithms at its temperature.
    """

    log_proba: Floats
    log_tempered: Callable[[], Floats]


def fit_baseline(sample: Sample, last: Baseline | None = None) -> Baseline:
    """The mixture, and the curve on top of it; sooner from the last one of nearly the same rows."""
    mixture = fit_mixture(sample, None if last is None else last.mixture.point)
    return Baseline(mixture, fit_shared_curve(sample, mixture.log_proba(sample)))


def fit_mixture(sample: Sample, start: Float64s | None = None) -> Mixture:
    """The mixture of least log loss (with the weak prior): three numbers, by L-BFGS from temperature scaling."""
    logs, k, total = log_proba(sample), sample.n_classes, total_weight(sample)
    counts = np.bincount(sample.labels, total * sample.mass, minlength=k).astype(np.float64)
    frequency: Float64s = (counts + 1.0) / (total + k)
    if start is None:
        start = np.array([np.log(fit_inverse_temperature(sample, logs)), -5.0, 0.0])
    logs = logs.astype(working_dtype(sample))

    def objective(point: Float64s) -> tuple[float, Float64s]:
        loss, gradient = mixture_loss(sample, logs, frequency, point)
        shift = (point - PRIOR_CENTRE) / PRIOR_WIDTH
        return loss + 0.5 * float(shift @ shift) / total, gradient + shift / PRIOR_WIDTH / total

    point = scipy_lbfgs(objective, start, PRIOR_WIDTH)
    mixed, uniform = expit(point[1:])
    return Mixture(float(np.exp(-point[0])), mixed * ((1.0 - uniform) * frequency + uniform / k), point)


def mixture_loss(
    sample: Sample, logs: Floats, frequency: Float64s, point: Float64s
) -> tuple[float, Float64s]:
    """Log loss of the mixture, and its gradient by the three numbers."""
    mixed, uniform = expit(point[1:])
    # A search that looks further would overflow.
    inverse = float(np.exp(min(point[0], _LARGEST)))
    tempered, slope = tempered_at_label(logs, sample.labels, inverse)
    common, even = frequency[sample.labels], 1.0 / frequency.size
    background = (1.0 - uniform) * common + uniform * even
    proba = (1.0 - mixed) * tempered + mixed * background
    weight = sample.mass / proba
    by_mixed, by_uniform = weight @ (background - tempered), weight @ (even - common)
    gradient = [
        (1.0 - mixed) * float(weight @ slope),
        mixed * (1.0 - mixed) * float(by_mixed),
        mixed * uniform * (1.0 - uniform) * float(by_uniform),
    ]
    return -float(sample.mass @ np.log(proba)), -np.array(gradient)


@dataclass(frozen=True, eq=False)
class SharedCurve:
    """``softmax(g(log q))`` with one piecewise linear g, of slope 1 below the smallest knot.

    Temperature scaling has a straight line for g; but classifiers that are over-confident about their first choice
    are often under-confident about the rest.

    Attributes
    ----------
    slopes : ndarray of shape (n_knots,)
        What each knot adds to the slope of g.
    """

    slopes: Float64s

    def logit_steps(self) -> Program:
        """The map from q to logits, g(log q)."""
        bends = tuple(
            (Clip(float(np.log(knot)), 0.0), Affine(np.array([slope]), np.array([-slope * np.log(knot)])))
            for knot, slope in zip(KNOTS, self.slopes, strict=True)
            if slope != 0.0
        )
        return (Log(), Sum(((), *bends))) if bends else (Log(),)

    def apply(self, log_proba: Floats) -> None:
        """Overwrite log q by the log of what the curve makes of it."""
        for rows in row_blocks(*log_proba.shape):
            logits = _curve(log_proba[rows], self.slopes)
            log_proba[rows] = log_softmax(logits, axis=1)


def fit_shared_curve(sample: Sample, log_proba: Floats) -> SharedCurve:
    """The curve of least log loss, each slope with a standard normal prior; straight where bending gains no more
    than it would by chance, about one nat in all for each slope.
    """

    def directions(rows: slice) -> Floats:
        return np.stack([_beyond(log_proba[rows], knot) for knot in KNOTS])

    slopes, straight = fit_tilt(sample, log_proba, directions, len(KNOTS)), np.zeros(len(KNOTS))
    losses = [tilt_derivatives(sample, log_proba, directions, at)[0] for at in (straight, slopes)]
    worthwhile = losses[0] - losses[1] > len(KNOTS) / total_weight(sample)
    return SharedCurve(slopes if worthwhile else straight)


def _curve(logs: Floats, slopes: Float64s) -> Floats:
    """The curve's value at each logarithm."""
    out = logs.copy()
    for knot, slope in zip(KNOTS, slopes, strict=True):
        out += float(slope) * _beyond(logs, knot)
    return out


def _beyond(logs: Floats, knot: float) -> Floats:
    """How far each logarithm lies above a knot's."""
    shift = float(np.log(knot))
    above: Floats = np.maximum(logs, shift)
    above -= shift
    return above
