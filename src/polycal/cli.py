"""The command: parses, calls, prints. No logic of its own."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import polycal as pc
from polycal.notions.registry import parse_notion
from polycal.report import demo as demo_words
from polycal.report.terminal import render

_BAD_INPUT = 2

app = typer.Typer(
    help="Find the question about the label that a classifier's probabilities cannot be trusted for.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="Predictions with labels: .npz, .npy, .csv, .parquet or .feather."),
]
GroupsOption = Annotated[
    Path | None, typer.Option("--groups", metavar="G", help="Named groups of classes, .yaml or .json.")
]
PartOption = Annotated[
    str,
    typer.Option("--part", help="Rows to use: all, calibration or evaluation (by the file's own column)."),
]
NotionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--notion",
        metavar="NAME[:VALUE]",
        help="What to measure and search, such as subset-smooth, sigmoid:8 or confidence:smooth; may be repeated.",
    ),
]
AlphaOption = Annotated[float, typer.Option("--alpha", help="Level of the tests and bounds.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
JobsOption = Annotated[int, typer.Option("--jobs", help="Threads; -1 for one per core.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.callback(invoke_without_command=True)
def _polycal(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False
) -> None:
    if version:
        typer.echo(f"polycal {pc.__version__}")
        raise typer.Exit


@app.command()
def audit(
    file: FileArgument,
    *,
    groups: GroupsOption = None,
    part: PartOption = "all",
    notion: NotionOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    as_json: JsonOption = False,
) -> None:
    """Find the question that the predictions in FILE cannot be trusted for, and prove it on unseen rows.

    **Example:** polycal audit preds.npz --groups groups.yaml --part evaluation
    """
    sample = pc.read_predictions(file, part=part)  # type: ignore[arg-type]  # checked by the reader
    result = pc.audit(
        sample.labels,
        sample.proba,
        notions=[parse_notion(text) for text in notion] if notion else None,
        groups=None if groups is None else pc.read_groups(groups),
        sample_weight=sample.sample_weight,
        class_names=sample.class_names,
        alpha=alpha,
        random_state=seed,
        n_jobs=jobs,
    )
    _print(result, as_json=as_json)


@app.command()
def demo(*, as_json: JsonOption = False) -> None:
    """Audit the shipped predictions of a real network, with explanations."""
    sample = pc.datasets.load_fashion("evaluation")
    groups = pc.datasets.load_fashion_groups()
    result = pc.audit(sample.labels, sample.proba, groups=groups, class_names=sample.class_names)
    if as_json:
        _print(result, as_json=True)
        return
    console = Console()
    console.print(demo_words.INTRODUCTION, highlight=False)
    _print(result, as_json=False)
    console.print(demo_words.conclusion(result.to_dict()), highlight=False)


def _print(result: pc.Audit, *, as_json: bool) -> None:
    data: dict[str, Any] = result.to_dict()
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        Console(highlight=False).print(render(data))


def main() -> None:
    """Run the command; bad input ends in one line on stderr and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:
        typer.echo(f"polycal: {error}", err=True)
        sys.exit(_BAD_INPUT)
