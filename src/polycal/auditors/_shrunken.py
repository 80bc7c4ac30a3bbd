"""Residuals with less noise, for a search that would fit it: shrunk towards what a recalibration expects."""

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import Sample
from polycal.search.landscape import Float32s, Landscape, plain_landscape

# A recalibration by two numbers cannot say everything: this share of what it leaves unsaid is always kept.
_LEAST_SHARE = 0.25
_MAX_STEPS = 30
_LARGEST_POWER = 10.0
# Lower probabilities, and lower parts of what the average class is given, count as these.
_LOWEST_PROBA = 1e-8
_LOWEST_USE = 1e-3


def shrunken_landscape(sample: Sample) -> Landscape:
    """The landscape of what is expected of the labels, and of their surprises as far as these are no noise.

    Class totals are what a search over sets of classes overfits most: those of both parts are shrunk.
    """
    plain, mass = plain_landscape(sample), sample.mass
    expected = expected_labels(plain.proba, sample.labels, mass) - plain.proba
    expected *= mass.astype(np.float32)[:, None]
    surprise = plain.residual - expected
    share = max(_LEAST_SHARE, share_of_signal(surprise, mass))
    return Landscape(plain.proba, _shrunken(expected, mass, 1.0) + _shrunken(surprise, mass, share))


def share_of_signal(residual: Float32s, mass: Float64s) -> float:
    """The James-Stein factor of the class totals: the share of their squares that noise does not explain."""
    total = residual.sum(axis=0, dtype=np.float64)
    noise = np.einsum("ij,ij->", residual, residual, dtype=np.float64) - (total @ total) * (mass @ mass)
    return max(0.0, 1.0 - float(noise / max(total @ total, 1e-300)))


def _shrunken(residual: Float32s, mass: Float64s, share: float) -> Float32s:
    """The class totals times their share of signal, and the rest times ``share``."""
    total = residual.sum(axis=0, dtype=np.float64) * (share_of_signal(residual, mass) - share)
    shrunken: Float32s = np.float32(share) * residual
    shrunken += np.outer(mass, total).astype(np.float32)
    return shrunken


def expected_labels(proba: Float32s, labels: Ints, mass: Float64s) -> Float32s:
    """The most likely label distributions of the form ``p_j ~ v_j^a pi_j^b``, with pi the mean prediction.

    The power a mends the confidence, b the preference for classes that are predicted often. Both are learnt
    from all rows together, so hardly any of the labels' noise is in them.
    """
    from polycal._compiled import powers as kernels  # noqa: PLC0415 - imports numba

    log_proba = np.log(np.maximum(proba, np.float32(_LOWEST_PROBA)))
    log_use = np.log(np.maximum(mass @ proba * proba.shape[1], _LOWEST_USE))
    powers, scale = np.array([1.0, 0.0]), 1.0
    loss, slope, bend = kernels.power_loss(log_proba, log_use, labels, mass, *powers)
    for _ in range(_MAX_STEPS):
        # Newton; by least squares, because b has no effect where all classes are used alike.
        step = np.linalg.lstsq(bend, slope, rcond=1e-9)[0]
        if slope @ step < 1e-9:
            break
        trial = np.clip(powers - scale * step, -_LARGEST_POWER, _LARGEST_POWER)
        new_loss, new_slope, new_bend = kernels.power_loss(log_proba, log_use, labels, mass, *trial)
        if new_loss < loss:
            powers, loss, slope, bend = trial, new_loss, new_slope, new_bend
        else:
            scale /= 4
    expected: Float32s = kernels.power_labels(log_proba, log_use, *powers)
    return expected
