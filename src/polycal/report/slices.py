"""Slices in words and rows: shared by all renderers."""

from typing import Any

from polycal.report.costs import amount
from polycal.report.words import TOLERANCE

# Findings to list, and classes of the heat map: those that are worst in some slice.
_MOST_FINDINGS, _MOST_CLASSES = 12, 12
FOUND_COLUMNS = ("rows", "share", "question", "says", "is", "elsewhere is", "at least")
COST_COLUMNS = ("slice", "rows", "promised", "paid", "between", "and", "more than promised")
NAMED_COLUMNS = ("slice", "rows", "worst question", "error", "at least", "at most")
ABOUT = (
    "Rows that their features name and whose predictions are worse than those of the others: searched on one half of "
    "the rows and judged on the other. All bounds hold together with the others of this audit; what has no bound is "
    "found by e-BH."
)


def slice_words(audit: dict[str, Any]) -> list[str]:
    """The findings that matter in sentences: the slice to look at first, and what a learner found."""
    found: list[dict[str, Any]] = audit["slices"]
    first = [one for one in found if not one["is_learnt"]][:1]
    return [one["words"] for one in [*first, *(one for one in found if one["is_learnt"])]]


def proven_slices(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """The slices and learners' findings whose error is proven."""
    return [one for one in audit["slices"] if one["significant"]]


def found_rows(audit: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each slice that was found, but for what a learner found."""
    named = [one for one in audit["slices"] if not one["is_learnt"]]
    return [
        (
            one["rows"]["where"].removeprefix("where "),
            f"{one['rows']['share']:.1%}",
            one["question"],
            _number(one["reading"]["predicted"]),
            _number(one["reading"]["observed"]),
            _number(None if one["elsewhere"] is None else one["elsewhere"]["observed"]),
            f"{one['at_least']:.4f}" if one["significant"] else "e-BH",
        )
        for one in named[:_MOST_FINDINGS]
    ]


def named_rows(audit: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each slice that was asked for, with its worst question."""
    rows = []
    for one in audit["named_slices"]:
        worst = max(_questions(one), key=lambda q: (q["at_least"] or 0.0, q["smooth_error"]))
        numbers = (_number(worst[name], ".4f") for name in ("smooth_error", "at_least", "at_most"))
        rows.append((one["name"], f"{one['rows']['n_rows']:,}", worst["name"], *numbers))
    return rows


def heat_map(named: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Slices against questions: the error of each cell, how dark it is, and whether it is proven to be off or right."""
    if not named:
        return None
    groups = [q["name"] for q in named[0]["groups"]]
    ranks = ["confidence", *(q["name"] for q in named[0]["ranks"])]
    worst: dict[str, float] = {}
    for q in (q for one in named for q in one["classes"]):
        worst[q["name"]] = max(worst.get(q["name"], 0.0), q["smooth_error"])
    kept = set(sorted(worst, key=lambda name: -worst[name])[:_MOST_CLASSES])
    classes = [name for name in worst if name in kept]
    kinds = {"rank": ranks, "group": groups, "class": classes}
    cells = [[_cell(q) for q in _asked(one, classes)] for one in named]
    largest = max((cell["error"] for row in cells for cell in row), default=0.0) or 1.0
    return {
        "columns": [{"kind": kind, "name": name} for kind, names in kinds.items() for name in names],
        "hidden": len(worst) - len(classes),
        "rows": [
            {
                "name": one["name"],
                "n_rows": one["rows"]["n_rows"],
                "share": one["rows"]["share"],
                "cells": [cell | {"heat": round(100 * cell["error"] / largest)} for cell in row],
            }
            for one, row in zip(named, cells, strict=True)
        ],
    }


def page_slices(audit: dict[str, Any]) -> dict[str, Any] | None:
    """What a page shows of slices; None if nothing was asked for or found."""
    if not audit["slices"] and not audit["named_slices"]:
        return None
    return {
        "words": slice_words(audit),
        "about": ABOUT,
        "columns": FOUND_COLUMNS,
        "found": found_rows(audit),
        "heat": heat_map(audit["named_slices"]),
        "cost_columns": COST_COLUMNS,
        "costs": cost_tables(audit["named_slices"]),
    }


def slice_advice(audit: dict[str, Any]) -> list[str]:
    """What to do about slices: only what is proven."""
    proven = proven_slices(audit)
    if not proven:
        return []
    where = [one["rows"]["where"] for one in proven if not one["is_learnt"]][:1]
    start = (
        f"Least of all, trust the answers {where[0]}."
        if where
        else "Errors depend on the features of the rows."
    )
    return [f"{start} MulticalibratedCalibrator takes the features into account."]


def cost_tables(named: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each loss, what acting was promised to cost and cost in each slice."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for one in named:
        for cost in one["costs"]:
            paid, excess = cost["paid"], cost["excess"]
            numbers = (cost["promised"]["value"], paid["value"], paid["at_least"], paid["at_most"])
            more = f"at least {amount(excess['at_least'])}" if excess["at_least"] > 0 else "not shown"
            row = (one["name"], f"{one['rows']['n_rows']:,}", *map(amount, numbers), more)
            tables.setdefault(cost["name"], []).append(row)
    return [{"name": name, "rows": rows} for name, rows in tables.items()]


def _asked(one: dict[str, Any], classes: list[str]) -> list[dict[str, Any]]:
    by_name = {q["name"]: q for q in one["classes"]}
    return [one["confidence"], *one["ranks"], *one["groups"], *(by_name[name] for name in classes)]


def _questions(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["confidence"], *one["ranks"], *one["groups"], *one["classes"]]


def _cell(question: dict[str, Any]) -> dict[str, Any]:
    at_least, at_most = question["at_least"] or 0.0, question["at_most"]
    mark = "off" if at_least > 0 else "right" if at_most is not None and at_most <= TOLERANCE else "open"
    words = f"says {question['predicted']:.3f}, is {question['frequency']:.3f}; error {question['smooth_error']:.4f}"
    bounds = "" if at_most is None else f", at least {at_least:.4f}, at most {at_most:.4f}"
    return {"error": question["smooth_error"], "mark": mark, "words": words + bounds}


def _number(value: float | None, form: str = ".3f") -> str:
    return "–" if value is None else f"{value:{form}}"
