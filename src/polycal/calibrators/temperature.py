"""Temperature scaling: one number for all predictions."""

import math
from typing import ClassVar

import numpy as np

from polycal._typing import Floats
from polycal.calibrators._likelihood import log_proba
from polycal.calibrators.base import Calibrator
from polycal.sample import Sample, row_blocks, row_sums
from polycal.steps import Affine, Log, Program, Softmax

# Outside these the predictions are all but one-hot, or all but uniform.
_COLDEST, _HOTTEST = 1e-2, 1e2
_TOLERANCE = 1e-10
_MAX_STEPS = 200


class TemperatureScaling(Calibrator):
    r"""Flatten or sharpen all predictions alike: :math:`p = \mathrm{softmax}(\log v / T)`.

    The ranking of the classes, and with it the accuracy, is kept. The usual first thing to try.

    Parameters
    ----------
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    temperature_ : float
        T; above 1 the predictions were over-confident.

    Notes
    -----
    T minimises the (weighted) log loss within [0.01, 100]: a convex problem in 1/T, solved by Newton steps kept in
    a bracket. Predictions below 2.2e-16 count as 2.2e-16. Cost: some ten passes, O(nk) each.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", section 4.2.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1, 0, 0]
    >>> pc.TemperatureScaling().fit(proba, y).predict_proba([[0.01, 0.99]]).round(2)
    array([[0.19, 0.81]])
    """

    kind: ClassVar[str] = "temperature"
    saved_attributes: ClassVar[tuple[str, ...]] = ("temperature_",)
    temperature_: float

    def __init__(self, *, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:
        self.temperature_ = 1.0 / fit_inverse_temperature(sample, log_proba(sample))
        return temperature_steps(self.temperature_)


def temperature_steps(temperature: float) -> Program:
    """``softmax(log v / T)`` as steps."""
    return Log(), Affine(np.array([1.0 / temperature]), np.zeros(1)), Softmax()


def fit_inverse_temperature(sample: Sample, logs: Floats) -> float:
    """The 1/T of least log loss, by Newton's method on its derivative, bisecting where that leaves the bracket."""
    low, high = 1.0 / _HOTTEST, 1.0 / _COLDEST
    if _derivatives(sample, logs, high)[0] < 0.0:
        return high
    inverse = 1.0
    for _ in range(_MAX_STEPS):
        slope, curvature = _derivatives(sample, logs, inverse)
        if slope == 0.0:
            break
        low, high = (inverse, high) if slope < 0.0 else (low, inverse)
        newton = inverse - slope / curvature if curvature > 0.0 else low
        # Geometric: the bracket spans powers of ten.
        guess = newton if low < newton < high else math.sqrt(low * high)
        inverse, before = guess, inverse
        if abs(inverse - before) <= _TOLERANCE * before or high - low <= _TOLERANCE * high:
            break
    return inverse


def _derivatives(sample: Sample, logs: Floats, inverse: float) -> tuple[float, float]:
    """First and second derivative of the log loss by 1/T: mean excess and mean variance of ``log v``."""
    slope = curvature = 0.0
    mass, labels = sample.mass, sample.labels
    for rows in row_blocks(*logs.shape):
        block = logs[rows].astype(np.float64)
        tilted = (block - block.max(axis=1, keepdims=True)) * inverse
        np.exp(tilted, out=tilted)
        total = row_sums(tilted)
        mean = np.einsum("ij,ij->i", tilted, block) / total
        block -= mean[:, None]
        slope -= float(mass[rows] @ block[np.arange(mean.size), labels[rows]])
        curvature += float(mass[rows] @ (np.einsum("ij,ij,ij->i", tilted, block, block) / total))
    return slope, curvature
