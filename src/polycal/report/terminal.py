"""An audit's dictionary as tables for the terminal."""

import io
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from polycal._text import printable_data
from polycal.report.costs import COST_COLUMNS, cost_rows, cost_words
from polycal.report.slices import FOUND_COLUMNS, NAMED_COLUMNS, found_rows, named_rows, slice_words
from polycal.report.summary import summarise
from polycal.report.words import TOLERANCE, between, bound_words, path_words, reading_words, score, verdict

_WORST_CLASSES = 5
# By the first word of what all rows show.
_SHORT = {"-": "-", "right": f"≤ {TOLERANCE:g}", "off": "off", "off,": "off", "not": "open"}


def render_text(audit: dict[str, Any], *, width: int = 110) -> str:
    """The audit as plain text, without colours."""
    buffer = io.StringIO()
    Console(file=buffer, width=width, no_color=True, highlight=False).print(render(audit))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def render(audit: dict[str, Any]) -> RenderableType:
    """The audit as rich tables: scores, verdict, findings, errors, worst classes, groups."""
    audit = printable_data(audit)
    parts: list[RenderableType] = [_headline(audit), Text(), Text(verdict(audit), style="bold")]
    for title, table in _sections(audit):
        parts += [Text(), Text(title, style="bold"), table]
    return Group(*parts)


def _sections(audit: dict[str, Any]) -> Iterable[tuple[str, Table]]:
    comparison = summarise(audit)["comparison"]
    if comparison is not None:
        yield (
            f"Before and after {comparison['calibrator']}: {comparison['words']}",
            _comparison_table(comparison),
        )
    yield from _slice_sections(audit)
    if audit["costs"]:
        words = "\n".join(f"{cost['name']}: {line}" for cost in audit["costs"] for line in cost_words(cost))
        yield f"What acting on the predictions costs, per row\n{words}", _cost_table(audit["costs"])
    if audit["findings"]:
        title = f"Findings: searched on {audit['n_fit']:,} rows, judged on {audit['n_judge']:,} others"
        yield title, _finding_table(audit["findings"], audit["alpha"])
    if len(audit["path"]) > 1:
        title = f"Fewer or more classes: {path_words(audit)}"
        yield title, _path_table(audit)
    yield (
        "Calibration errors on all rows (0 is best; read them against the noise floor)",
        _error_table(audit["errors"]),
    )
    worst = audit["classes"][:_WORST_CLASSES]
    yield (
        f"Worst classes ({len(worst)} of {audit['n_classes']}): is it this class?",
        _question_table(worst, audit),
    )
    if audit["nodes"]:
        wrong = sum(bool(node["discovered"]) for node in audit["nodes"])
        worst_nodes = sorted(audit["nodes"], key=lambda node: -node["smooth_error"])[:_WORST_CLASSES]
        title = (
            f"Worst nodes of the tree ({len(worst_nodes)} of {len(audit['nodes']):,}; {wrong:,} found wrong)"
        )
        yield title, _question_table([node | {"name": node["path"]} for node in worst_nodes], audit)
    if audit["confidence"] is not None:
        named = [audit["confidence"], *audit["ranks"], *audit["groups"]]
        groups = ", and your groups" if audit["groups"] else ""
        title = f"Questions that nobody searched for: the most likely classes{groups}"
        yield title, _question_table(named, audit, tested=bool(audit["groups"]))


def _slice_sections(audit: dict[str, Any]) -> Iterable[tuple[str, Table]]:
    if audit["slices"]:
        words, found = "\n".join(slice_words(audit)), found_rows(audit)
        # What a learner found has words only.
        yield f"Rows that differ\n{words}", _text_table(FOUND_COLUMNS if found else (), found, 3)
    if audit["named_slices"]:
        yield "Slices that were asked for", _text_table(NAMED_COLUMNS, named_rows(audit), 3)


def _headline(audit: dict[str, Any]) -> Text:
    scores = audit["scores"]
    return Text(
        f"{audit['n_samples']:,} predictions over {audit['n_classes']} classes · accuracy "
        f"{score(scores, 'accuracy', '.3f')} · Brier score {score(scores, 'brier_score')} · "
        f"log loss {score(scores, 'log_loss')}"
    )


def _comparison_table(comparison: dict[str, Any]) -> Table:
    table = _table("measure")
    for column in ("before", "after"):
        table.add_column(column, justify="right")
    table.add_column("change")
    for row in comparison["rows"]:
        table.add_row(Text(row["name"]), _optional(row["before"]), _optional(row["after"]), row["better"])
    return table


def _cost_table(costs: list[dict[str, Any]]) -> Table:
    return _text_table(COST_COLUMNS, cost_rows(costs), 2)


def _text_table(columns: Sequence[str], rows: Iterable[Sequence[str]], n_words: int) -> Table:
    """A table of text; all columns but the first so many are of numbers."""
    table = _table(*columns[:n_words])
    for column in columns[n_words:]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _finding_table(findings: Iterable[dict[str, Any]], alpha: float) -> Table:
    table = _table("search", "question")
    for column in ("error", f"at least ({1 - alpha:.0%})", "p-value"):
        table.add_column(column, justify="right")
    table.add_column("where it is worst")
    for finding in findings:
        table.add_row(
            Text(finding["source"]),
            Text(finding["question"]),
            f"{finding['estimate']:.4f}",
            f"{max(finding['lower_bound'], 0):.4f}",
            f"{finding['adjusted_p_value']:.2g}",
            Text(reading_words(finding["reading"])),
        )
    return table


def _path_table(audit: dict[str, Any]) -> Table:
    table = _table()
    for column in ("classes", "error", f"at least ({1 - audit['alpha']:.0%})"):
        table.add_column(column, justify="right")
    table.add_column("question")
    for finding in audit["path"]:
        numbers = f"{finding['estimate']:.4f}", f"{finding['at_least']:.4f}"
        table.add_row(f"{len(finding['subset']):,}", *numbers, Text(finding["question"]))
    return table


def _error_table(errors: Iterable[dict[str, Any]]) -> Table:
    table = _table("notion")
    table.add_column("error", justify="right")
    table.add_column("noise floor", justify="right")
    table.add_column("kind")
    table.add_column("how")
    for error in errors:
        row = (
            between(error["value"], error.get("upper")),
            _optional(error["noise_floor"]),
            error["kind"],
            Text(error["method"]),
        )
        table.add_row(Text(error["notion"]), *row)
    return table


def _question_table(
    questions: Iterable[dict[str, Any]], audit: dict[str, Any], *, tested: bool = False
) -> Table:
    table = _table("question")
    for column in ("predicted", "happened", "smCE", "at least", "at most", *(("p-value",) if tested else ())):
        table.add_column(column, justify="right")
    table.add_column("so it is")
    for question in questions:
        cells = [f"{question[key]:.4f}" for key in ("predicted", "frequency")]
        cells.append(between(question["smooth_error"], question.get("smooth_error_high")))
        cells += [_optional(question["at_least"]), _optional(question["at_most"])]
        if tested:
            p_value = question["p_value"]
            cells.append("-" if p_value is None else f"{p_value:.2g}")
        # Text, not markup: class names are data.
        table.add_row(Text(question["name"]), *cells, _SHORT[bound_words(question, audit).partition(" ")[0]])
    return table


def _optional(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column)
    return table
