"""A comparison's dictionary as a table, for the terminal and for notebooks."""

import io
from html import escape
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from polycal._text import printable_data

_COLUMNS = (
    ("Brier", "brier_score", "{:.4f}"),
    ("log\nloss", "log_loss", "{:.4f}"),
    ("accuracy", "accuracy", "{:.4f}"),
    ("ECE", "confidence_error", "{:.4f}"),
    ("class-\nwise", "classwise_error", "{:.5f}"),
    ("worst\nsubset", "worst_subset_estimate", "{:.4f}"),
    ("at\nleast", "worst_subset_lower_bound", "{:.4f}"),
    ("fit, s", "fit_seconds", "{:.2f}"),
)


def render_comparison(comparison: dict[str, Any]) -> RenderableType:
    """The comparison as a rich table, with what its columns mean."""
    comparison = printable_data(comparison)
    # Names stay whole up to this width, and numbers always: all fits into 80 columns, with titles in two lines.
    longest = max(len(method["name"]) for method in comparison["methods"])
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("method", overflow="fold", min_width=min(longest, 24))
    for title, _, _ in _COLUMNS:
        table.add_column(title, justify="right", overflow="fold")
    for i, method in enumerate(comparison["methods"]):
        table.add_row(Text(method["name"]), *_cells(method), style="bold" if i == 0 else None)
    return Group(Text(_headline(comparison)), Text(), table, Text(), Text(_legend(comparison)))


def render_comparison_text(comparison: dict[str, Any], *, width: int = 110) -> str:
    """The comparison as plain text, without colours."""
    buffer = io.StringIO()
    Console(file=buffer, width=width, no_color=True, highlight=False).print(render_comparison(comparison))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def render_comparison_html(comparison: dict[str, Any]) -> str:
    """The comparison as a fragment of HTML; every string in it is escaped."""
    comparison = printable_data(comparison)
    head = "".join(f"<th>{escape(title)}</th>" for title in ("method", *(c[0] for c in _COLUMNS)))
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in (method["name"], *_cells(method))) + "</tr>"
        for method in comparison["methods"]
    )
    caption = escape(_headline(comparison))
    return f"<div><p>{caption}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _cells(method: dict[str, Any]) -> list[str]:
    bound = {"worst_subset_lower_bound": max(method["worst_subset_lower_bound"], 0.0)}
    values = [(method | bound)[key] for _, key, _ in _COLUMNS]
    return [form.format(value) for value, (_, _, form) in zip(values, _COLUMNS, strict=True)]


def _headline(comparison: dict[str, Any]) -> str:
    n_methods = len(comparison["methods"])
    return (
        f"{n_methods} {'method' if n_methods == 1 else 'methods'} fitted on {comparison['n_fit']:,} rows and judged on "
        f"{comparison['n_evaluated']:,} others, {comparison['n_classes']} classes; best first, by "
        "the mean of the ranks in Brier score and log loss"
    )


def _legend(comparison: dict[str, Any]) -> str:
    tied = [m["name"] for m in comparison["methods"] if _is_tied(m)]
    return (
        f"Within a standard error of the least log loss: {', '.join(tied)}.\n"
        "Worst subset: the error of the worst set of classes found on half of the rows, as seen on the other half, "
        f"and what it is at least with {1 - comparison['alpha']:.0%} confidence."
    )


def _is_tied(method: dict[str, Any]) -> bool:
    gap, error = method["log_loss_gap"], method["log_loss_gap_error"]
    return bool(gap <= error)
