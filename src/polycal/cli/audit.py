"""``polycal audit``."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import polycal as pc
from polycal._text import printable
from polycal.auditing.parts import QuestionError
from polycal.cli.inputs import STDIN, read_calibrator, readable_files, shown, usable_memory
from polycal.cli.layout import names_in, reads_columns
from polycal.cli.options import (
    AlphaOption,
    FilesArgument,
    GroupsOption,
    JobsOption,
    JsonOption,
    LossesOption,
    NotionOption,
    PartOption,
    QuietOption,
    SeedOption,
    TaxonomyOption,
)
from polycal.cli.output import FOUND, print_audit, say, tell_roles, working
from polycal.families.defaults import parse_notion
from polycal.io.chunks import PredictionFiles, opened_predictions
from polycal.io.features import FeatureTable, feature_table
from polycal.io.layout import Layout
from polycal.io.remote import hide_secrets
from polycal.report.assets import check_pages
from polycal.report.summary import one_line
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
        help="Exit with code 1 if the error of some question, also in a slice, is proven to be larger: a gate for CI.",
    ),
]
PassOption = Annotated[
    float | None,
    typer.Option(
        "--pass-below",
        metavar="ERROR",
        min=0.0,
        help="Exit with code 1 unless the error of every group (if there is none, of confidence) is proven to be at "
        "most this, also in every slice of --slice-by.",
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
SliceOption = Annotated[
    str | None,
    typer.Option(
        "--slice-by",
        metavar="COLUMNS",
        help="Columns that are no classes, such as sex,age: search and measure slices of rows by them.",
    ),
]
FeaturesOption = Annotated[
    Path | None,
    typer.Option(
        "--features",
        metavar="FILE",
        help="Features of the rows in a file of their own: one row for each prediction, or joined by --key.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option("--key", metavar="COLUMN", help="The column of FILE and of --features that names rows."),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the Dask cluster of this scheduler, such as tcp://host:8786; its workers must see the files.",
    ),
]


@reads_columns
def audit(
    files: FilesArgument,
    *,
    groups: GroupsOption = None,
    losses: LossesOption = None,
    taxonomy: TaxonomyOption = None,
    part: PartOption = "all",
    layout: Layout,
    slice_by: SliceOption = None,
    features: FeaturesOption = None,
    key: KeyOption = None,
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
    _check_outputs(html, markdown)
    layout, table = _sliced_by(layout, slice_by, features, key)
    options: Any = {
        "notions": [parse_notion(text) for text in notion] if notion else None,
        "groups": None if groups is None else pc.read_groups(groups),
        "losses": None if losses is None else pc.read_losses(losses),
        "taxonomy": None if taxonomy is None else pc.read_taxonomy(taxonomy),
        "calibrator": None if calibrator is None else read_calibrator(calibrator),
        "alpha": alpha,
        "random_state": seed,
        "n_jobs": jobs,
    }
    with working(f"auditing {shown(files)}", quiet=quiet), readable_files(files, layout) as there:
        if scheduler is not None and STDIN in files:
            raise ValueError("workers cannot read standard input; give --scheduler files that they see.")
        opened = opened_predictions(there, memory or usable_memory(), part, remainder, layout)  # type: ignore[arg-type]
        opened = opened if table is None else opened.joined(table)
        result = _audit(opened, scheduler, options)
    if not (quiet or as_json):
        tell_roles(opened.roles, layout)
    name = shown(files)
    named = name if part == "all" else f"{name}, {part} rows"
    for path, write in ((html, result.to_html), (markdown, result.to_markdown)):
        if path is not None:
            write(path, title=named, command=_command())
    if as_json or not quiet:
        print_audit(result, as_json=as_json)
    elif (html, markdown, fail_above, pass_below) == (None, None, None, None):
        # Whoever asks for nothing else gets one line: an audit without an answer is of no use.
        say(one_line(result.to_dict()))
    failed = [
        *_above(result, fail_above),
        *_slices_above(result, fail_above),
        *_not_below(result, pass_below),
    ]
    for line in failed:
        typer.echo(f"polycal: {printable(line)}", err=True)
    if failed:
        raise typer.Exit(FOUND)


def _sliced_by(
    layout: Layout, slice_by: str | None, features: Path | None, key: str | None
) -> tuple[Layout, FeatureTable | None]:
    """Which columns to read along, and the features from elsewhere, if there are any."""
    names = names_in([slice_by]) if slice_by else None
    if features is None:
        if key is not None:
            raise ValueError("--key is for --features; name the columns of FILE itself by --slice-by.")
        return replace(layout, columns=tuple(names or ())), None
    table = feature_table(features, key, names)
    own = [name for name in names or () if name not in table.names]
    return replace(layout, columns=(*own, *(() if key is None else (key,)))), table


def _check_outputs(html: Path | None, markdown: Path | None) -> None:
    """See that pages can be made and written: before the work, not after it."""
    for page in (html, markdown):
        if page is not None:
            check_writable(page)
    if html is not None:
        check_pages()


def _audit(files: PredictionFiles, scheduler: str | None, options: Any) -> "pc.Audit":
    """Here, or where a scheduler sends the work."""
    if scheduler is None:
        return pc.audit_stream(files, **options)
    return pc.distributed.audit(files, client=scheduler, **options)


def _command() -> str:
    """How to run this again; who may read the files is not told."""
    return shlex.join(["polycal", *map(hide_secrets, sys.argv[1:])])


def _above(result: "pc.Audit", threshold: float | None) -> list[str]:
    """The question with the largest proven error, if that is above a threshold; after a calibrator, if there is one."""
    above = () if threshold is None else (result.after or result).proven_above(threshold)
    return [
        f'failed: the error of "{question}" is at least {bound:.4f}, above --fail-above {threshold:g}.'
        for question, bound in above[:1]
    ]


def _slices_above(result: "pc.Audit", threshold: float | None) -> list[str]:
    """The slices in which a question is proven to be further off than a threshold."""
    last = result.after or result
    found = [(f.rows.where, f.question, f.at_least) for f in last.slices if not f.is_learnt]
    named = [(f"where {s.name}", q.name, q.at_least or 0.0) for s in last.named_slices for q in s.questions]
    return [
        f'failed: {where}, the error of "{question}" is at least {bound:.4f}, above --fail-above {threshold:g}.'
        for where, question, bound in [*found, *named]
        if threshold is not None and bound > threshold
    ]


def _not_below(result: "pc.Audit", threshold: float | None) -> list[str]:
    """The questions that are not proven to be right to within a threshold."""
    if threshold is None:
        return []
    last = result.after or result
    questions = last.groups or ((last.confidence,) if last.confidence else ())
    questions += tuple(
        replace(q, name=f"{q.name} where {s.name}")
        for s in last.named_slices
        for q in (s.groups or (s.confidence,))
    )
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
