"""Vector scaling: a scale and a bias for each class."""

from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators.base import Calibrator
from polycal.calibrators.loss import curvature, log_proba, losses_and_proba, to_residual, total_weight
from polycal.calibrators.optimise import scipy_lbfgs
from polycal.calibrators.priors import (
    check_penalty,
    check_prior,
    is_auto,
    slope_penalty,
    slope_penalty_gradient,
)
from polycal.calibrators.temperature import fit_inverse_temperature
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Log, Program, Softmax

# The penalty under the prior.
_RIDGE = 30.0
# The common slope stays above this where its logarithm is penalised.
_LEAST_SLOPE = 1e-6


class VectorScaling(Calibrator):
    r"""Scale and shift each class's log probability: :math:`p = \mathrm{softmax}(a \odot \log v + b)`.

    Corrects classes that are over- or under-predicted as a whole.

    Parameters
    ----------
    ridge : "auto" or float
        Penalty, which pulls towards temperature scaling; 0 is none, and leaves the bias of a class that does not
        occur without a limit. "auto" is 30 times the prior.
    prior : float or None
        How much the priors count; with None, and no penalty given, it is maximum likelihood.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    scale_, bias_ : ndarray of shape (n_classes,)
        a and b.

    Notes
    -----
    Minimises :math:`\sum_i w_i \ell_i + \frac{\lambda}{2} \big(\|a - \beta 1\|^2 + \|b\|^2\big) +
    \pi (\beta - 1 - \log \beta)` over a, b and :math:`\beta`, with log losses :math:`\ell_i`, the penalty
    :math:`\lambda` and the weight :math:`\pi` of the prior of `TemperatureScaling`: a convex problem, solved by L-BFGS
    from the temperature-scaled predictions. Both vanish as rows become many. Cost: O(nk) a step.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", section 4.2.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9], [0.2, 0.8]], [1, 0, 0, 1]
    >>> pc.VectorScaling().fit(proba, y).predict_proba([[0.01, 0.99]]).shape
    (1, 2)
    """

    family: ClassVar[str] = "vector"
    saved_attributes: ClassVar[tuple[str, ...]] = ("scale_", "bias_")
    scale_: Float64s
    bias_: Float64s

    def __init__(
        self, *, ridge: float | str = "auto", prior: float | None = 1.0, from_logits: bool = False
    ) -> None:
        self.ridge = ridge
        self.prior = prior
        self.from_logits = from_logits

    def _n_numbers(self, n_classes: int) -> int:
        return 2 * n_classes

    def _fit(self, sample: Sample) -> Program:
        prior = check_prior(self.prior)
        ridge = _RIDGE * prior if is_auto(self.ridge) else check_penalty(self.ridge, "ridge")
        total = total_weight(sample)
        self.scale_, self.bias_ = _fit_vector(sample, ridge / total, prior / total)
        return Log(), Affine(self.scale_, self.bias_), Softmax()


def _fit_vector(sample: Sample, penalty: float, prior: float) -> tuple[Float64s, Float64s]:
    """Scale and bias of least penalised log loss, per unit of weight."""
    logs, k = log_proba(sample), sample.n_classes
    inverse = fit_inverse_temperature(sample, logs, prior * total_weight(sample))

    def objective(point: Float64s) -> tuple[float, Float64s]:
        own = point[1:].reshape(2, k)
        loss, gradient = _loss(sample, logs, point[0] + own[0], own[1])
        common = gradient[0].sum() + prior * slope_penalty_gradient(point[0]) if prior else gradient[0].sum()
        loss += prior * slope_penalty(point[0]) if prior else 0.0
        full = np.concatenate([[common], (gradient + penalty * own).ravel()])
        return loss + 0.5 * penalty * float(own.ravel() @ own.ravel()), full

    diagonal = _diagonal(sample, logs, inverse)
    sizes = np.concatenate([[diagonal[0].sum() + prior / inverse**2], (diagonal + penalty).ravel()])
    start = np.concatenate([[inverse], np.zeros(2 * k)])
    lower = np.full(start.size, -np.inf)
    lower[0] = _LEAST_SLOPE if prior else -np.inf
    point = scipy_lbfgs(objective, start, sizes, lower)
    return point[0] + point[1 : k + 1], point[k + 1 :]


def _loss(sample: Sample, logs: Floats, scale: Float64s, bias: Float64s) -> tuple[float, Float64s]:
    """Log loss, and its gradient by scale and bias, as two rows."""
    loss, gradient, mass = 0.0, np.zeros((2, scale.size)), sample.mass
    for rows in row_blocks(*logs.shape):
        losses, proba = losses_and_proba(logs[rows] * scale + bias, sample.labels[rows])
        loss += float(mass[rows] @ losses)
        residual = to_residual(proba, sample.labels[rows], mass[rows])
        gradient[0] += np.einsum("ij,ij->j", residual, logs[rows])
        gradient[1] += np.einsum("ij->j", residual)
    return loss, gradient


def _diagonal(sample: Sample, logs: Floats, inverse: float) -> Float64s:
    """The diagonal of the Hessian by scale and bias, as two rows, at temperature scaling."""
    diagonal, mass = np.zeros((2, sample.n_classes)), sample.mass
    for rows in row_blocks(*logs.shape):
        _, proba = losses_and_proba(inverse * logs[rows].astype(np.float64), sample.labels[rows])
        spread = curvature(proba, mass[rows])
        diagonal[0] += np.einsum("ij,ij,ij->j", spread, logs[rows], logs[rows])
        diagonal[1] += np.einsum("ij->j", spread)
    return diagonal
