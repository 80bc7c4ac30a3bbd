"""An audit's dictionary as a table for the terminal."""

import io
from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

_WORST_CLASSES = 5


def render_text(audit: dict[str, Any], *, width: int = 100) -> str:
    """The audit as plain text, without colours."""
    buffer = io.StringIO()
    Console(file=buffer, width=width, no_color=True, highlight=False).print(render(audit))
    return buffer.getvalue().rstrip("\n")


def render(audit: dict[str, Any]) -> RenderableType:
    """The audit as rich tables: scores, errors, worst classes, groups."""
    worst = audit["classes"][:_WORST_CLASSES]
    sections: list[tuple[str, Table]] = [
        ("Calibration errors (0 is best; plug-in values, biased upwards)", _error_table(audit["errors"])),
        (f"Worst classes ({len(worst)} of {audit['n_classes']}): is it this class?", _question_table(worst)),
    ]
    if audit["groups"]:
        sections.append(("Groups: is it one of these classes?", _question_table(audit["groups"])))
    parts: list[RenderableType] = [_headline(audit)]
    for title, table in sections:
        parts += [Text(), Text(title, style="bold"), table]
    return Group(*parts)


def _headline(audit: dict[str, Any]) -> Text:
    scores = audit["scores"]
    return Text(
        f"{audit['n_samples']:,} predictions over {audit['n_classes']} classes · accuracy {scores['accuracy']:.3f} · "
        f"Brier score {scores['brier_score']:.4f} · log loss {scores['log_loss']:.4f}"
    )


def _error_table(errors: Iterable[dict[str, Any]]) -> Table:
    table = _table()
    table.add_column("notion")
    table.add_column("error", justify="right")
    table.add_column("kind")
    table.add_column("how")
    for error in errors:
        table.add_row(Text(error["notion"]), f"{error['value']:.4f}", error["kind"], Text(error["method"]))
    return table


def _question_table(questions: Iterable[dict[str, Any]]) -> Table:
    table = _table()
    table.add_column("question")
    table.add_column("predicted", justify="right")
    table.add_column("happened", justify="right")
    table.add_column("smCE", justify="right")
    for question in questions:
        # Text, not markup: class names are data.
        table.add_row(
            Text(question["name"]),
            f"{question['predicted']:.4f}",
            f"{question['frequency']:.4f}",
            f"{question['smooth_error']:.4f}",
        )
    return table


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim")
