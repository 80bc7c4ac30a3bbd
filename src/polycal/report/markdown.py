"""An audit's dictionary as Markdown: for pull requests, wikis and files under version control."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from polycal._text import printable, printable_data
from polycal.report import references
from polycal.report.costs import ABOUT, ACTION_COLUMNS, COST_COLUMNS, action_rows, cost_rows, cost_words
from polycal.report.slices import ABOUT as ABOUT_SLICES
from polycal.report.slices import FOUND_COLUMNS, NAMED_COLUMNS, found_rows, named_rows, slice_words
from polycal.report.summary import summarise
from polycal.report.words import between, bound_words, path_words, reading_words, score

# Classes to list, at most: the page and the JSON hold them all.
_WORST_CLASSES = 20
_QUESTION_COLUMNS = ("question", "says", "happens", "error", "at least", "at most")


def render_markdown(audit: dict[str, Any], *, title: str | None = None, command: str | None = None) -> str:
    """The report without pictures."""
    audit = printable_data(audit, lines=True)
    summary = summarise(audit)
    parts = [
        f"# {plain(title or 'Audit of predicted probabilities')}: {summary['badge'].lower()}",
        *_verdict(audit, summary),
        *_comparison(summary["comparison"]),
        *_slices(audit),
        *_costs(audit),
        *_findings(audit),
        *_path(audit),
        *_groups(audit),
        *_classes(audit),
        *_nodes(audit),
        *_errors(audit),
        "## What could not have been detected",
        _bullets(references.limits(audit)),
        "## Reproduce",
        _code(printable(command or references.python_call(audit), lines=True)),
        f"Seed {audit['random_state']}; {references.version_words(audit)}.",
        "## Cite",
        f"{references.PAPER} <{references.PAPER_URL}>",
    ]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Text that Markdown shows as it is: class names are no markup, and end no line."""
    line = " ".join(printable(text, lines=True).split())
    html = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", html)


def _verdict(audit: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    scores, worst = audit["scores"], summary["worst"]
    parts = [f"**{summary['headline']}**"]
    if worst is not None:
        parts.append(
            f"> {plain(worst['question'])}\n>\n> On average, its answers are off by **at least {worst['at_least']}** "
            f"(proven, with {worst['confidence']} confidence; best estimate {worst['estimate']}).{_reading(worst)}"
        )
    size = f"{audit['n_samples']:,} predictions over {audit['n_classes']:,} classes"
    accuracy = f"accuracy {score(scores, 'accuracy', '.3f')}"
    losses = f"Brier score {score(scores, 'brier_score')}, log loss {score(scores, 'log_loss')}"
    todo = _bullets(plain(line) for line in summary["advice"])
    return [*parts, plain(summary["because"]), f"{size}: {accuracy}, {losses}.", "## What to do", todo]


def _reading(worst: dict[str, Any]) -> str:
    reading = worst["reading"]
    if reading is None:
        return ""
    return (
        f" Where it is worst ({reading['share']} of rows, its answer is {reading['range']}), it says "
        f"{reading['says']} and it happens {reading['happens']}."
    )


def _comparison(comparison: dict[str, Any] | None) -> list[str]:
    if comparison is None:
        return []
    rows = [
        [row["name"], _number(row["before"]), _number(row["after"]), row["better"]]
        for row in comparison["rows"]
    ]
    table = _table(("measure", "before", "after", "change"), rows)
    return [f"## Before and after {plain(comparison['calibrator'])}", plain(comparison["words"]), table]


def _slices(audit: dict[str, Any]) -> list[str]:
    parts = []
    if audit["slices"]:
        words = _bullets(plain(line) for line in slice_words(audit))
        found = found_rows(audit)
        parts += [
            "## Rows that differ",
            ABOUT_SLICES,
            words,
            *([_table(FOUND_COLUMNS, found)] if found else []),
        ]
    if audit["named_slices"]:
        parts += ["## Slices that were asked for", _table(NAMED_COLUMNS, named_rows(audit))]
    return parts


def _costs(audit: dict[str, Any]) -> list[str]:
    if not audit["costs"]:
        return []
    parts = [
        "## What acting on the predictions costs",
        ABOUT,
        _table(COST_COLUMNS, cost_rows(audit["costs"])),
    ]
    for cost in audit["costs"]:
        words = _bullets(plain(line) for line in cost_words(cost))
        parts += [f"### {plain(cost['name'])}", words, _table(ACTION_COLUMNS, action_rows(cost))]
    return parts


def _findings(audit: dict[str, Any]) -> list[str]:
    if not audit["findings"]:
        return []
    head = ("search", "question", "error", "at least", "p-value", "visible", "where it is worst")
    rows = [
        [
            f["source"],
            f["question"],
            _number(f["estimate"]),
            _number(max(f["lower_bound"], 0.0)),
            f"{f['adjusted_p_value']:.2g}",
            _number(f["detectable"]),
            reading_words(f["reading"]),
        ]
        for f in audit["findings"]
    ]
    rows_said = f"Searched on {audit['n_fit']:,} rows, judged on {audit['n_judge']:,} others."
    return ["## What was tried", rows_said, _table(head, rows)]


def _path(audit: dict[str, Any]) -> list[str]:
    if len(audit["path"]) < 2:
        return []
    rows = [
        [f"{len(f['subset']):,}", _number(f["estimate"]), _number(f["at_least"]), f["question"]]
        for f in audit["path"]
    ]
    table = _table(("classes", "error", "at least", "question"), rows)
    return ["## Fewer or more classes", plain(path_words(audit)), table]


def _groups(audit: dict[str, Any]) -> list[str]:
    if audit["confidence"] is None:
        return []
    head = (*_QUESTION_COLUMNS, "noise floor", "p-value", "all rows show")
    rows = [
        [
            *_question(g),
            _number(g["noise_floor"]),
            "-" if g["p_value"] is None else f"{g['p_value']:.2g}",
            bound_words(g, audit),
        ]
        for g in (audit["confidence"], *audit["ranks"], *audit["groups"])
    ]
    return ["## Confidence and groups" if audit["groups"] else "## Confidence", _table(head, rows)]


def _classes(audit: dict[str, Any]) -> list[str]:
    worst = audit["classes"][:_WORST_CLASSES]
    rows = [[*_question(row), bound_words(row, audit)] for row in worst]
    title = f"## Worst classes ({len(worst)} of {audit['n_classes']:,})"
    return [title, _table((*_QUESTION_COLUMNS, "all rows show"), rows)]


def _nodes(audit: dict[str, Any]) -> list[str]:
    if not audit["nodes"]:
        return []
    worst = sorted(audit["nodes"], key=lambda node: -node["smooth_error"])[:_WORST_CLASSES]
    rows = [[*_question(node | {"name": node["path"]}), bound_words(node, audit)] for node in worst]
    title = f"## Worst nodes of the tree ({len(worst)} of {len(audit['nodes']):,})"
    return [title, _table((*_QUESTION_COLUMNS, "all rows show"), rows)]


def _question(row: dict[str, Any]) -> list[str]:
    error = between(row["smooth_error"], row.get("smooth_error_high"))
    bounds = [_number(row["at_least"]), _number(row["at_most"])]
    return [row["name"], _number(row["predicted"]), _number(row["frequency"]), error, *bounds]


def _errors(audit: dict[str, Any]) -> list[str]:
    if not audit["errors"]:
        return []
    rows = [
        [
            e["definition"],
            between(e["value"], e.get("upper")),
            _number(e["noise_floor"]),
            e["kind"],
            e["method"],
        ]
        for e in audit["errors"]
    ]
    return ["## Errors on all rows", _table(("notion", "error", "noise floor", "kind", "how"), rows)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _code(text: str) -> str:
    """A block of code, indented: no text in it can end it."""
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
