"""An audit's dictionary as one HTML page that needs nothing else."""

from typing import Any

from markupsafe import Markup

from polycal.report import assets, references
from polycal.report.charts.cumulative import cumulative_chart
from polycal.report.charts.reliability import reliability_chart
from polycal.report.summary import summarise
from polycal.report.words import between, bound_words, is_shown, reading_words, score

# Groups whose pictures are not folded up.
_OPEN_GROUPS = 4


def render_page(audit: dict[str, Any], *, title: str | None = None, command: str | None = None) -> str:
    """The page. Every string of the audit is escaped; only the scripts of this package can run in it."""
    pictures = _pictures(audit)
    ours = assets.static("page.js") + assets.static("report.js")
    scripts = [assets.vega_bundle(), assets.inline_script(ours)]
    charts = assets.json_block([chart for picture in pictures for chart in picture["charts"]])
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
            classes=_class_rows(audit["classes"]),
            command=command or references.python_call(audit),
            references=references,
            reading_words=reading_words,
            between=between,
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
