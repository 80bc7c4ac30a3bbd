"""An audit's dictionary as a section of a model card: what its readers should know of the probabilities."""

from collections.abc import Sequence
from typing import Any

from polycal._text import printable_data
from polycal.report import references
from polycal.report.markdown import plain
from polycal.report.summary import summarise
from polycal.report.words import bound_words, reading_words, score

# What the section stands between, so that it can be replaced in a card that exists.
BEGIN, END = "<!-- polycal: calibration -->", "<!-- polycal: end -->"


def render_model_card(audit: dict[str, Any], *, data: str | None = None) -> str:
    """The section, between its marks."""
    audit = printable_data(audit, lines=True)
    summary, scores = summarise(audit), audit["scores"]
    rows = f"{audit['n_samples']:,} rows, {audit['n_classes']:,} classes"
    parts = [
        BEGIN,
        f"## Calibration: {summary['badge'].lower()}",
        plain(summary["headline"]),
        f"**Evaluated on** {plain(data)} ({rows})." if data else f"**Evaluated on** {rows}.",
        _table(
            ("measure", "value"),
            [
                ("accuracy", score(scores, "accuracy", ".3f")),
                ("Brier score", score(scores, "brier_score")),
                ("log loss", score(scores, "log_loss")),
            ],
        ),
        *_questions(audit),
        *_worst(summary, audit),
        "**Limits.** " + " ".join(references.limits(audit)),
        f"All bounds hold together with {100 * (1 - audit['alpha']):g} % confidence.",
        f"Made with {references.version_words(audit)}; seed {audit['random_state']}.",
        END,
    ]
    return "\n\n".join(parts) + "\n"


def put_into(card: str, section: str) -> str:
    """A card with the section in it: in place of an earlier one, else at its end."""
    before, begin, rest = card.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        return before + section.rstrip("\n") + after
    return f"{card.rstrip()}\n\n{section}" if card.strip() else section


def _questions(audit: dict[str, Any]) -> list[str]:
    """Confidence, ranks and groups, each with what is shown of it."""
    asked = [q for q in (audit["confidence"], *audit["ranks"], *audit["groups"]) if q is not None]
    if not asked:
        return []
    rows = [
        (q["name"], f"{q['predicted']:.3f}", f"{q['frequency']:.3f}", bound_words(q, audit) or "-")
        for q in asked
    ]
    return [_table(("question", "says", "happens", "all rows show"), rows)]


def _worst(summary: dict[str, Any], audit: dict[str, Any]) -> list[str]:
    worst = summary["worst"]
    if worst is None:
        return ["No question was found that the probabilities cannot be trusted for."]
    finding = next(f for f in audit["findings"] if f["is_question"])
    size = f" On average its answers are off by at least {worst['at_least']}." if worst["at_least"] else ""
    where = plain(reading_words(finding["reading"]))
    return [f"**Not to be trusted for**: {plain(worst['question'])}{size} Where it is worst: {where}."]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(plain(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
