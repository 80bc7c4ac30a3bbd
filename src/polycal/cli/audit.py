"""``polycal audit``."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

import polycal as pc
from polycal.cli.inputs import read_calibrator, read_sample
from polycal.cli.options import (
    AlphaOption,
    FileArgument,
    GroupsOption,
    JobsOption,
    JsonOption,
    NotionOption,
    PartOption,
    QuietOption,
    SeedOption,
)
from polycal.cli.output import FOUND, print_audit, working
from polycal.notions.registry import parse_notion

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


def audit(
    file: FileArgument,
    *,
    groups: GroupsOption = None,
    part: PartOption = "all",
    notion: NotionOption = None,
    calibrator: CalibratorOption = None,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    fail_above: FailOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the question that the predictions in FILE cannot be trusted for, and prove it on unseen rows.

    **Example:** polycal audit preds.npz --groups groups.yaml --part evaluation --html report.html
    """
    notions = [parse_notion(text) for text in notion] if notion else None
    named_groups = None if groups is None else pc.read_groups(groups)
    model = None if calibrator is None else read_calibrator(calibrator)
    sample = read_sample(file, part)
    with working(f"auditing {sample.n_samples:,} rows of {sample.n_classes} classes", quiet=quiet):
        result = pc.audit(
            sample.labels,
            sample.proba,
            notions=notions,
            groups=named_groups,
            calibrator=model,
            sample_weight=sample.sample_weight,
            class_names=sample.class_names,
            alpha=alpha,
            random_state=seed,
            n_jobs=jobs,
        )
    name = "standard input" if file.name == "-" else file.name
    named = name if part == "all" else f"{name}, {part} rows"
    for path, write in ((html, result.to_html), (markdown, result.to_markdown)):
        if path is not None:
            write(path, title=named, command=shlex.join(["polycal", *sys.argv[1:]]))
    if as_json or not quiet:
        print_audit(result, as_json=as_json)
    if fail_above is not None and _proven(result) > fail_above:
        raise typer.Exit(FOUND)


def _proven(result: "pc.Audit") -> float:
    """The largest error of a yes/no question that is proven; after the calibrator, if there is one."""
    last = result.after or result
    return max(
        (f.certificate.lower_bound for f in last.findings if f.significant and f.is_question), default=0.0
    )
