"""Reliability in bins: predictions and outcomes, bin by bin."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_choice, check_integer, check_real, check_sample, check_subset
from polycal.measures.functions import StepFunction
from polycal.sample import Question, ask

Strategy = Literal["uniform", "quantile"]
Norm = Literal["l1", "l2", "max"]


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """A yes/no question's predictions and outcomes, averaged in bins. Empty bins are left out.

    Attributes
    ----------
    predicted : ndarray of shape (n_bins,)
        Mean predicted probability in each bin.
    frequency : ndarray of shape (n_bins,)
        Share of "yes" in each bin.
    mass : ndarray of shape (n_bins,)
        Share of the weight in each bin; sums to 1.
    count : ndarray of int, shape (n_bins,)
        Number of rows (of positive weight) in each bin.
    edges : ndarray of shape (n_edges,)
        The bin edges that were used; a bin holds its upper edge.
    question : str
        What was asked, in words.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> curve = pc.reliability_curve(made.labels, made.proba, n_bins=5)
    >>> bool((curve.predicted > curve.frequency).all())
    True
    """

    predicted: Float64s
    frequency: Float64s
    mass: Float64s
    count: Ints
    edges: Float64s
    question: str = ""

    def error(self, norm: Norm = "l1") -> float:
        """The mean ("l1"), root mean square ("l2") or largest ("max") gap between the two averages."""
        gap = np.abs(self.frequency - self.predicted)
        if norm == "max":
            return float(gap.max())
        return float(self.mass @ gap) if norm == "l1" else float(np.sqrt(self.mass @ gap**2))

    def interval(self, level: float = 0.95) -> tuple[Float64s, Float64s]:
        r"""Compute Wilson's confidence interval for the probability of "yes" in each bin.

        Always inside [0, 1] and never of length 0, also in bins where every answer was the same. The
        intervals hold bin by bin, not all at once: of 20 bins of a calibrated predictor, one is expected
        to miss at 95 %.

        Parameters
        ----------
        level : float, default 0.95
            Share of intervals that cover the truth, on average.

        Returns
        -------
        low, high : ndarray of shape (n_bins,)

        Notes
        -----
        Definition [1]_: all p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / m}`, for a bin of
        :math:`m` rows with frequency :math:`\hat p` and z the normal quantile of `level`. Here m is `count`,
        the number of rows: weights move :math:`\hat p` but not m, so unequal weights within a bin make the
        interval too short.

        References
        ----------
        .. [1] Wilson (1927), "Probable inference, the law of succession, and statistical inference".

        Examples
        --------
        >>> import polycal as pc
        >>> curve = pc.reliability_curve([0, 1, 1, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2)
        >>> low, high = curve.interval()
        >>> low.round(3), high.round(3)
        (array([0.095, 0.342]), array([0.905, 1.   ]))
        """
        z = NormalDist().inv_cdf((1.0 + check_real(level, "level", low=0.0, high=0.999999)) / 2.0)
        share = z**2 / self.count
        centre = (self.frequency + share / 2.0) / (1.0 + share)
        variance = (self.frequency * (1.0 - self.frequency) + share / 4.0) / self.count
        half = z * np.sqrt(variance) / (1.0 + share)
        # Rounding must push neither end beyond the frequency, nor out of [0, 1].
        low = np.clip(centre - half, 0.0, self.frequency)
        return low, np.clip(centre + half, self.frequency, 1.0)


def reliability_curve(
    y_true: Any,
    y_proba: Any,
    *,
    subset: Any = None,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> ReliabilityCurve:
    """Average predictions and outcomes of the question "is the label in `subset`?" in bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities.
    subset : list of class indices or names, optional
        As for `smooth_calibration_error`: class 1 of two, else the confidence question.
    n_bins : int, default 15
        Number of bins asked for; ties and empty bins can leave fewer.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal mass (equal predictions never part).
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    ReliabilityCurve

    Examples
    --------
    >>> import polycal as pc
    >>> curve = pc.reliability_curve([0, 1, 1, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2)
    >>> curve.predicted, curve.frequency
    (array([0.15, 0.85]), array([0.5, 1. ]))
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    check_integer(n_bins, "n_bins", minimum=1)
    check_choice(strategy, "strategy", ("uniform", "quantile"))
    return binned_curve(ask(sample, check_subset(subset, sample)), n_bins, strategy)


def binned_curve(question: Question, n_bins: int, strategy: Strategy) -> ReliabilityCurve:
    """The reliability curve of a question."""
    edges, count, mass, predicted, hits = _bin_table(question, n_bins, strategy)
    used = mass > 0
    return ReliabilityCurve(
        predicted=predicted[used] / mass[used],
        frequency=hits[used] / mass[used],
        mass=mass[used] / mass.sum(),
        count=count[used],
        edges=edges,
        question=question.text,
    )


def gap_signs(question: Question, n_bins: int, strategy: Strategy) -> StepFunction:
    """+1 on bins where "yes" is more frequent than predicted, -1 where less: the weight behind the l1 error."""
    edges, _, _, predicted, hits = _bin_table(question, n_bins, strategy)
    return StepFunction(edges[1:-1], np.sign(hits - predicted))


def _bin_table(
    question: Question, n_bins: int, strategy: Strategy
) -> tuple[Float64s, Ints, Float64s, Float64s, Float64s]:
    """Edges, and for each bin: rows, weight, weighted prediction and weighted "yes". All but edges add up."""
    edges = bin_edges(question, n_bins, strategy)
    bins = np.searchsorted(edges[1:-1], question.predicted, side="left")
    counted = slice(None) if question.weight is None else question.weight > 0
    count = np.bincount(bins[counted], minlength=edges.size - 1).astype(np.int64)
    mass, predicted, hits = (
        np.bincount(bins, weights=w, minlength=edges.size - 1).astype(np.float64)
        for w in _weighted_columns(question)
    )
    return edges, count, mass, predicted, hits


def bin_edges(question: Question, n_bins: int, strategy: Strategy) -> Float64s:
    """Edges from 0 to 1; quantile edges are weighted, so that weight 2 counts as the row twice."""
    if strategy == "uniform":
        return np.linspace(0.0, 1.0, n_bins + 1)
    levels = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    inner = np.quantile(question.predicted, levels, method="inverted_cdf", weights=question.weight)
    return np.concatenate([[0.0], np.unique(inner), [1.0]])


def _weighted_columns(question: Question) -> tuple[Float64s, Float64s, Float64s]:
    """Weight, weighted prediction and weighted outcome of each row."""
    hits = question.hits.astype(np.float64)
    if question.weight is None:
        return np.ones_like(hits), question.predicted, hits
    return question.weight, question.weight * question.predicted, question.weight * hits
