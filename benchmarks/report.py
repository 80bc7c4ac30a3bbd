"""Render the results: two pages of the documentation and a figure. Reads data, computes averages, runs nothing."""

import json
from pathlib import Path

from benchmarks import (
    costs,
    detecting,
    measuring,
    multicalibration,
    ranking,
    recalibration,
    small,
    subset_search,
)
from benchmarks.machine import RUNS
from benchmarks.rendering.circumstances import circumstances_part, missing_part
from benchmarks.rendering.costs import costs_part
from benchmarks.rendering.detecting import detecting_part
from benchmarks.rendering.figures import draw_leaderboard
from benchmarks.rendering.measuring import measuring_part
from benchmarks.rendering.multicalibration import multicalibration_part
from benchmarks.rendering.recalibration import leaders_part, recalibration_part
from benchmarks.rendering.small import small_part
from benchmarks.rendering.subset_search import subset_search_part
from benchmarks.store import FOLDER, Store

DOCS = Path(__file__).parents[1] / "docs"
COMPARISON = (
    "Polycal beside its peers: the same data and machine; rows are kept until they are made anew, and the end of the "
    "page says by which version each was made."
)
DEFAULT_SOURCE = (
    "This page is written by `python -m benchmarks report` from the data in `benchmarks/results`. `make bench` adds "
    "what these lack, and `python -m benchmarks --force` makes them anew; `make bench-quick` makes a small part in "
    "minutes and keeps it apart."
)
OTHER_SOURCE = "This page is written by `python -m benchmarks report` from the results beside it."
OWN_DATA = (
    "To compare on your own predictions, let `POLYCAL_DATA` name a folder of `.npz` files with `proba` or `logits`, "
    "`labels` and `evaluation` (true for the rows to report on)."
)
WHERE = (
    "A method fits, and chooses whatever it chooses, on the calibration part; numbers are of the evaluation part. All "
    "methods, more columns, and what failed are on the page [set by set](benchmarks-sets.md)."
)
ALL_SETS = "The whole of the leaderboard that the page of [benchmarks](benchmarks.md) begins with."


def main(options):
    """Write the page and the figure: into the documentation, or beside results that are kept apart."""
    folder = Path(options.results)
    if not folder.is_dir():
        raise ValueError(f"there is no folder of results {str(folder)!r}.")
    write(folder, DOCS if is_default(folder) else folder)


def is_default(folder):
    """Whether these are the results of the documentation, however the folder is spelled."""
    return folder.resolve() == FOLDER.resolve()


def write(folder, docs):
    """Write the page and the figure of the results in one folder into another."""
    rows = Store(folder / "recalibration.jsonl", recalibration.KEY).rows
    if ranking.field_of(rows).ranked:
        (docs / "images").mkdir(parents=True, exist_ok=True)
        draw_leaderboard(rows, docs / "images" / "leaderboard.png")
    for name, text in (("benchmarks.md", render(folder)), ("benchmarks-sets.md", render_sets(folder))):
        page = docs / name
        # Sets are named after files, whose names need not be text.
        page.write_text(text, encoding="utf-8", errors="replace")
        print(f"wrote {str(page).encode(errors='replace').decode()}")


def render_sets(folder):
    """The page of the whole leaderboard."""
    rows = Store(folder / "recalibration.jsonl", recalibration.KEY).rows
    return f"# Recalibration, set by set\n\n{ALL_SETS}\n\n{recalibration_part(rows)}\n"


def render(folder):
    """The page that comes first."""
    runs = json.loads((folder / RUNS).read_text()) if (folder / RUNS).exists() else {}
    rows = Store(folder / "recalibration.jsonl", recalibration.KEY).rows
    timings = Store(folder / "measuring.jsonl", measuring.KEY).rows
    few = Store(folder / small.FILE, recalibration.KEY).rows
    searches = Store(folder / "subset_search.jsonl", subset_search.KEY).rows
    tests = Store(folder / "detecting.jsonl", detecting.KEY).rows
    acting = Store(folder / costs.FILE, costs.KEY).rows
    repairs = Store(folder / "multicalibration.jsonl", multicalibration.KEY).rows
    parts = [
        "# Benchmarks",
        f"{COMPARISON} {DEFAULT_SOURCE if is_default(folder) else OTHER_SOURCE} {OWN_DATA}",
        "## Recalibration with many rows",
        leaders_part(rows),
        WHERE,
        "## Recalibration with few rows",
        small_part(few) or "Not run yet.",
        costs_part(acting),
        measuring_part(timings),
        subset_search_part(searches),
        detecting_part(tests),
        multicalibration_part(repairs),
        missing_part(runs),
        circumstances_part(runs, {"recalibration": rows, "small": few}, tests),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
