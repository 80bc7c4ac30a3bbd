"""An audit as a card for notebooks. Every string in it is escaped."""

from html import escape
from typing import Any

from polycal._card import FRAME
from polycal._text import printable_data
from polycal.report.summary import MISCALIBRATED, summarise
from polycal.report.words import reading_words

_COLUMNS = ("search", "question", "error", "at least", "p-value", "where it is worst")
_CELL = "text-align:left;padding:.25em 1em .25em 0;vertical-align:top"


def render_fragment(audit: dict[str, Any]) -> str:
    """The verdict, the worst question and the findings."""
    audit = printable_data(audit)
    summary = summarise(audit)
    mark = "✕" if summary["state"] == MISCALIBRATED else "○"
    lines = [f"<strong>{mark} {escape(summary['badge'])}.</strong> {escape(summary['headline'])}"]
    if summary["worst"] is not None:
        lines.append(_worst(summary["worst"]))
    lines.append(escape(summary["because"]))
    if summary["comparison"] is not None:
        lines.append(escape(summary["comparison"]["words"]))
    body = "".join(f'<p style="margin:0 0 .4em">{line}</p>' for line in lines)
    size = f"{audit['n_samples']:,} predictions over {audit['n_classes']:,} classes"
    return (
        f'<div style="{FRAME}">{body}{_table(audit)}<p style="margin:0;opacity:.75">{size}. {_HINT}</p></div>'
    )


_HINT = "The full report: <code>audit.to_html('report.html')</code>"


def _worst(worst: dict[str, Any]) -> str:
    size = f" off by at least {worst['at_least']} on average" if worst["at_least"] else " wrongly"
    words = f"“{escape(worst['question'])}” is answered{size}"
    reading = worst["reading"]
    if reading is None:
        return f"{words}."
    return f"{words}. Where it is worst it says {reading['says']}, and it happens {reading['happens']}."


def _table(audit: dict[str, Any]) -> str:
    if not audit["findings"]:
        return ""
    head = "".join(f'<th scope="col" style="{_CELL}">{column}</th>' for column in _COLUMNS)
    rows = "".join(_row(finding) for finding in audit["findings"])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(finding: dict[str, Any]) -> str:
    cells = (
        finding["source"],
        finding["question"],
        f"{finding['estimate']:.4f}",
        f"{max(finding['lower_bound'], 0):.4f}",
        f"{finding['adjusted_p_value']:.2g}",
        reading_words(finding["reading"]),
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in cells) + "</tr>"
