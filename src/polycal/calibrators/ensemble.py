"""Ensemble temperature scaling: tempered, unchanged and uniform predictions in a mixture."""

from typing import ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.calibrators.base import Calibrator
from polycal.calibrators.loss import log_proba, tempered_at_label, total_weight, working_dtype
from polycal.calibrators.optimise import scipy_lbfgs
from polycal.calibrators.priors import MIXTURE_ROWS, check_prior, slope_penalty, slope_penalty_gradient
from polycal.calibrators.temperature import fit_inverse_temperature, temperature_steps
from polycal.sample import Sample
from polycal.steps import FLOOR, Affine, Program, Sum

# Where T is tried first: from a twentieth to twenty times that of temperature scaling.
_GRID = np.linspace(-3.0, 3.0, 13)
# The loss has several minima: the best few are followed to the bottom.
_POLISHED = 3


class EnsembleTemperatureScaling(Calibrator):
    r"""Mix tempered, unchanged and uniform predictions: :math:`w_1\,\mathrm{softmax}(\log v / T) + w_2 v + w_3 / k`.

    Keeps the ranking of the classes. The uniform part is what predictions with exact zeros need.

    Parameters
    ----------
    prior : float or None
        How much the priors of T and of the weights count; None is maximum likelihood.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    temperature_ : float
        T.
    weights_ : ndarray of shape (3,)
        Non-negative, summing to 1.

    Notes
    -----
    T and the weights minimise the log loss of the mixture together ([1]_ takes T from `TemperatureScaling`, which
    exact zeros lead astray), with the prior of `TemperatureScaling` for T, and one for the weights that counts as a
    third of a row in each part: rows without a mistake do not show that there is none. First T is tried on a grid
    around that of `TemperatureScaling`, with the best weights for each (a convex problem); then L-BFGS moves all four
    numbers from the best three. The loss may have other minima, of about the same value. Cost: some sixty passes,
    O(nk) each.

    References
    ----------
    .. [1] Zhang, Kailkhura, Han (2020), "Mix-n-match: ensemble and compositional methods for uncertainty calibration
       in deep learning", section 3.2.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1, 0, 0]
    >>> pc.EnsembleTemperatureScaling().fit(proba, y).weights_.sum().round(6)
    np.float64(1.0)
    """

    family: ClassVar[str] = "ensemble_temperature"
    saved_attributes: ClassVar[tuple[str, ...]] = ("temperature_", "weights_")
    temperature_: float
    weights_: Float64s

    def __init__(self, *, prior: float | None = 1.0, from_logits: bool = False) -> None:
        self.prior = prior
        self.from_logits = from_logits

    def _n_numbers(self, n_classes: int) -> int:  # noqa: ARG002 - whatever the classes
        return 3

    def _fit(self, sample: Sample) -> Program:
        mixture = _Mixture(sample, check_prior(self.prior))
        log_inverse, weights = mixture.fit()
        self.temperature_, self.weights_ = float(np.exp(-log_inverse)), weights
        first, second, third = weights
        scaled = Affine(np.array([first]), np.array([third / sample.n_classes]))
        tempered = (*temperature_steps(self.temperature_), scaled)
        return (Sum((tempered, (Affine(np.array([second]), np.zeros(1)),))),)


class _Mixture:
    """The log loss of the mixture, as a function of log(1/T) and the weights."""

    def __init__(self, sample: Sample, prior: float) -> None:
        logs, self.labels, self.mass = log_proba(sample), sample.labels, sample.mass
        self.start = float(np.log(fit_inverse_temperature(sample, logs, prior)))
        self.prior = prior / total_weight(sample)
        self.logs = logs.astype(working_dtype(sample))
        at_label = sample.proba[np.arange(sample.n_samples), sample.labels].astype(np.float64)
        self.others = np.column_stack([at_label, np.full(sample.n_samples, 1.0 / sample.n_classes)])

    def fit(self) -> tuple[float, Float64s]:
        """The best log(1/T) and weights found."""
        tried = sorted((self._fit_weights(point) for point in self.start + _GRID), key=lambda entry: entry[0])
        polished = [self._polish(point) for _, point in tried[:_POLISHED]]
        _, best = min(polished, key=lambda entry: entry[0])
        return float(best[0]), best[1:] / best[1:].sum()

    def _polish(self, start: Float64s) -> tuple[float, Float64s]:
        """Descend from log(1/T) and weights to the nearest minimum; its loss, and where it is."""
        point = scipy_lbfgs(self._joint, start, np.ones(4), np.array([-np.inf, *[self._least] * 3]))
        return self._joint(point)[0], point

    def _fit_weights(self, log_inverse: float) -> tuple[float, Float64s]:
        """The loss of the best weights for one log(1/T), and both."""
        tempered, _ = tempered_at_label(self.logs, self.labels, float(np.exp(log_inverse)))
        components = np.column_stack([tempered, self.others])
        weights = scipy_lbfgs(
            lambda point: self._weights_loss(components, point)[:2],
            np.full(3, 1.0 / 3.0),
            np.ones(3),
            np.full(3, self._least),
        )
        return self._joint(np.array([log_inverse, *weights]))[0], np.array([log_inverse, *weights])

    def _joint(self, point: Float64s) -> tuple[float, Float64s]:
        """Loss and gradient by log(1/T) and the weights."""
        tempered, slope = tempered_at_label(self.logs, self.labels, float(np.exp(point[0])))
        components = np.column_stack([tempered, self.others])
        loss, gradient, mixed = self._weights_loss(components, point[1:])
        inverse = float(np.exp(point[0]))
        by_inverse = -float((self.mass / mixed) @ slope) * point[1]
        by_inverse += self.prior * inverse * slope_penalty_gradient(inverse)
        return loss + self.prior * slope_penalty(inverse), np.array([by_inverse, *gradient])

    @property
    def _least(self) -> float:
        """The least weight: one whose logarithm is penalised stays above 0."""
        return FLOOR if self.prior else 0.0

    def _weights_loss(self, components: Float64s, weights: Float64s) -> tuple[float, Float64s, Float64s]:
        """Log loss of the mixture, with the prior and the sum of its weights: least where these sum to 1, with no
        constraint needed.
        """
        rows = self.prior * MIXTURE_ROWS
        mixed = np.maximum(components @ weights, FLOOR)
        loss = float((1.0 + 3.0 * rows) * weights.sum() - self.mass @ np.log(mixed))
        gradient = (1.0 + 3.0 * rows) - (self.mass / mixed) @ components
        if rows:
            loss -= rows * float(np.log(weights).sum())
            gradient -= rows / weights
        return loss, gradient, mixed
