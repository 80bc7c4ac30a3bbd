"""An audit as a fragment of HTML for notebooks. Every string in it is escaped."""

from html import escape
from typing import Any

from polycal.report.words import reading_words, verdict


def render_fragment(audit: dict[str, Any]) -> str:
    """The verdict and the findings as a small table."""
    rows = "".join(_row(finding) for finding in audit["findings"])
    head = "".join(
        f"<th>{h}</th>" for h in ("search", "question", "error", "at least", "p-value", "where it is worst")
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    return f"<div><p><strong>{escape(verdict(audit))}</strong></p>{table}</div>"


def _row(finding: dict[str, Any]) -> str:
    cells = (
        finding["source"],
        finding["question"],
        f"{finding['estimate']:.4f}",
        f"{max(finding['lower_bound'], 0):.4f}",
        f"{finding['adjusted_p_value']:.2g}",
        reading_words(finding["reading"]),
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
