"""The parts of an audit as plain numbers, strings, lists and dictionaries."""

from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

from polycal._version import __version__
from polycal.families.questions import SubsetWitness

if TYPE_CHECKING:
    from polycal._audit.result import Finding, MeasuredError, QuestionError


def error_dict(error: "MeasuredError") -> dict[str, Any]:
    """A notion's error."""
    return {
        "notion": error.estimate.notion.name,
        "definition": repr(error.estimate.notion),
        "value": error.estimate.value,
        "kind": error.estimate.kind,
        "method": error.estimate.method,
        "noise_floor": error.noise_floor,
    }


def finding_dict(finding: "Finding") -> dict[str, Any]:
    """A finding with its certificate and its reading."""
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


def question_dict(question: "QuestionError") -> dict[str, Any]:
    """A class or a group."""
    return {
        "name": question.name,
        "classes": list(question.classes),
        "predicted": question.predicted,
        "frequency": question.frequency,
        "smooth_error": question.smooth_error,
        "chance": question.chance,
        "noise_floor": question.noise_floor,
        "p_value": question.p_value,
        "smallest_p_value": question.smallest_p_value,
    }


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return {"polycal": __version__, "python": python_version()} | others


def _number(value: float) -> float | None:
    """NaN is not JSON."""
    return None if value != value else value  # noqa: PLR0124 - NaN differs from itself


def flat(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding's dictionary without nested ones, for a data frame."""
    reading = finding.pop("reading")
    return finding | {"says": reading["predicted"], "is": reading["observed"], "share": reading["share"]}
