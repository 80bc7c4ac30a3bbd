"""An audit's dictionary as one HTML page that needs nothing else."""

from typing import Any

from markupsafe import Markup

from polycal.report import assets, references
from polycal.report.charts.cumulative import cumulative_chart
from polycal.report.charts.path import path_chart
from polycal.report.charts.reliability import reliability_chart
from polycal.report.costs import ABOUT, ACTION_COLUMNS, cost_parts
from polycal.report.slices import page_slices
from polycal.report.summary import summarise
from polycal.report.tree import MARKS, tree_of, tree_words
from polycal.report.words import (
    TOLERANCE,
    between,
    bound_words,
    is_shown,
    path_words,
    reading_words,
    score,
    shown_of,
)

# Groups whose pictures are not folded up; nodes of a tree whose tops are not.
_OPEN_GROUPS, _OPEN_NODES = 4, 200


def render_page(audit: dict[str, Any], *, title: str | None = None, command: str | None = None) -> str:
    """The page. Every string of the audit is escaped; only the scripts of this package can run in it."""
    pictures = _pictures(audit)
    ours = assets.static("page.js") + assets.static("tree.js") + assets.static("report.js")
    scripts = [assets.vega_bundle(), assets.inline_script(ours)]
    costs, path = cost_parts(audit["costs"]), _path(audit)
    charts = assets.json_block(
        [
            *({"id": cost["id"], "spec": cost["chart"]} for cost in costs),
            *path,
            *(chart for picture in pictures for chart in picture["charts"]),
        ]
    )
    page: str = (
        assets.environment()
        .get_template("report.html")
        .render(
            audit=audit,
            title=title or "Audit of predicted probabilities",
            summary=summarise(audit),
            found=[p for p in pictures if p["about"] == "finding"],
            confidence=[p for p in pictures if p["about"] == "confidence"],
            groups=[p for p in pictures if p["about"] in {"rank", "group"}],
            slices=page_slices(audit),
            costs=costs,
            about_costs=ABOUT,
            action_columns=ACTION_COLUMNS,
            path_words=path_words(audit) if path else None,
            tree=tree_of(audit),
            open_tops=len(audit["nodes"]) <= _OPEN_NODES,
            tree_words=tree_words(audit["nodes"]),
            marks=MARKS,
            classes=_class_rows(audit["classes"]),
            command=command or references.python_call(audit),
            references=references,
            reading_words=reading_words,
            between=between,
            tolerance=TOLERANCE,
            bound_words=bound_words,
            is_shown=is_shown,
            score=score,
            policy=assets.policy(scripts),
            style=Markup(assets.static("report.css")),  # noqa: S704 - ours
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - ours and Vega's
            charts=Markup(charts),  # noqa: S704 - escaped by json_block
        )
    )
    return page


def _path(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """The chart of the path, if there is one."""
    after, shown = audit["after"], shown_of(audit)
    if len(audit["path"]) < 2:
        return []
    paths = (
        {"as given": audit["path"]} if after is None else {"before": audit["path"], "after": after["path"]}
    )
    spec = path_chart(paths, None if shown is None else shown["question"])
    return [{"id": "path-chart", "spec": spec}]


def _pictures(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """The pictures with their charts; those of the questions found after a calibrator among them."""
    after = [] if audit["after"] is None else audit["after"]["pictures"]
    named = [(picture, "") for picture in audit["pictures"]] + [(p, "after the calibrator") for p in after]
    measured = {("rank", q["name"]): q for q in audit["ranks"]} | {
        ("group", q["name"]): q for q in audit["groups"]
    }
    unfolded = _unfolded(audit)
    return [
        picture
        | {
            "id": f"picture-{i}",
            "when": when,
            "measured": measured.get((picture["about"], picture["name"])),
            "open": picture["about"] == "group" and picture["name"] in unfolded,
            "charts": [
                {"id": f"picture-{i}-reliability", "spec": reliability_chart(picture)},
                {"id": f"picture-{i}-cumulative", "spec": cumulative_chart(picture)},
            ],
        }
        for i, (picture, when) in enumerate(named)
    ]


def _unfolded(audit: dict[str, Any]) -> set[str]:
    """The groups whose pictures are open at first: all of a few, of many the first that are shown wrong."""
    groups = audit["groups"]
    if len(groups) > _OPEN_GROUPS:
        groups = [group for group in groups if is_shown(group, audit["alpha"])][:_OPEN_GROUPS]
    return {group["name"] for group in groups}


def _class_rows(classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every class with its difference, how many standard deviations of chance that is, and a bar for its error."""
    largest = max(row["smooth_error"] for row in classes) or 1.0
    rows = []
    for row in classes:
        difference = row["frequency"] - row["predicted"]
        ratio = difference / row["chance"] if row["chance"] > 0 else None
        bar = f"{100 * row['smooth_error'] / largest:.1f}"
        rows.append(row | {"difference": difference, "ratio": ratio, "bar": bar})
    return rows
