"""One-vs-rest isotonic regression: an increasing function for each class."""

from typing import ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.calibrators._base import Calibrator
from polycal.sample import Sample
from polycal.steps import Interpolate, Normalise, Program

# A class that does not occur cannot be learnt about: it stays as predicted.
_AS_PREDICTED = (np.array([0.0, 1.0]), np.array([0.0, 1.0]))


class IsotonicCalibrator(Calibrator):
    """Replace each class's probability by an increasing function of it, then normalise the row.

    Fits any monotone distortion of single classes; with few rows it overfits, and it predicts exact zeros, which
    the log loss punishes without limit.

    Parameters
    ----------
    from_logits : bool
        The predictions are logits.

    Notes
    -----
    Each function is scikit-learn's ``IsotonicRegression`` of "the label is this class" on the class's probability:
    the increasing function of least squared error, linear between its knots. A row of zeros becomes uniform; a class
    that does not occur stays as predicted. Cost: O(nk log n).

    References
    ----------
    .. [1] Zadrozny, Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates".

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.2, 0.8]], [1, 0, 0]
    >>> pc.IsotonicCalibrator().fit(proba, y).predict_proba([[0.15, 0.85]])
    array([[0.5, 0.5]])
    """

    family: ClassVar[str] = "isotonic"

    def __init__(self, *, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:
        functions = [_fit_class(sample, label) for label in range(sample.n_classes)]
        knots, heights = (np.concatenate(part) for part in zip(*functions, strict=True))
        starts = np.cumsum([0] + [function[0].size for function in functions])
        uniform = np.full(sample.n_classes, 1.0 / sample.n_classes)
        return Interpolate(knots, heights, starts), Normalise(uniform)


def _fit_class(sample: Sample, label: int) -> tuple[Float64s, Float64s]:
    """Knots and heights of one class's function."""
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 - slow to import

    hits = (sample.labels == label).astype(np.float64)
    if (sample.mass @ hits) <= 0.0:
        return _AS_PREDICTED
    predicted = sample.proba[:, label].astype(np.float64)
    regression = IsotonicRegression(y_min=0.0, y_max=1.0).fit(predicted, hits, sample.sample_weight)
    return regression.X_thresholds_, regression.y_thresholds_
