"""Render the results: ``docs/benchmarks.md`` and its figure. Reads data, computes averages, runs nothing."""

import json
from pathlib import Path

from benchmarks import detecting, measuring, recalibration, subset_search
from benchmarks.machine import RUNS
from benchmarks.rendering.circumstances import circumstances_part, missing_part
from benchmarks.rendering.detecting import detecting_part
from benchmarks.rendering.figures import draw_leaderboard
from benchmarks.rendering.measuring import measuring_part
from benchmarks.rendering.recalibration import recalibration_part
from benchmarks.rendering.subset_search import subset_search_part
from benchmarks.store import FOLDER, Store

DOCS = Path(__file__).parents[1] / "docs"
INTRODUCTION = (
    "Polycal beside every peer that could be installed: the same data, the same machine, the same run. This page is "
    "written by `python -m benchmarks report` from the data in `benchmarks/results`; `make bench` makes these anew, "
    "`make bench-quick` a small part of them in minutes. To compare on your own predictions, let `POLYCAL_DATA` name a "
    "folder of `.npz` files with `proba` or `logits`, `labels` and `evaluation` (true for the rows to report on)."
)


def main(options):
    """Write the page and the figure: into the documentation, or beside results that are kept apart."""
    write(options.results, DOCS if options.results == FOLDER else options.results)


def write(folder, docs):
    """Write the page and the figure of the results in one folder into another."""
    rows = Store(folder / "recalibration.jsonl", recalibration.KEY).rows
    if rows:
        (docs / "images").mkdir(parents=True, exist_ok=True)
        draw_leaderboard(rows, docs / "images" / "leaderboard.png")
    (docs / "benchmarks.md").write_text(render(folder))
    print(f"wrote {docs / 'benchmarks.md'}")


def render(folder):
    """The whole page."""
    runs = json.loads((folder / RUNS).read_text()) if (folder / RUNS).exists() else {}
    rows = Store(folder / "recalibration.jsonl", recalibration.KEY).rows
    timings = Store(folder / "measuring.jsonl", measuring.KEY).rows
    searches = Store(folder / "subset_search.jsonl", subset_search.KEY).rows
    tests = Store(folder / "detecting.jsonl", detecting.KEY).rows
    parts = [
        "# Benchmarks",
        INTRODUCTION,
        recalibration_part(rows),
        measuring_part(timings),
        subset_search_part(searches),
        detecting_part(tests),
        missing_part(runs),
        circumstances_part(runs),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
