"""Top-label calibration: confidence calibration for each predicted class separately."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.functions import StepFunction
from polycal.notions._base import ErrorEstimate
from polycal.notions._per_question import PerQuestion
from polycal.question import Question, top_class
from polycal.sample import Sample
from polycal.witness.question import TopWitness


@dataclass(frozen=True)
class TopLabel(PerQuestion):
    r"""Top-label calibration: confidence calibration for each predicted class separately.

    Parameters
    ----------
    n_bins, strategy, norm, smooth
        As for `Confidence`; equal-mass bins are made for each predicted class.

    Notes
    -----
    Definition: the weights are :math:`\varphi(v_\ell, \ell)\,e_\ell` with :math:`\ell = \arg\max v`, so the error
    is the sum over predicted classes of their share times the confidence error among them. Estimator: plug-in.
    Cost: O(nk) plus a sort. Bias: upwards, of order :math:`\sqrt{kb/n}` for b bins.

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    >>> pc.calibration_error([0, 0, 1, 0], y_proba, pc.TopLabel())
    0.25
    """

    name: ClassVar[str] = "top-label"

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        questions = _questions_by_label(sample)
        total = sum(_mass(q) for q in questions.values())
        shares = np.array([_mass(q) / total for q in questions.values()])
        errors = np.array([self._error(q) for q in questions.values()])
        phis = tuple(
            self._weight(questions[c]) if c in questions else _NOWHERE for c in range(sample.n_classes)
        )
        return ErrorEstimate(
            self._combine(shares, errors),
            "exact",
            self,
            self._method,
            errors.size,
            sample.n_samples,
            TopWitness(phis, sample.n_classes, sample.class_names),
        )

    def _combine(self, shares: Float64s, errors: Float64s) -> float:
        """The error over all predicted classes from the error among each."""
        if self.smooth or self.norm == "l1":
            return float(shares @ errors)
        return float(errors.max()) if self.norm == "max" else float(np.sqrt(shares @ errors**2))


# The weight of a class that is never predicted.
_NOWHERE = StepFunction(np.empty(0), np.zeros(1))


def _questions_by_label(sample: Sample) -> dict[int, Question]:
    """For each predicted class (with any weight): is it right, among the rows that predict it?"""
    top, confidence = top_class(sample)
    order = np.argsort(top, kind="stable")
    starts = np.flatnonzero(np.diff(top[order], prepend=-1))
    questions = {}
    for rows in np.split(order, starts[1:]):
        label = int(top[rows[0]])
        weight = None if sample.sample_weight is None else sample.sample_weight[rows]
        if weight is None or weight.sum() > 0:
            hits = sample.labels[rows] == label
            questions[label] = Question(
                confidence[rows], hits, weight, f"is it {sample.name(label)}, as predicted?"
            )
    return questions


def _mass(question: Question) -> float:
    return float(question.predicted.size if question.weight is None else question.weight.sum())
