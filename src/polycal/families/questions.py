"""Yes/no questions fixed in advance: confidence, the top label, every class; and their witnesses."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Float64s, Floats, Ints
from polycal._validation import check_choice, check_integer
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import A_FUNCTION, Witness, function_steps, linear
from polycal.listed import ListedSample
from polycal.measures.binned import Norm, Strategy, binned_curve, gap_signs
from polycal.measures.functions import LipschitzFunction, ScalarFunction, StepFunction
from polycal.measures.smooth import least_gains, smooth_error, smooth_interval
from polycal.sample import (
    Question,
    Sample,
    ask_confidence,
    ask_subset,
    likely_classes,
    subset_sums,
    subset_words,
)
from polycal.steps import Product, Program, Top
from polycal.storage.rules import Array, Part, expect


@dataclass(frozen=True)
class PerQuestion(Notion):
    """Parameters common to confidence, top-label and class-wise calibration."""

    n_bins: int = 15
    strategy: Strategy = "uniform"
    norm: Norm = "l1"
    smooth: bool = False
    reads_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer(self.n_bins, "n_bins", minimum=1)
        check_choice(self.strategy, "strategy", ("uniform", "quantile"))
        check_choice(self.norm, "norm", ("l1", "l2", "max"))

    def _error(self, question: Question) -> float:
        if self.smooth:
            return smooth_error(question)
        return binned_curve(question, self.n_bins, self.strategy).error(self.norm)

    def _range(self, question: Question) -> tuple[float, float]:
        """The least and the most that the error can be; the same, unless lists hide something."""
        if question.low is None:
            error = self._error(question)
            return error, error
        if not self.smooth:
            raise TypeError(
                "y_proba lists only some classes, so the bins of the others are not known: use smooth=True, or "
                "remainder='spread' or 'class'."
            )
        interval = smooth_interval(question)[0]
        return interval.low, interval.high

    def _weight(self, question: Question) -> ScalarFunction:
        """The function phi of the predicted probability that attains the error (of the l1 norm, for bins)."""
        if self.smooth:
            return smooth_interval(question)[1].simplified()
        return gap_signs(question, self.n_bins, self.strategy)

    @property
    def _method(self) -> str:
        if self.smooth:
            return "exact supremum over 1-Lipschitz weights"
        shape = "equal-width" if self.strategy == "uniform" else "equal-mass"
        norm = "" if self.norm == "l1" else f", {self.norm} norm"
        return f"{self.n_bins} {shape} bins{norm}"


@dataclass(frozen=True)
class Confidence(PerQuestion):
    r"""Confidence calibration: is the most likely class right as often as its probability says?

    Parameters
    ----------
    n_bins : int, default 15
        Number of bins.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal mass.
    norm : {"l1", "l2", "max"}
        Mean, root mean square or largest gap over the bins; "l1" is the expected calibration error (ECE).
    smooth : bool, default False
        Whether to take the exact supremum over 1-Lipschitz weights instead of bins (no parameters then).

    Notes
    -----
    Definition: the weights are :math:`\varphi(v_\ell)\,e_\ell` with :math:`\ell = \arg\max v` (the first of
    equals); any :math:`\varphi` that is constant on bins, or any 1-Lipschitz one. A bin holds its upper edge.
    Estimator: plug-in. Cost: O(nk) to find the maximum, then O(n log n). Bias: upwards, of order
    :math:`\sqrt{b/n}` for b bins; in the other direction bins hide what cancels inside one.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.calibration_error([0, 1], [[0.75, 0.25], [0.75, 0.25]], pc.Confidence())
    0.25
    """

    name: ClassVar[str] = "confidence"

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        question = ask_confidence(sample)
        witness = TopWitness((self._weight(question),), sample.n_classes, sample.class_names)
        return ErrorEstimate(self._error(question), "exact", self, self._method, 1, sample.n_samples, witness)


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
    top, confidence = sample.top_class()
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


Reduce = Literal["max", "mean", "sum"]
# Classes of lists that are measured one by one.
MOST_CLASSES = 1000


@dataclass(frozen=True)
class Classwise(PerQuestion):
    r"""Class-wise calibration: does each class occur as often as its probability says?

    Parameters
    ----------
    n_bins, strategy, norm, smooth
        As for `Confidence`, applied to each class's own probability.
    reduce : {"max", "mean", "sum"}
        How the errors of the classes become one number: the worst class (the definition as a weight
        family), their mean (the "class-wise ECE" of the literature), or their sum.

    Notes
    -----
    Definition: the weights are :math:`\varphi(v_\ell)\,e_\ell` for each class :math:`\ell`. Estimator: plug-in.
    Cost: k sorts of n numbers, on all cores. Bias: upwards; the maximum over many classes also picks noise.
    The witness of an estimate is that of the worst class.
    Of lists, the 1,000 classes with the most mass are measured, each by an interval. The error of any other class is
    between 0 and the sum of its frequency and of the most that its mean probability can be, so that the value and its
    upper end hold for all classes.
    Blind to sums: every class may be calibrated while the probability of "cat or dog" is far off.

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    >>> pc.calibration_error([0, 0, 1, 0], y_proba, pc.Classwise())
    0.25
    """

    reduce: Reduce = "max"
    name: ClassVar[str] = "classwise"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.reduce, "reduce", ("max", "mean", "sum"))

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        classes, low, high = self.ranges(sample)
        worst = classes[[int(np.argmax(low))]]
        phi = self._weight(ask_subset(sample, worst))
        least, most = np.zeros((2, sample.n_classes))
        least[classes], most[classes] = low, high
        if isinstance(sample, ListedSample) and classes.size < sample.n_classes:
            others = np.setdiff1d(np.arange(sample.n_classes), classes)
            most[others] = (sample.frequency() + sample.mean_most())[others]
        value, upper = (float(getattr(np, self.reduce)(errors)) for errors in (least, most))
        return ErrorEstimate(
            value=value,
            kind="exact" if value == upper else "lower bound",
            notion=self,
            method=f"{self.reduce} over classes, {self._method}",
            n_steps=classes.size,
            n_samples=sample.n_samples,
            witness=SubsetWitness(worst, phi, sample.n_classes, sample.class_names),
            upper=None if value == upper else upper,
        )

    def errors(self, sample: Sample) -> Float64s:
        """The error of each class, or the least that it can be; of lists with many classes, of the likely ones."""
        return self.ranges(sample)[1]

    def ranges(self, sample: Sample) -> tuple[Ints, Float64s, Float64s]:
        """Classes with the least and the most that their errors can be: all classes, or of lists the likely ones."""
        classes = likely_classes(sample, MOST_CLASSES if sample.is_listed else sample.n_classes)
        ranges = map_threads(lambda c: self._range(ask_subset(sample, np.array([c]))), classes)
        low, high = np.array(ranges).T
        return classes, low, high


@dataclass(frozen=True, eq=False, repr=False)
class SubsetWitness(Witness):
    """w(v) = 1_T phi(<1_T, v>): is the label in T?

    Attributes
    ----------
    members : ndarray of int64
        The classes of T, increasing.
    phi : LipschitzFunction or StepFunction
        The weight as a function of the predicted probability of T.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.SubsetAuditor(max_size=2).find_witness(made.labels, made.proba)
    >>> len(witness.subset) <= 2
    True
    """

    members: Annotated[Ints, Array("int64", "n_members", low=0, below="n_classes", rises=True)]
    phi: Annotated[ScalarFunction, A_FUNCTION]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "subset"

    def _check(self) -> None:
        super()._check()
        expect(self.members.size, "a subset must have at least one class")

    @property
    def subset(self) -> list[int] | list[str]:
        """The classes of T: names if known, else indices."""
        if self.class_names is None:
            return [int(c) for c in self.members]
        return [self.class_names[c] for c in self.members]

    def evaluate(self, proba: Floats) -> Float64s:
        """``phi`` of the subset's probability on its members, 0 elsewhere."""
        out = np.zeros(proba.shape)
        out[:, self.members] = self.phi(subset_sums(proba, self.members))[:, None]
        return out

    def correlations(self, sample: Sample) -> Float64s:
        """``<1_T, y - v> phi(<1_T, v>)``, without the ``(n, k)`` values; of lists the least that it can be."""
        self._check_classes(sample)
        low, high = sample.subset_range(self.members)
        hits = sample.subset_hits(self.members)
        if not sample.hides:
            return (hits - low) * self.phi(low)
        return least_gains(self.phi, Question(low, hits, None, "", low, high))

    def describe(self) -> str:
        """The question asked."""
        return subset_words(self.members, self.name)

    def to_steps(self) -> Program:
        """The probability of the subset, ``phi`` of it, and that on the members."""
        is_member = np.isin(np.arange(self.n_classes), self.members).astype(np.float64)
        return linear(is_member[:, None]), *function_steps([self.phi]), linear(is_member[None])


@dataclass(frozen=True, eq=False, repr=False)
class TopWitness(Witness):
    """w(v) = phi_l(v_l) e_l with l = argmax v: is the most likely class right?

    Attributes
    ----------
    phis : tuple of LipschitzFunction or StepFunction
        One function for all predicted classes (confidence), or one for each (top-label).

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> pc.estimate_error(made.labels, made.proba, pc.Confidence(smooth=True)).witness
    TopWitness(is the most likely class right?)
    """

    phis: Annotated[tuple[ScalarFunction, ...], Part((LipschitzFunction, StepFunction), many="n_phis")]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "top"

    def _check(self) -> None:
        super()._check()
        expect(len(self.phis) in {1, self.n_classes}, "there must be one function, or one for each class")

    def evaluate(self, proba: Floats) -> Float64s:
        """``phi`` of the largest probability at the most likely class, 0 elsewhere."""
        top = np.argmax(proba, axis=1)
        rows = np.arange(top.size)
        out = np.zeros(proba.shape)
        out[rows, top] = self._weights(top, proba[rows, top].astype(np.float64))
        return out

    def correlations(self, sample: Sample) -> Float64s:
        """``(1[y = l] - v_l) phi_l(v_l)`` with l = argmax v, without the ``(n, k)`` values."""
        self._check_classes(sample)
        top, confidence = sample.top_class()
        values: Float64s = ((top == sample.labels) - confidence) * self._weights(top, confidence)
        return values

    def _weights(self, top: Ints, confidence: Float64s) -> Float64s:
        if len(self.phis) == 1:
            return self.phis[0](confidence)
        weights = np.zeros(top.size)
        for label in np.unique(top):
            weights[top == label] = self.phis[label](confidence[top == label])
        return weights

    def describe(self) -> str:
        """The question asked."""
        return "is the most likely class right?" + (
            "" if len(self.phis) == 1 else " (for each class it may be)"
        )

    def to_steps(self) -> Program:
        """The function of each class at its own probability, kept where the class is the most likely one."""
        top, k = (Top(),), self.n_classes
        if len(self.phis) > 1:
            return (Product((top, function_steps(self.phis))),)
        confidence = Product(((), top)), linear(np.ones((k, 1)))
        return (Product((top, (*confidence, *function_steps(self.phis)))),)
