"""Ranks: is the label among the m most likely classes as often as their probabilities sum to?"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal._validation import check_integer
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import A_FUNCTION, Witness
from polycal.measures.functions import ScalarFunction
from polycal.measures.smooth import least_gains, smooth_interval
from polycal.sample import Sample, ask_top_set
from polycal.storage.rules import Whole

# What an audit asks by default.
RANKS = (2, 3, 5, 10)


@dataclass(frozen=True)
class TopSet(Notion):
    r"""Calibration of ranks: is the label among the m most likely classes as often as their probabilities say?

    Parameters
    ----------
    m : int, default 5
        How many classes; 1 is `Confidence` with ``smooth=True``.

    Notes
    -----
    Definition: the weights are :math:`\varphi(\sum_{\ell \in T(v)} v_\ell) 1_{T(v)}` with 1-Lipschitz :math:`\varphi`
    and :math:`T(v)` the m most likely classes (the first of equals). Estimator: plug-in, exact. Cost: O(nk) to find
    the classes, then O(n log n). Bias: upwards, of order :math:`n^{-1/2}`.

    Lists of at least m of the most likely classes tell it exactly. Of shorter ones the value is the least that the
    error can be: a label that is not listed may be among the m most likely, or not.

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    >>> pc.calibration_error([0, 0], y_proba, pc.TopSet(2))
    0.25
    """

    m: int = 5
    name: ClassVar[str] = "top-set"
    reads_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer(self.m, "m", minimum=1)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        question = ask_top_set(sample, self.m)
        interval, phi = smooth_interval(question)
        return ErrorEstimate(
            value=interval.low,
            kind="exact" if question.low is None else "lower bound",
            notion=self,
            method="exact supremum over 1-Lipschitz weights",
            n_steps=1,
            n_samples=sample.n_samples,
            witness=TopSetWitness(self.m, phi.simplified(), sample.n_classes, sample.class_names),
            upper=None if question.low is None else interval.high,
        )


@dataclass(frozen=True, eq=False, repr=False)
class TopSetWitness(Witness):
    """w(v) = phi(<1_T, v>) 1_T with T the m most likely classes: is the label among them?

    Attributes
    ----------
    m : int
        How many.
    phi : LipschitzFunction or StepFunction
        The weight as a function of their probability.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> pc.estimate_error(made.labels, made.proba, pc.TopSet(2)).witness
    TopSetWitness(is it among the 2 most likely?)
    """

    m: Annotated[int, Whole(low=1)]
    phi: Annotated[ScalarFunction, A_FUNCTION]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "top-set"

    def evaluate(self, proba: Floats) -> Float64s:
        """``phi`` of the probability of the most likely classes on them, 0 elsewhere."""
        chosen = np.argsort(-proba, axis=1, kind="stable")[:, : self.m]
        total = np.take_along_axis(proba, chosen, axis=1).sum(axis=1, dtype=np.float64)
        out = np.zeros(proba.shape)
        np.put_along_axis(out, chosen, self.phi(np.minimum(total, 1.0))[:, None], axis=1)
        return out

    def correlations(self, sample: Sample) -> Float64s:
        """``(1[y in T] - <1_T, v>) phi(<1_T, v>)``, of lists the least that it can be."""
        self._check_classes(sample)
        question = ask_top_set(sample, self.m)
        if question.low is not None:
            return least_gains(self.phi, question)
        return (question.hits - question.predicted) * self.phi(question.predicted)

    def describe(self) -> str:
        """The question asked."""
        return "is the most likely class right?" if self.m == 1 else f"is it among the {self.m} most likely?"
