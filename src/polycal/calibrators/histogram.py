"""One-vs-rest histogram binning: a step function for each class."""

from typing import ClassVar, get_args

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_choice, check_integer
from polycal.calibrators._base import Calibrator
from polycal.measures.binned import Strategy, bin_edges
from polycal.sample import Question, Sample, ask_subset
from polycal.steps import Lookup, Normalise, Program


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
        functions = [_fit_class(question, self.n_bins, self.strategy) for question in questions]
        knots, heights = (np.concatenate(part) for part in zip(*functions, strict=True))
        starts = np.cumsum([0] + [function[0].size for function in functions])
        uniform = np.full(sample.n_classes, 1.0 / sample.n_classes)
        return Lookup(knots, heights, starts), Normalise(uniform)


def _fit_class(question: Question, n_bins: int, strategy: Strategy) -> tuple[Float64s, Float64s]:
    """Lower edges (the first without limit) and frequencies of one class's bins."""
    edges = bin_edges(question, n_bins, strategy)
    bins = np.searchsorted(edges[1:-1], question.predicted)
    weight = np.ones(bins.size) if question.weight is None else question.weight
    # A class that does not occur cannot be learnt about.
    outcome = question.hits if weight @ question.hits > 0.0 else question.predicted
    mass, total = (np.bincount(bins, weights=w, minlength=edges.size - 1) for w in (weight, weight * outcome))
    centre = (edges[:-1] + edges[1:]) / 2.0
    heights = np.where(mass > 0.0, total / np.where(mass > 0.0, mass, 1.0), centre)
    return np.concatenate([[-np.inf], edges[1:-1]]), heights
