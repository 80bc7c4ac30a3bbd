"""What an audit returns: frozen results that print, and turn into plain data."""

from dataclasses import dataclass
from typing import Any

from polycal.inference.certificate import Certificate
from polycal.inference.reading import Reading
from polycal.notions._base import ErrorEstimate
from polycal.report.fragment import render_fragment
from polycal.report.terminal import render_text
from polycal.witness._base import Witness
from polycal.witness.question import SubsetWitness, TopWitness


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
    noise_floor : float or None
        What calibrated predictions would read: the mean of `smooth_error` over redrawn labels. None for
        classes, of which there may be thousands.
    p_value : float or None
        Of the hypothesis that the predictions are calibrated, by redrawing labels; Holm-adjusted over the groups.
    """

    name: str
    classes: tuple[str, ...]
    predicted: float
    frequency: float
    smooth_error: float
    noise_floor: float | None = None
    p_value: float | None = None


@dataclass(frozen=True, eq=False)
class MeasuredError:
    """A notion's plug-in error with the noise floor it must be read against.

    Attributes
    ----------
    estimate : ErrorEstimate
        The error on all rows.
    noise_floor : float or None
        Its mean over redrawn labels: what calibrated predictions would read. None where that costs too much.
    """

    estimate: ErrorEstimate
    noise_floor: float | None


@dataclass(frozen=True, eq=False)
class Finding:
    """A witness found on one part of the rows and judged on the other.

    Attributes
    ----------
    source : str
        The notion or auditor that led to it.
    witness : Witness
        The weight function.
    certificate : Certificate
        Its correlation with the residual on rows that the search never saw.
    adjusted_p_value : float
        The certificate's p-value after Holm's correction for all findings of the audit.
    significant : bool
        Whether the adjusted p-value is at most the audit's alpha.
    reading : Reading
        Where the predictions say one thing and the outcomes another, in numbers.
    detectable : float
        The correlation along this witness that would have been found significant with probability about 0.8.
    """

    source: str
    witness: Witness
    certificate: Certificate
    adjusted_p_value: float
    significant: bool
    reading: Reading
    detectable: float

    @property
    def question(self) -> str:
        """What the witness looks at, in words."""
        return self.witness.describe()

    @property
    def is_question(self) -> bool:
        """Whether the witness weighs one yes/no question, and not the whole prediction."""
        return isinstance(self.witness, SubsetWitness | TopWitness)


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit measured, found and proved. Print it, or turn it into plain data with `to_dict`.

    Attributes
    ----------
    n_samples, n_classes : int
        Size of the audited predictions.
    n_fit, n_judge : int
        Rows on which witnesses were searched, and rows on which they were judged; 0 if there were too few.
    alpha : float
        Level of tests and bounds.
    random_state : int
        Seed of everything random.
    scores : dict of str to float
        Accuracy, Brier score and log loss.
    errors : tuple of MeasuredError
        The notions measured, on all rows.
    findings : tuple of Finding
        Witnesses judged on unseen rows, the largest proven error first.
    classes : tuple of QuestionError
        Every class as a question, worst first.
    groups : tuple of QuestionError
        Every named group as a question, in the order given.
    """

    n_samples: int
    n_classes: int
    n_fit: int
    n_judge: int
    alpha: float
    random_state: int
    scores: dict[str, float]
    errors: tuple[MeasuredError, ...]
    findings: tuple[Finding, ...]
    classes: tuple[QuestionError, ...]
    groups: tuple[QuestionError, ...]

    @property
    def worst(self) -> Finding | None:
        """The yes/no question with the largest proven error; None if there were too few rows to search.

        Findings about the whole prediction (a kernel's, say) are on another scale, up to 2, and no question to act
        on: they stand here only if no question was searched.
        """
        questions = [f for f in self.findings if f.is_question]
        return next(iter(questions or self.findings), None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and dictionaries: ready for JSON."""
        return {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "n_fit": self.n_fit,
            "n_judge": self.n_judge,
            "alpha": self.alpha,
            "random_state": self.random_state,
            "scores": dict(self.scores),
            "errors": [_error_dict(e) for e in self.errors],
            "findings": [_finding_dict(f) for f in self.findings],
            "classes": [_question_dict(q) for q in self.classes],
            "groups": [_question_dict(q) for q in self.groups],
        }

    def to_frame(self) -> Any:
        """The findings as a pandas data frame, one row each."""
        import pandas as pd  # noqa: PLC0415 - an optional dependency

        return pd.DataFrame([_flat(f) for f in self.to_dict()["findings"]])

    def __str__(self) -> str:
        return render_text(self.to_dict())

    def __repr__(self) -> str:
        proven = sum(f.significant for f in self.findings)
        size = f"n_samples={self.n_samples}, n_classes={self.n_classes}"
        return f"Audit({size}, findings={len(self.findings)}, proven={proven})"

    def _repr_html_(self) -> str:
        return render_fragment(self.to_dict())


def _error_dict(error: MeasuredError) -> dict[str, Any]:
    return {
        "notion": error.estimate.notion.name,
        "value": error.estimate.value,
        "kind": error.estimate.kind,
        "method": error.estimate.method,
        "noise_floor": error.noise_floor,
    }


def _finding_dict(finding: Finding) -> dict[str, Any]:
    certificate, reading, witness = finding.certificate, finding.reading, finding.witness
    return {
        "source": finding.source,
        "question": finding.question,
        "is_question": finding.is_question,
        "subset": list(witness.subset) if isinstance(witness, SubsetWitness) else None,
        "estimate": certificate.estimate,
        "lower_bound": certificate.lower_bound,
        "p_value": certificate.p_value,
        "adjusted_p_value": finding.adjusted_p_value,
        "significant": finding.significant,
        "detectable": finding.detectable,
        "reading": {
            "question": reading.question,
            "low": reading.low,
            "high": reading.high,
            "predicted": _number(reading.predicted),
            "observed": _number(reading.observed),
            "share": reading.share,
        },
    }


def _question_dict(question: QuestionError) -> dict[str, Any]:
    return {
        "name": question.name,
        "classes": list(question.classes),
        "predicted": question.predicted,
        "frequency": question.frequency,
        "smooth_error": question.smooth_error,
        "noise_floor": question.noise_floor,
        "p_value": question.p_value,
    }


def _number(value: float) -> float | None:
    """NaN is not JSON."""
    return None if value != value else value  # noqa: PLR0124 - NaN differs from itself


def _flat(finding: dict[str, Any]) -> dict[str, Any]:
    reading = finding.pop("reading")
    return finding | {"says": reading["predicted"], "is": reading["observed"], "share": reading["share"]}
