"""What an audit says, in sentences: shared by all renderers."""

import math
from typing import Any

# The error that a question may have and still be called right.
TOLERANCE = 0.02
# A set of more classes is no short answer.
_FEW_CLASSES = 13


def verdict(audit: dict[str, Any]) -> str:
    """The result in two or three plain sentences."""
    words = _searched_words(audit)
    shown = shown_groups(audit)
    slices = [one for one in audit["slices"] if one["significant"]]
    if slices and not shown and not proven_findings(audit):
        where = slices[0]["rows"]["where"]
        return f"Not calibrated {where}. Of all rows together: {words[0].lower()}{words[1:]}"
    if not shown or proven_findings(audit):
        return words
    return (
        f"Not calibrated: the test on all rows shows an error for {', '.join(shown)}. Of the searches: "
        f"{words[0].lower()}{words[1:]}"
    )


def _searched_words(audit: dict[str, Any]) -> str:
    if not audit["findings"] and audit["n_judge"]:
        return "Nothing was searched: no search was asked for."
    if not audit["findings"]:
        return (
            f"Nothing was searched: {audit['n_samples']:,} rows are too few to find a question on some and prove it "
            "on others."
        )
    proven = proven_findings(audit)
    if not proven:
        return _silent_words(audit)
    questions = [f for f in proven if f["is_question"]]
    return _question_words(audit, questions[0]) if questions else _whole_words(audit, proven[0])


def shown_groups(audit: dict[str, Any]) -> list[str]:
    """The names of the groups whose error is shown by redrawing labels."""
    return [group["name"] for group in audit["groups"] if is_shown(group, audit["alpha"])]


def is_shown(group: dict[str, Any], alpha: float) -> bool:
    """Whether a test shows an error of a group; where lists hide something of it there is no test."""
    return group["p_value"] is not None and group["p_value"] <= alpha


def bound_words(question: dict[str, Any], audit: dict[str, Any]) -> str:
    """What all rows show of a question: that it is off, or right to within so much, or that they are too few."""
    if question["at_most"] is None:
        return "-"
    if question["at_most"] <= TOLERANCE:
        return f"right to within {question['at_most']:.4f}"
    if question["at_least"] > 0:
        return f"off by at least {question['at_least']:.4f}"
    if is_shown(question, audit["alpha"]):
        return "off, how far is not shown"
    return (
        f"not enough rows (about {rows_words(audit['n_samples'], question['at_most'], TOLERANCE)} would do)"
    )


def rows_needed(n_samples: int, at_most: float, tolerance: float) -> float:
    """About how many rows would show that a question is right to within a tolerance, if it is exactly right."""
    return n_samples * (at_most / tolerance) ** 2 if tolerance else math.inf


def rows_words(n_samples: int, at_most: float, tolerance: float) -> str:
    """The same to one digit, such as "20,000"."""
    return f"{float(f'{rows_needed(n_samples, at_most, tolerance):.1g}'):,.0f}"


def between(low: float, high: float | None, form: str = ".4f") -> str:
    """A number, or the two that it lies between."""
    return f"{low:{form}}" if high is None else f"{low:{form}} to {high:{form}}"


def score(scores: dict[str, float], name: str, form: str = ".4f") -> str:
    """A score, or what lists leave of it."""
    return between(scores[name], scores.get(f"{name}_high"), form)


def proven_findings(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """The significant findings, largest proven error first."""
    return [finding for finding in audit["findings"] if finding["significant"]]


def reading_words(reading: dict[str, Any]) -> str:
    """Where a question is answered worst, such as "says 0.62, is 0.55 (23% of rows)"."""
    if reading["predicted"] is None:
        return "-"
    return f"says {reading['predicted']:.3f}, is {reading['observed']:.3f} ({reading['share']:.0%} of rows)"


def path_words(audit: dict[str, Any]) -> str:
    """What the path of sets says: how few classes show most of the error."""
    path, shown = audit["path"], shown_of(audit)
    largest = max(finding["at_least"] for finding in path)
    if largest == 0 or shown is None:
        return "No set of classes is proven wrong, however many it may have."
    size, share = len(shown["subset"]), shown["at_least"] / largest
    if size > _FEW_CLASSES:
        return f"The error is spread out: it takes {size:,} classes to show most of it."
    classes = "1 class shows" if size == 1 else f"{size:,} classes show"
    return f"{classes} {share:.0%} of the largest error that is proven for any set."


def shown_of(audit: dict[str, Any]) -> dict[str, Any] | None:
    """The finding of the path that is shown first."""
    asked = [(finding["source"], finding["question"]) for finding in audit["findings"]]
    return next((f for f in audit["path"] if (f["source"], f["question"]) in asked), None)


def _question_words(audit: dict[str, Any], worst: dict[str, Any]) -> str:
    return f'Not calibrated. The worst question found is "{worst["question"]}" {_size(audit, worst)}'


def _whole_words(audit: dict[str, Any], worst: dict[str, Any]) -> str:
    return (
        f"Not calibrated, though no single question searched shows it: residuals depend on the prediction as a whole "
        f"({worst['question']}). {_size(audit, worst)}"
    )


def _size(audit: dict[str, Any], finding: dict[str, Any]) -> str:
    bound = finding["lower_bound"]
    at_least = (
        f"and at least {bound:.4f} with {1 - audit['alpha']:.0%} confidence"
        if bound > 0
        else "and a test by all rows shows it, though not how large it is at least"
    )
    return (
        f"On {audit['n_judge']:,} rows the search never saw, its error is {finding['estimate']:.4f}, {at_least}. "
        f"{_where(finding['reading'], finding['question'])}"
    ).rstrip()


def _where(reading: dict[str, Any], question: str) -> str:
    if reading["predicted"] is None:
        return ""
    low, high, says, is_ = (reading[key] for key in ("low", "high", "predicted", "observed"))
    asked = "its answer" if reading["question"] == question else f'the answer to "{reading["question"]}"'
    return (
        f"Where {asked} is between {low:.2f} and {high:.2f} ({reading['share']:.0%} of rows), it says {says:.3f} on "
        f"average, and is {is_:.3f}."
    )


def _silent_words(audit: dict[str, Any]) -> str:
    # The best-powered search says what could have been seen; it is no proof of calibration.
    smallest = min(f["detectable"] for f in audit["findings"])
    return (
        f"No miscalibration was proven on {audit['n_judge']:,} rows the search never saw. That does not mean "
        f"calibrated: along the best of the questions tried, an error of about {smallest:.4f} would have been "
        "found 4 times in 5, a smaller one less often."
    )
