"""``polycal audit``."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import polycal as pc
from polycal._text import printable
from polycal.auditing.result import QuestionError
from polycal.cli.inputs import STDIN, read_calibrator, readable_files, shown, usable_memory
from polycal.cli.options import (
    AlphaOption,
    FilesArgument,
    GroupsOption,
    JobsOption,
    JsonOption,
    NotionOption,
    PartOption,
    QuietOption,
    SeedOption,
)
from polycal.cli.output import FOUND, print_audit, working
from polycal.families.defaults import parse_notion
from polycal.io.remote import hide_secrets
from polycal.report.words import rows_words
from polycal.storage.atomic import check_writable

HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="PAGE", help="Write the report as one HTML page that opens offline."),
]
MarkdownOption = Annotated[
    Path | None, typer.Option("--markdown", metavar="TEXT", help="Write the report as Markdown.")
]
CalibratorOption = Annotated[
    Path | None,
    typer.Option(
        "--calibrator",
        metavar="MODEL",
        help="Audit before and after a saved calibrator; FILE must not hold rows it was fitted on.",
    ),
]
FailOption = Annotated[
    float | None,
    typer.Option(
        "--fail-above",
        metavar="ERROR",
        min=0.0,
        help="Exit with code 1 if the error of some question is proven to be larger: a gate for CI.",
    ),
]
PassOption = Annotated[
    float | None,
    typer.Option(
        "--pass-below",
        metavar="ERROR",
        min=0.0,
        help="Exit with code 1 unless the error of every group (if there is none, of confidence) is proven to be at "
        "most this.",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Use no more than this, such as 1GiB; by default half of the machine's. The result is the same.",
    ),
]
RemainderOption = Annotated[
    str,
    typer.Option(
        "--remainder",
        metavar="RULE",
        help="What lists of classes leave over: unknown, spread, anywhere or class.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the Dask cluster of this scheduler, such as tcp://host:8786; its workers must see the files.",
    ),
]


def audit(
    files: FilesArgument,
    *,
    groups: GroupsOption = None,
    part: PartOption = "all",
    remainder: RemainderOption = "unknown",
    notion: NotionOption = None,
    calibrator: CalibratorOption = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    memory: MemoryOption = None,
    scheduler: SchedulerOption = None,
    fail_above: FailOption = None,
    pass_below: PassOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the question that the predictions in FILE cannot be trusted for, and prove it on held-out rows.

    **Example:** polycal audit preds.npz --groups groups.yaml --part evaluation --html report.html
    """
    for page in (html, markdown):
        if page is not None:
            check_writable(page)
    options = {
        "notions": [parse_notion(text) for text in notion] if notion else None,
        "groups": None if groups is None else pc.read_groups(groups),
        "calibrator": None if calibrator is None else read_calibrator(calibrator),
        "alpha": alpha,
        "part": part,
        "remainder": remainder,
        "memory": memory or usable_memory(),
        "random_state": seed,
        "n_jobs": jobs,
    }
    with working(f"auditing {shown(files)}", quiet=quiet):
        result = _audit(files, scheduler, options)
    name = shown(files)
    named = name if part == "all" else f"{name}, {part} rows"
    for path, write in ((html, result.to_html), (markdown, result.to_markdown)):
        if path is not None:
            write(path, title=named, command=_command())
    if as_json or not quiet:
        print_audit(result, as_json=as_json)
    failed = [*_above(result, fail_above), *_not_below(result, pass_below)]
    for line in failed:
        typer.echo(f"polycal: {printable(line)}", err=True)
    if failed:
        raise typer.Exit(FOUND)


def _audit(files: list[str], scheduler: str | None, options: Any) -> "pc.Audit":
    """Files of any number and size: here, or where a scheduler sends the work."""
    if scheduler is None:
        with readable_files(files) as copied:
            return pc.audit_stream(copied, **options)
    if STDIN in files:
        raise ValueError("workers cannot read standard input; give --scheduler files that they see.")
    return pc.distributed.audit(files, client=scheduler, **options)


def _command() -> str:
    """How to run this again; who may read the files is not told."""
    return shlex.join(["polycal", *map(hide_secrets, sys.argv[1:])])


def _above(result: "pc.Audit", threshold: float | None) -> list[str]:
    """The worst question if its error is proven to be above a threshold; after the calibrator, if there is one."""
    last = result.after or result
    proven = [f for f in last.findings if f.significant and f.is_question]
    if threshold is None or not proven or proven[0].certificate.lower_bound <= threshold:
        return []
    bound = proven[0].certificate.lower_bound
    return [
        f'failed: the error of "{proven[0].question}" is at least {bound:.4f}, above --fail-above {threshold:g}.'
    ]


def _not_below(result: "pc.Audit", threshold: float | None) -> list[str]:
    """The questions that are not proven to be right to within a threshold."""
    if threshold is None:
        return []
    last = result.after or result
    questions = last.groups or ((last.confidence,) if last.confidence else ())
    failed = [q for q in questions if q.at_most is None or q.at_most > threshold]
    return [f"failed: {_why(question, last.n_samples, threshold)}" for question in failed]


def _why(question: QuestionError, n_samples: int, threshold: float) -> str:
    name, asked = question.name, f"--pass-below {threshold:g}"
    if question.at_most is None:
        return f'"{name}" has no upper bound (lists hide some of it), so {asked} is not shown.'
    if (question.at_least or 0.0) > threshold:
        return f'the error of "{name}" is at least {question.at_least:.4f}, above {asked}.'
    needed = rows_words(n_samples, question.at_most, threshold)
    return (
        f'the error of "{name}" is only known to be at most {question.at_most:.4f}, above {asked}; about {needed} '
        "rows would show it if the predictions are right."
    )
