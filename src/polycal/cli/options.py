"""Arguments and options that several subcommands share: one word and one help text each."""

from pathlib import Path
from typing import Annotated

import typer


def _checked_jobs(jobs: int) -> int:
    """Threads, of which there must be some."""
    if jobs == 0:
        raise ValueError("--jobs 0: give a number of threads, or -1 for one per core.")
    return jobs


# Text and not paths, which would leave out one of the slashes of a URL.
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Predictions with labels: .npz, .npy, .csv, .tsv, .jsonl, .parquet, .feather; - for standard input. "
        "Several files, a folder or a quoted pattern are read in chunks. URLs work too, such as "
        "'s3://bucket/logs/*.parquet'.",
    ),
]
FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Predictions with labels: .npz, .npy, .csv, .tsv, .jsonl, .parquet, .feather; a URL of one; or -.",
    ),
]
GroupsOption = Annotated[
    Path | None, typer.Option("--groups", metavar="G", help="Named groups of classes, .yaml or .json.")
]
LossesOption = Annotated[
    Path | None,
    typer.Option(
        "--losses",
        metavar="L",
        help="What actions cost for each class, .yaml, .json or .csv: what acting on the predictions costs.",
    ),
]
TaxonomyOption = Annotated[
    Path | None,
    typer.Option(
        "--taxonomy",
        metavar="T",
        help="A tree of the classes, .yaml, .json or .csv: every node is a question.",
    ),
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
JobsOption = Annotated[
    int, typer.Option("--jobs", help="Threads; -1 for one per core.", callback=_checked_jobs)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bars, no notes, and no words of success.")
]
