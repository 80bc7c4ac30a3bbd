"""Calibrators that map each class's probability by a function of its own, and then normalise the row."""

from typing import ClassVar, get_args

import numpy as np
from scipy.special import expit

from polycal._typing import Float64s, Ints
from polycal._validation import check_choice, check_integer
from polycal.calibrators.base import Calibrator
from polycal.calibrators.loss import total_weight
from polycal.calibrators.optimise import scipy_lbfgs
from polycal.calibrators.priors import check_penalty, check_prior, is_auto
from polycal.measures.binned import Strategy, bin_edges
from polycal.sample import Question, Sample, ask_subset, row_sums
from polycal.steps import Affine, Interpolate, Log, Lookup, Normalise, Others, Program, Sigmoid, Sum

# A class that does not occur cannot be learnt about: it stays as predicted.
_AS_PREDICTED = (np.array([0.0, 1.0]), np.array([0.0, 1.0]))
# Predictions whose difference is a smaller part of them count as equal: the last digits depend on who computed them,
# and no map may depend on these.
_RESOLUTION = 1e-8
# The beta curve that changes nothing, and the lower bounds of a, b and c.
_IDENTITY = np.array([1.0, 1.0, 0.0])
_LOWER = np.array([0.0, 0.0, -np.inf])


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
    the increasing function of least squared error, linear between its knots. Predictions that differ by less than
    1e-8 of themselves count as equal. A row of zeros becomes uniform; a class that does not occur stays as predicted.
    Cost: O(nk log n).

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
        functions = [_fit_isotonic(sample, label) for label in range(sample.n_classes)]
        return Interpolate(*_joined(functions)), _normalise(sample.n_classes)


def _fit_isotonic(sample: Sample, label: int) -> tuple[Float64s, Float64s]:
    """Knots and heights of one class's function."""
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 - slow to import

    hits = (sample.labels == label).astype(np.float64)
    if (sample.mass @ hits) <= 0.0:
        return _AS_PREDICTED
    predicted = _resolved(sample.proba[:, label].astype(np.float64))
    regression = IsotonicRegression(y_min=0.0, y_max=1.0).fit(predicted, hits, sample.sample_weight)
    return regression.X_thresholds_, regression.y_thresholds_


def _resolved(values: Float64s) -> Float64s:
    """The values, those that count as equal replaced by the least of them."""
    distinct, positions = np.unique(values, return_inverse=True)
    least = distinct.copy()
    for i in np.flatnonzero(np.diff(distinct) < _RESOLUTION * distinct[1:]) + 1:
        if distinct[i] - least[i - 1] < _RESOLUTION * distinct[i]:
            least[i] = least[i - 1]
    return least[positions]


class HistogramCalibrator(Calibrator):
    """Replace each class's probability by the frequency in its bin, then normalise the row.

    Parameters
    ----------
    n_bins : int
        Number of bins for each class; ties can leave fewer.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal mass.
    from_logits : bool
        The predictions are logits.

    Notes
    -----
    An empty bin predicts its centre, a class that does not occur its mean prediction in each bin, and a row of zeros
    becomes uniform. Cost: O(nk log n).

    References
    ----------
    .. [1] Zadrozny, Elkan (2001), "Obtaining calibrated probability estimates from decision trees and naive Bayesian
       classifiers".

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.2, 0.8]], [1, 0, 0]
    >>> pc.HistogramCalibrator(n_bins=2).fit(proba, y).predict_proba([[0.3, 0.7]])
    array([[0.5, 0.5]])
    """

    family: ClassVar[str] = "histogram"

    def __init__(
        self, *, n_bins: int = 15, strategy: Strategy = "uniform", from_logits: bool = False
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:
        check_integer(self.n_bins, "n_bins", minimum=1)
        check_choice(self.strategy, "strategy", get_args(Strategy))
        questions = (ask_subset(sample, np.array([label])) for label in range(sample.n_classes))
        functions = [_fit_histogram(question, self.n_bins, self.strategy) for question in questions]
        return Lookup(*_joined(functions)), _normalise(sample.n_classes)


def _fit_histogram(question: Question, n_bins: int, strategy: Strategy) -> tuple[Float64s, Float64s]:
    """Lower edges (the first without limit) and frequencies of one class's bins."""
    edges = bin_edges(question, n_bins, strategy)
    # Values on an edge are on its lower side, whatever their last digits.
    edges[1:-1] *= 1.0 + _RESOLUTION
    bins = np.searchsorted(edges[1:-1], question.predicted)
    weight = np.ones(bins.size) if question.weight is None else question.weight
    # A class that does not occur cannot be learnt about.
    outcome = question.hits if weight @ question.hits > 0.0 else question.predicted
    mass, total = (np.bincount(bins, weights=w, minlength=edges.size - 1) for w in (weight, weight * outcome))
    centre = (edges[:-1] + edges[1:]) / 2.0
    heights = np.where(mass > 0.0, total / np.where(mass > 0.0, mass, 1.0), centre)
    return np.concatenate([[-np.inf], edges[1:-1]]), heights


class BetaCalibrator(Calibrator):
    r"""Replace each class's probability by a beta curve of it, then normalise the row.

    The curve :math:`\mathrm{sigmoid}(a \log v - b \log(1 - v) + c)` with :math:`a, b \ge 0` can bend either way at
    either end, and can be the identity.

    Parameters
    ----------
    ridge : "auto" or float
        Penalty, which pulls towards the identity, a = b = 1 and c = 0; "auto" is the prior.
    prior : float or None
        How much the standard normal prior of a - 1, b - 1 and c counts; with None, and no penalty given, it is
        maximum likelihood.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    curves_ : ndarray of shape (n_classes, 3)
        a, b and c of each class.

    Notes
    -----
    Each class minimises :math:`\sum_i w_i \ell_i + \frac{\lambda}{2} \|(a, b, c) - (1, 1, 0)\|^2` with the log
    losses :math:`\ell_i` of "the label is this class": a convex problem, solved by L-BFGS within the bounds. The
    penalty vanishes as rows become many.
    Cost: O(n) a step and class.

    References
    ----------
    .. [1] Kull, Silva Filho, Flach (2017), "Beta calibration: a well-founded and easily implemented improvement on
       logistic calibration for binary classifiers", section 4.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]] * 2, [1, 0, 0] * 2
    >>> pc.BetaCalibrator().fit(proba, y).curves_.shape
    (2, 3)
    """

    family: ClassVar[str] = "beta"
    saved_attributes: ClassVar[tuple[str, ...]] = ("curves_",)
    curves_: Float64s

    def __init__(
        self, *, ridge: float | str = "auto", prior: float | None = 1.0, from_logits: bool = False
    ) -> None:
        self.ridge = ridge
        self.prior = prior
        self.from_logits = from_logits

    def _n_numbers(self, n_classes: int) -> int:
        return 3 * n_classes

    def _fit(self, sample: Sample) -> Program:
        prior = check_prior(self.prior)
        ridge = prior if is_auto(self.ridge) else check_penalty(self.ridge, "ridge")
        penalty = ridge / total_weight(sample)
        self.curves_ = np.array([_fit_beta(sample, label, penalty) for label in range(sample.n_classes)])
        a, b, c = np.ascontiguousarray(self.curves_.T)
        low, high = (Log(), Affine(a, c)), (Others(), Log(), Affine(-b, np.zeros(b.size)))
        return Sum((low, high)), Sigmoid(), _normalise(sample.n_classes)


def _fit_beta(sample: Sample, label: int, penalty: float) -> Float64s:
    """a, b and c of one class."""
    predicted, complement = _with_complement(sample, label)
    features = np.column_stack([Log()(predicted), -Log()(complement), np.ones_like(predicted)])
    hits, mass = sample.labels == label, sample.mass

    def objective(curve: Float64s) -> tuple[float, Float64s]:
        logit = features @ curve
        away = curve - _IDENTITY
        loss = float(mass @ (np.logaddexp(0.0, logit) - hits * logit)) + 0.5 * penalty * float(away @ away)
        return loss, (mass * (expit(logit) - hits)) @ features + penalty * away

    spread = mass * predicted * complement
    return scipy_lbfgs(objective, _IDENTITY, spread @ features**2 + penalty, _LOWER)


def _with_complement(sample: Sample, label: int) -> tuple[Float64s, Float64s]:
    """The class's probabilities and those of all others; near 1 the others are added up, as `Others` does."""
    predicted = sample.proba[:, label].astype(np.float64)
    complement = 1.0 - predicted
    likely = np.flatnonzero(predicted > 0.5)
    others = sample.proba[likely].astype(np.float64)
    others[:, label] = 0.0
    complement[likely] = row_sums(others)
    return predicted, complement


def _joined(functions: list[tuple[Float64s, Float64s]]) -> tuple[Float64s, Float64s, Ints]:
    """The knots and heights of all classes in a row, and where each class begins."""
    knots, heights = (np.concatenate(part) for part in zip(*functions, strict=True))
    return knots, heights, np.cumsum([0] + [function[0].size for function in functions])


def _normalise(n_classes: int) -> Normalise:
    """Rows to sum 1; a row of zeros becomes uniform."""
    return Normalise(np.full(n_classes, 1.0 / n_classes))
