"""``polycal explore``."""

import threading
import webbrowser
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import polycal as pc
from polycal._threads import thread_budget
from polycal.cli.inputs import read_calibrator, read_sample, shown
from polycal.cli.layout import names_in, reads_columns
from polycal.cli.options import (
    FileArgument,
    GroupsOption,
    JobsOption,
    JsonOption,
    LossesOption,
    PartOption,
    QuietOption,
    SeedOption,
    TaxonomyOption,
)
from polycal.cli.output import print_json, working
from polycal.io.layout import Layout

CalibratorOption = Annotated[
    Path | None,
    typer.Option(
        "--calibrator",
        metavar="MODEL",
        help="Show the predictions of a saved calibrator beside; FILE must not hold rows it was fitted on.",
    ),
]
SliceOption = Annotated[
    str | None,
    typer.Option(
        "--slice-by",
        metavar="COLUMNS",
        help="Columns that are no classes, such as sex,age: questions may be put to the rows of their values.",
    ),
]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port to listen at, on this machine only; 0 for any.")
]
BrowserOption = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")]


@reads_columns
def explore(
    file: FileArgument,
    *,
    groups: GroupsOption = None,
    losses: LossesOption = None,
    taxonomy: TaxonomyOption = None,
    part: PartOption = "all",
    layout: Layout,
    slice_by: SliceOption = None,
    calibrator: CalibratorOption = None,
    port: PortOption = 0,
    browser: BrowserOption = True,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pick classes on a local page and see how far their probabilities can be trusted. Ctrl-C ends it.

    **Example:** polycal explore preds.npz --groups groups.yaml
    """
    from polycal.explorer.answers import warm_up  # noqa: PLC0415 - slow to import
    from polycal.explorer.server import open_door, serve  # noqa: PLC0415 - needs an extra
    from polycal.explorer.state import make_explorer  # noqa: PLC0415

    door = open_door(port)
    layout = replace(layout, columns=tuple(names_in([slice_by]) or ()) if slice_by else ())
    named_groups = None if groups is None else pc.read_groups(groups)
    tree = None if taxonomy is None else pc.read_taxonomy(taxonomy)
    costs = None if losses is None else pc.read_losses(losses)
    model = None if calibrator is None else read_calibrator(calibrator)
    with thread_budget(jobs):
        with working(f"loading {shown([file])}", quiet=quiet):
            explorer = make_explorer(
                read_sample(file, part, layout, quiet=quiet or as_json),
                title=_title(file, part),
                groups=named_groups,
                taxonomy=tree,
                losses=costs,
                calibrator=model,
                seed=seed,
                n_jobs=jobs,
                slice_by=tuple(layout.columns),
            )
            # Handing over the predictions to the search takes a moment in which nothing else is answered.
            explorer.search.start()
            warm_up(explorer)
        # From here on Ctrl-C is how to end, not a failure.
        with suppress(KeyboardInterrupt):
            _announce(door.url, quiet=quiet, as_json=as_json)
            if browser:
                # On a thread: some browsers only return when they are closed.
                threading.Thread(target=webbrowser.open, args=(door.url,), daemon=True).start()
            serve(explorer, door)


def _title(file: str, part: str) -> str:
    name = shown([file])
    return name if part == "all" else f"{name}, {part} rows"


def _announce(url: str, *, quiet: bool, as_json: bool) -> None:
    """Where to look; nothing but the address where no words are wanted."""
    if as_json:
        print_json({"url": url})
    elif quiet:
        typer.echo(url)
    else:
        typer.echo(f"Exploring at {url}\nOnly this machine and this address can see it. Ctrl-C ends it.")
