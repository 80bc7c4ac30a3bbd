"""One-vs-rest beta calibration: a three-parameter family of curves for each class."""

from typing import ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_real
from polycal.calibrators._base import Calibrator
from polycal.calibrators._likelihood import minimise, total_weight
from polycal.sample import Sample
from polycal.steps import Affine, Log, Normalise, Program, Sigmoid, Sum

_IDENTITY = np.array([1.0, 1.0, 0.0])
_LOWER = np.array([0.0, 0.0, -np.inf])
_COMPLEMENT = Affine(np.array([-1.0]), np.ones(1))


class BetaCalibrator(Calibrator):
    r"""Replace each class's probability by a beta curve of it, then normalise the row.

    The curve :math:`\mathrm{sigmoid}(a \log v - b \log(1 - v) + c)` with :math:`a, b \ge 0` can bend either way at
    either end, and can be the identity.

    Parameters
    ----------
    ridge : float
        Strength of the pull towards the identity, a = b = 1 and c = 0.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    curves_ : ndarray of shape (n_classes, 3)
        a, b and c of each class.

    Notes
    -----
    Each class minimises :math:`\sum_i w_i \ell_i + \frac{\lambda}{2} \|(a, b, c) - (1, 1, 0)\|^2` with the log
    losses :math:`\ell_i` of "the label is this class": a convex problem, solved by L-BFGS within the bounds.
    Cost: O(n) a step and class.

    References
    ----------
    .. [1] Kull, Silva Filho, Flach (2017), "Beta calibration: a well-founded and easily implemented improvement on
       logistic calibration for binary classifiers", section 4.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1, 0, 0]
    >>> pc.BetaCalibrator().fit(proba, y).curves_.shape
    (2, 3)
    """

    family: ClassVar[str] = "beta"
    saved_attributes: ClassVar[tuple[str, ...]] = ("curves_",)
    curves_: Float64s

    def __init__(self, *, ridge: float = 1.0, from_logits: bool = False) -> None:
        self.ridge = ridge
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:
        ridge = check_real(self.ridge, "ridge", low=0.0) / total_weight(sample)
        self.curves_ = np.array([_fit_class(sample, label, ridge) for label in range(sample.n_classes)])
        a, b, c = np.ascontiguousarray(self.curves_.T)
        k = sample.n_classes
        low, high = (Log(), Affine(a, c)), (_COMPLEMENT, Log(), Affine(-b, np.zeros(k)))
        return Sum((low, high)), Sigmoid(), Normalise(np.full(k, 1.0 / k))


def _fit_class(sample: Sample, label: int, ridge: float) -> Float64s:
    """a, b and c of one class."""
    predicted = sample.proba[:, [label]].astype(np.float64)
    features = np.hstack([Log()(predicted), -Log()(_COMPLEMENT(predicted)), np.ones_like(predicted)])
    hits, mass = sample.labels == label, sample.mass

    def objective(curve: Float64s) -> tuple[float, Float64s]:
        logit = features @ curve
        away = curve - _IDENTITY
        loss = float(mass @ (np.logaddexp(0.0, logit) - hits * logit)) + 0.5 * ridge * float(away @ away)
        return loss, (mass * (Sigmoid()(logit) - hits)) @ features + ridge * away

    spread = mass * (predicted * (1.0 - predicted))[:, 0]
    return minimise(objective, _IDENTITY, spread @ features**2 + ridge, _LOWER)
