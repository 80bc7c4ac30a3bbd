"""An audit in plain words: the verdict, the worst question, what to do. For readers who never heard of calibration."""

from typing import Any

from polycal.report.costs import cost_advice
from polycal.report.slices import proven_slices, slice_advice
from polycal.report.words import is_shown, proven_findings, shown_groups

# What can be said: an error is proven; none is; none was searched for.
MISCALIBRATED, SILENT, UNSEARCHED = "miscalibrated", "silent", "unsearched"

# An error below half a percentage point seldom changes a decision.
_SMALL = 0.005
_HEADLINES = {
    MISCALIBRATED: "Do not take these probabilities at their word.",
    SILENT: "No reason for distrust was found.",
    UNSEARCHED: "Too few rows to tell.",
}
_BADGES = {MISCALIBRATED: "Not calibrated", SILENT: "Nothing proven", UNSEARCHED: "Not searched"}


def summarise(audit: dict[str, Any]) -> dict[str, Any]:
    """What the first screen of every report says, as short strings."""
    state = _state(audit)
    worst = _worst(audit)
    return {
        "state": state,
        "badge": _BADGES[state],
        "headline": _headline(audit, state),
        "worst": None if worst is None else _worst_words(audit, worst),
        "because": _because(audit, state, worst),
        "advice": [
            *_advice(audit, state, worst),
            *_group_advice(audit),
            *slice_advice(audit),
            *cost_advice(audit["costs"]),
        ],
        "comparison": None if audit["after"] is None else _comparison(audit),
    }


def one_line(audit: dict[str, Any]) -> str:
    """The verdict, and the worst question if there is one."""
    said = summarise(audit)
    worst = _worst(audit)
    if worst is None:
        return str(said["headline"])
    shown = worst["lower_bound"] > 0
    size = f"Off by at least {points(worst['lower_bound'])}." if shown else "How far off is not known."
    return f"{said['headline']} Worst: {worst['question']} {size}"


def _state(audit: dict[str, Any]) -> str:
    if proven_findings(audit) or shown_groups(audit) or proven_slices(audit):
        return MISCALIBRATED
    return SILENT if audit["findings"] else UNSEARCHED


def _headline(audit: dict[str, Any], state: str) -> str:
    if state == UNSEARCHED and audit["n_judge"]:
        return "Measured, but not searched."
    return "Errors are proven, but small ones." if _is_small(audit, state) else _HEADLINES[state]


def _is_small(audit: dict[str, Any], state: str) -> bool:
    """Whether all that is proven is small; what a kernel finds has no such scale."""
    proven = proven_findings(audit)
    shown = [group["smooth_error"] for group in audit["groups"] if is_shown(group, audit["alpha"])]
    slices = [one["estimate"] for one in proven_slices(audit)]
    sizes = [finding["estimate"] for finding in proven] + shown + slices
    return state == MISCALIBRATED and max(sizes) < _SMALL


def _worst(audit: dict[str, Any]) -> dict[str, Any] | None:
    """The worst proven question."""
    return next((finding for finding in proven_findings(audit) if finding["is_question"]), None)


def points(error: float) -> str:
    """An error as percentage points: with weights in [-1, 1], answers are off by at least this on average."""
    return f"{100 * max(error, 0):.2g} percentage points"


def percents(*values: float) -> list[str]:
    """Probabilities as percentages, with a decimal where they would look alike without."""
    close = max(values) - min(values) < 0.02
    return [f"{value:.1%}" if close else f"{value:.0%}" for value in values]


def range_words(reading: dict[str, Any]) -> str:
    """The range of predictions that was read, such as "below 40%"."""
    low, high = f"{reading['low']:.0%}", f"{reading['high']:.0%}"
    if low == "0%":
        return "anything" if high == "100%" else f"at most {high}"
    return f"above {low}" if high == "100%" else f"between {low} and {high}"


def _worst_words(audit: dict[str, Any], worst: dict[str, Any]) -> dict[str, Any]:
    reading = worst["reading"]
    words: dict[str, Any] = {
        "question": worst["question"],
        "at_least": points(worst["lower_bound"]) if worst["lower_bound"] > 0 else None,
        "estimate": points(worst["estimate"]),
        "confidence": f"{100 * (1 - audit['alpha']):.4g}%",
        "reading": None,
    }
    if reading["predicted"] is not None:
        says, happens = percents(reading["predicted"], reading["observed"])
        words["reading"] = {
            "says": says,
            "happens": happens,
            "direction": "too much" if reading["predicted"] > reading["observed"] else "too little",
            "range": range_words(reading),
            "share": f"{reading['share']:.0%}",
        }
    return words


def _because(audit: dict[str, Any], state: str, worst: dict[str, Any] | None) -> str:
    """Why the verdict is what it is, in one or two sentences."""
    if state == UNSEARCHED and audit["n_judge"]:
        return "No search was asked for. Classes and groups are measured below, but nobody looked for other questions."
    if state == UNSEARCHED:
        return (
            f"{audit['n_samples']:,} rows are too few to search for a question on one half and to prove it on the "
            "other. The numbers below are measured, but noise may be all they show."
        )
    if state == SILENT:
        return (
            f"Searches on {audit['n_fit']:,} rows found no question whose error the other {audit['n_judge']:,} rows "
            f"confirm. That is no proof of trust: along the best question tried, answers off by about "
            f"{points(_smallest(audit))} on average would have been found 4 times in 5, smaller errors less often."
        )
    if not proven_findings(audit) and not shown_groups(audit):
        return f"No question is proven wrong over all rows, but one is {proven_slices(audit)[0]['rows']['where']}."
    if not proven_findings(audit):
        return (
            f"Of your groups, {_some(shown_groups(audit))}: outcomes redrawn from the predictions hardly ever differ "
            "from them as much as what happened. The searches proved no other question wrong."
        )
    if worst is None:
        return (
            "No single question that was searched shows it, but errors depend on the prediction as a whole, and "
            f"{audit['n_judge']:,} rows that the search never saw confirm it."
        )
    if worst["lower_bound"] <= 0:
        return (
            "All rows together show that its answers are wrong; how far they are off at least, the half of the rows "
            "that was not searched cannot tell."
        )
    return (
        f"The question was found on {audit['n_fit']:,} rows and put to {audit['n_judge']:,} others, which the search "
        "never saw. So it is no fluke of the search."
    )


def _smallest(audit: dict[str, Any]) -> float:
    return float(min(finding["detectable"] for finding in audit["findings"]))


def _advice(audit: dict[str, Any], state: str, worst: dict[str, Any] | None) -> list[str]:
    if state == UNSEARCHED and audit["n_judge"]:
        return ["Run an audit with its default searches to learn where not to trust the probabilities."]
    if state == UNSEARCHED:
        return ["Collect more labelled rows that the model was not trained on: some hundreds at least."]
    if state == SILENT:
        return [
            "Use the probabilities, and keep in mind how large an error could hide.",
            "To see errors half as large, audit about four times as many rows.",
        ]
    advice = [] if worst is None else [_worst_advice(worst)]
    if audit["after"] is not None:
        advice.append(_comparison_words(audit, audit["after"]))
    else:
        advice.append(
            "Recalibrate on other labelled rows, then audit again on rows the calibrator has not seen (commands under "
            "“Reproduce”)."
        )
    return advice


def _worst_advice(worst: dict[str, Any]) -> str:
    reading = worst["reading"]
    if reading["predicted"] is None or range_words(reading) == "anything":
        return "Do not act on the answer to this question as it is."
    return f"Do not act on the answer to this question as it is, least of all where it is {range_words(reading)}."


def _group_advice(audit: dict[str, Any]) -> list[str]:
    """Which named groups are shown wrong, and which are not."""
    wrong = shown_groups(audit)
    tested = [g for g in audit["groups"] if g["p_value"] is not None]
    fine = [g["name"] for g in tested if not is_shown(g, audit["alpha"])]
    advice = []
    if wrong:
        advice.append(f"Of your groups, do not trust as they are: {_some(wrong)}.")
    if fine and (tested[0]["smallest_p_value"] or 0) > audit["alpha"]:
        advice.append(
            "Your other groups could not be tested: the rows are too many to redraw often enough for so many."
        )
    elif fine:
        advice.append(f"No error is shown for your {_plural(fine, 'group')} {_some(fine)}.")
    return advice


def _some(names: list[str], limit: int = 6) -> str:
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"


def _plural(items: list[str], word: str) -> str:
    return word if len(items) == 1 else f"{word}s"


def _comparison(audit: dict[str, Any]) -> dict[str, Any]:
    """Before against after: rows of a table, and what it means."""
    after = audit["after"]
    rows = [
        ("Accuracy", audit["scores"]["accuracy"], after["scores"]["accuracy"], True),
        ("Brier score", audit["scores"]["brier_score"], after["scores"]["brier_score"], False),
        ("Log loss", audit["scores"]["log_loss"], after["scores"]["log_loss"], False),
        *(
            (f"Error: {one['notion']}", one["value"], other["value"], False)
            for one, other in zip(audit["errors"], after["errors"], strict=True)
        ),
        ("Worst question, proven error", _proven_size(audit), _proven_size(after), False),
        *_slice_rows(audit, after),
    ]
    return {
        "calibrator": audit["calibrator"],
        "rows": [
            {"name": name, "before": a, "after": b, "better": _better(a, b, higher_is_better)}
            for name, a, b, higher_is_better in rows
        ],
        "words": _comparison_words(audit, after),
    }


def _slice_rows(audit: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, float, float, bool]]:
    """The slice that is worst before and after, if slices were found."""
    first, last = (max((one["at_least"] for one in proven_slices(a)), default=0.0) for a in (audit, after))
    return [("Worst slice, proven error", first, last, False)] if audit["slices"] or after["slices"] else []


def _proven_size(audit: dict[str, Any]) -> float | None:
    """The largest lower bound of a yes/no question; 0 if nothing was proven, None if nothing was searched."""
    if not audit["findings"]:
        return None
    worst = _worst(audit)
    return 0.0 if worst is None else max(worst["lower_bound"], 0.0)


def _better(before: float | None, after: float | None, higher_is_better: bool) -> str:
    if before is None or after is None or f"{before:.4f}" == f"{after:.4f}":
        return "same"
    return "better" if (after > before) == higher_is_better else "worse"


def _comparison_words(audit: dict[str, Any], after: dict[str, Any]) -> str:
    before_size, after_size = _proven_size(audit), _proven_size(after)
    if before_size is None or after_size is None:
        return "There were too few rows to prove an error before or after."
    if after_size == 0:
        end = "After the calibrator no question is proven wrong"
    else:
        end = f"After the calibrator, the worst question is still off by at least {points(after_size)}"
    if after_size == 0 and proven_findings(after):
        end += ", though errors of the prediction as a whole remain"
    start = (
        f"before, the worst was off by at least {points(before_size)}"
        if before_size
        else "before, none was either"
    )
    return f"{end}; {start}."
