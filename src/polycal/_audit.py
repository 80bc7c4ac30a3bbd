"""The facade: one call that measures a classifier's probabilities, and the result object people read."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Ints
from polycal._validation import check_groups, check_sample
from polycal.notions._base import ErrorEstimate, Notion
from polycal.notions.classwise import Classwise
from polycal.notions.confidence import Confidence
from polycal.notions.top_label import TopLabel
from polycal.question import Question, ask_subset
from polycal.report.terminal import render_text
from polycal.sample import Sample
from polycal.scores import sample_scores
from polycal.smooth import smooth_error

DEFAULT_NOTIONS: tuple[Notion, ...] = (
    Confidence(),
    Confidence(smooth=True),
    TopLabel(smooth=True),
    Classwise(smooth=True),
)


@dataclass(frozen=True)
class QuestionError:
    """One named yes/no question and its exact smooth calibration error.

    Attributes
    ----------
    name : str
        The class's or group's name.
    classes : tuple of str
        Names of the classes that count as "yes".
    predicted, frequency : float
        Mean predicted probability and observed share of "yes".
    smooth_error : float
        Exact smooth calibration error (plug-in, biased upwards).
    """

    name: str
    classes: tuple[str, ...]
    predicted: float
    frequency: float
    smooth_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit measured. Print it, or turn it into plain data with `to_dict`.

    Attributes
    ----------
    n_samples, n_classes : int
        Size of the audited predictions.
    scores : dict of str to float
        Accuracy, Brier score and log loss.
    errors : tuple of ErrorEstimate
        The notions measured.
    classes : tuple of QuestionError
        Every class as a question, worst first.
    groups : tuple of QuestionError
        Every named group as a question, in the order given.
    """

    n_samples: int
    n_classes: int
    scores: dict[str, float]
    errors: tuple[ErrorEstimate, ...]
    classes: tuple[QuestionError, ...]
    groups: tuple[QuestionError, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and dictionaries: ready for JSON."""
        return {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "scores": dict(self.scores),
            "errors": [_error_dict(e) for e in self.errors],
            "classes": [_question_dict(q) for q in self.classes],
            "groups": [_question_dict(q) for q in self.groups],
        }

    def __str__(self) -> str:
        return render_text(self.to_dict())

    def __repr__(self) -> str:
        return f"Audit(n_samples={self.n_samples}, n_classes={self.n_classes}, n_errors={len(self.errors)})"


def audit(
    y_true: Any,
    y_proba: Any,
    *,
    notions: tuple[Notion, ...] = DEFAULT_NOTIONS,
    groups: Any = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> Audit:
    """Measure which questions about the label the predicted probabilities can be trusted for.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities. String columns of a data frame are the class names.
    notions : tuple of Notion, optional
        What to measure beside the classes and groups.
    groups : mapping of str to list of classes, optional
        Sets of classes whose summed probability matters, such as ``{"animal": ["cat", "dog"]}``.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import polycal as pc
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> audit = pc.audit(
    ...     example.labels, example.proba, class_names=example.class_names,
    ...     groups={"footwear": ["Sandal", "Sneaker", "Ankle_boot"]},
    ... )
    >>> audit.groups[0].name, round(audit.groups[0].smooth_error, 4)
    ('footwear', 0.0005)
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    named = check_groups(groups, sample)
    singles = {sample.name(c): np.array([c]) for c in range(sample.n_classes)}
    classes = _question_errors(sample, singles)
    return Audit(
        n_samples=sample.n_samples,
        n_classes=sample.n_classes,
        scores=sample_scores(sample),
        errors=tuple(notion.estimate(sample) for notion in notions),
        classes=tuple(sorted(classes, key=lambda q: -q.smooth_error)),
        groups=tuple(_question_errors(sample, named)),
    )


def _question_errors(sample: Sample, subsets: dict[str, Ints]) -> list[QuestionError]:
    """Each named subset as a question, measured on all cores."""

    def measure(item: tuple[str, Ints]) -> QuestionError:
        name, subset = item
        question = ask_subset(sample, subset)
        return QuestionError(
            name=name,
            classes=tuple(sample.name(int(c)) for c in subset),
            predicted=_average(question, question.predicted),
            frequency=_average(question, question.hits.astype(np.float64)),
            smooth_error=smooth_error(question),
        )

    return map_threads(measure, subsets.items())


def _average(question: Question, values: Any) -> float:
    return float(np.average(values, weights=question.weight))


def _error_dict(error: ErrorEstimate) -> dict[str, Any]:
    return {
        "notion": error.notion.name,
        "value": error.value,
        "kind": error.kind,
        "method": error.method,
    }


def _question_dict(question: QuestionError) -> dict[str, Any]:
    return {
        "name": question.name,
        "classes": list(question.classes),
        "predicted": question.predicted,
        "frequency": question.frequency,
        "smooth_error": question.smooth_error,
    }
