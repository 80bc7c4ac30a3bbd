"""The table of few rows: by how many there are, and for two classes."""

import numpy as np

from benchmarks.methods import BASELINE
from benchmarks.rendering import markdown

# Rows to fit on, from and below.
BANDS = ((0, 120), (120, 400), (400, 1500), (1500, np.inf))
# Added to both scores of a ratio: some inputs make next to no mistake.
SLACK = 1e-3
# Ratios beyond this are worse than the input, not rounded otherwise.
WORSE = 1.0 + 1e-6
ABOUT = (
    "Log loss / Brier score divided by the input's, 0.001 added to both, geometric mean over the tasks, then the part "
    "of the tasks in which the log loss rose. *Worst*: the largest ratio of log losses in any task. *Failed*: tasks "
    "without an answer, which are left out elsewhere."
)


def small_part(rows):
    """The table, the best in the first band first; nothing where it was not run."""
    inputs = {row["set"]: row for row in rows if row["method"] == BASELINE and row["status"] == "ok"}
    rows = [row for row in rows if row["set"] in inputs and row["method"] != BASELINE]
    if not rows:
        return ""
    groups = _groups(inputs)
    methods = {row["method"] for row in rows}
    made = {method: _by_set(rows, method) for method in methods}
    ordered = sorted(
        methods, key=lambda m: (_ratio(made[m], inputs, next(iter(groups.values())), "log_loss"), m)
    )
    lines = [
        [
            method,
            *(_cell(made[method], inputs, names) for names in groups.values()),
            markdown.number(max(_ratios(made[method], inputs, inputs, "log_loss"), default=np.nan), 2),
            sum(row["method"] == method and row["status"] != "ok" for row in rows),
        ]
        for method in ordered
    ]
    header = ["method", *groups, "worst", "failed"]
    extent = (
        f"{markdown.count(len(inputs), 'task')}: classifiers on small tables, by the rows to calibrate on (and the "
        "number of tasks), and those of two classes."
    )
    return f"{extent} {ABOUT}\n\n{markdown.table(header, lines)}"


def _groups(inputs):
    """The names of the tasks of each column, which have some."""
    titles = [
        f"{low:,} rows and more"
        if high == np.inf
        else (f"{low:,} to {high:,} rows" if low else f"below {high:,} rows")
        for low, high in BANDS
    ]
    groups = {
        title: [name for name, row in inputs.items() if low <= row["n_calibration"] < high]
        for title, (low, high) in zip(titles, BANDS, strict=True)
    }
    groups["two classes"] = [name for name, row in inputs.items() if row["k"] == 2]
    return {f"{title} ({len(names)})": names for title, names in groups.items() if names}


def _by_set(rows, method):
    return {row["set"]: row for row in rows if row["method"] == method and row["status"] == "ok"}


def _ratios(made, inputs, names, column):
    return [
        (made[name][column] + SLACK) / (inputs[name][column] + SLACK)
        for name in names
        if name in made and made[name][column] is not None
    ]


def _ratio(made, inputs, names, column):
    """The geometric mean; infinite where there is nothing to average."""
    found = _ratios(made, inputs, names, column)
    return float(np.exp(np.mean(np.log(found)))) if found else np.inf


def _cell(made, inputs, names):
    ratios = _ratios(made, inputs, names, "log_loss")
    if not ratios:
        return "–"
    harmed = np.mean(np.array(ratios) > WORSE)
    scores = " / ".join(
        markdown.number(_ratio(made, inputs, names, column), 3) for column in ("log_loss", "brier")
    )
    return f"{scores}, {harmed:.0%}"
