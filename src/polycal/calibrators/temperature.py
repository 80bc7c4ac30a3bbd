"""Temperature scaling: one number for all predictions."""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from polycal._threads import Run
from polycal._typing import Floats
from polycal.calibrators.base import Calibrator
from polycal.calibrators.loss import log_proba, losses_and_proba, pass_threads, to_residual, total_weight
from polycal.calibrators.priors import PRIOR, check_prior, slope_penalty_gradient
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Log, Program, Softmax

# Outside these the predictions are all but one-hot, or all but uniform.
_COLDEST, _HOTTEST = 1e-2, 1e2
_TOLERANCE = 1e-10
# Multiplications that an exponential takes as long as.
_EXPONENTIAL = 32


class TemperatureScaling(Calibrator):
    r"""Flatten or sharpen all predictions alike: :math:`p = \mathrm{softmax}(\log v / T)`.

    The ranking of the classes, and with it the accuracy, is kept. The usual first thing to try.

    Parameters
    ----------
    prior : float or None
        How much the prior of T counts; None is maximum likelihood.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    temperature_ : float
        T; above 1 the predictions were over-confident.

    Notes
    -----
    T minimises :math:`\sum_i w_i \ell_i + \pi (1/T - 1 - \log(1/T))` within [0.01, 100], with log losses
    :math:`\ell_i` and the weight :math:`\pi` of a gamma prior: a convex problem in 1/T, whose derivative has one root.
    Few rows without a mistake would ask for T = 0; the prior keeps them from it, and vanishes as rows become many.
    Predictions below 2.2e-16 count as 2.2e-16. Cost: some ten passes, O(nk) each.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", section 4.2.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1, 0, 0]
    >>> pc.TemperatureScaling().fit(proba, y).predict_proba([[0.01, 0.99]]).round(2)
    array([[0.07, 0.93]])
    """

    family: ClassVar[str] = "temperature"
    saved_attributes: ClassVar[tuple[str, ...]] = ("temperature_",)
    temperature_: float

    def __init__(self, *, prior: float | None = 1.0, from_logits: bool = False) -> None:
        self.prior = prior
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:
        self.temperature_ = 1.0 / fit_inverse_temperature(sample, log_proba(sample), check_prior(self.prior))
        return temperature_steps(self.temperature_)


def temperature_steps(temperature: float) -> Program:
    """``softmax(log v / T)`` as steps."""
    return Log(), Affine(np.array([1.0 / temperature]), np.zeros(1)), Softmax()


def fit_inverse_temperature(sample: Sample, logs: Floats, prior: float = PRIOR) -> float:
    """The 1/T of least log loss with the prior, within the bounds: where the derivative changes sign."""
    weight = prior / total_weight(sample)

    def slope(log_inverse: float) -> float:
        inverse = math.exp(log_inverse)
        return _slope(sample, logs, inverse, run) + weight * slope_penalty_gradient(inverse)

    with pass_threads(_EXPONENTIAL * logs.size) as run:
        return _root(slope)


def _root(slope: Callable[[float], float]) -> float:
    """Where it changes sign, within the bounds."""
    from scipy.optimize import toms748  # noqa: PLC0415 - slow to import

    at_one = slope(0.0)
    if at_one == 0.0:
        return 1.0
    bound = -math.log(_COLDEST if at_one < 0.0 else _HOTTEST)
    # Rows that are all right have no slope left to see when it is cold.
    while (at_bound := slope(bound)) == 0.0:
        bound /= 2.0
    if at_one * at_bound > 0.0:
        return math.exp(bound)
    return math.exp(toms748(slope, min(0.0, bound), max(0.0, bound), xtol=_TOLERANCE, rtol=_TOLERANCE))


def _slope(sample: Sample, logs: Floats, inverse: float, run: Run) -> float:
    """The derivative of the log loss by 1/T."""
    mass, labels = sample.mass, sample.labels

    def part(rows: slice) -> float:
        block = logs[rows].astype(np.float64)
        _, proba = losses_and_proba(inverse * block, labels[rows])
        return float(np.vdot(to_residual(proba, labels[rows], mass[rows]), block))

    return sum(run(part, list(row_blocks(*logs.shape))))
