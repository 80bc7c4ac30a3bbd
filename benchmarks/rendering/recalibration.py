"""The leaderboard: average ranks, one table for each set, and what failed."""

import math

import numpy as np

from benchmarks import ranking
from benchmarks.rendering import markdown
from benchmarks.rendering.figures import MOST

WORST_SUBSET = (
    "smooth calibration error of the worst subset of the classes: found on one half of the evaluation part by "
    "polycal's subset auditor, measured on the other half, where calibrated predictions would not read 0 either"
)
CANONICAL = (
    "squared canonical calibration error, debiased: the mean inner product of a row's residual with those of the √n "
    "rows of nearest prediction; 0 on average for calibrated predictions, so it may be negative, which ranks as 0"
)
SPLITS = (
    "A method fits, and chooses whatever it chooses, on the calibration part; numbers are of the evaluation part. The "
    "first split is that of the set's file, the others are random and of the same sizes."
)
RANKS = (
    "Average rank over the sets, by the mean over the splits, ± its standard error over the sets; 1 is best. A method "
    "that failed or ran out of time on a set is ranked last there. *To input*: log loss / Brier score divided by that "
    "of the input, geometric mean over the sets. *Worse than input*: the number of sets on which it raised the log "
    "loss / the Brier score. Times are medians over sets and splits; memory is the median over sets of the largest "
    "over splits."
)
SETS = (
    "Means over the splits. For log loss, Brier score and worst subset also the difference to the best method ± its "
    "paired standard error over the splits (which share rows: it says how stable the order is here, not what new data "
    "would show)."
)
# Columns of the results: title, decimals, and what it is.
COLUMNS = {
    "log_loss": ("log loss", 4, "mean of -log of the true class's probability, floored at 2.2e-16"),
    "brier": ("Brier", 4, "mean squared distance of prediction and one-hot label, summed over classes"),
    "worst_subset": ("worst subset", 4, WORST_SUBSET),
    "canonical": ("canonical", 5, CANONICAL),
    "classwise_ece": ("class-wise ECE", 5, "mean over classes, 15 equal-width bins"),
    "ece": ("ECE-15", 4, "of the most likely class, 15 equal-width bins"),
    "accuracy": ("accuracy", 4, "higher is better"),
}
SCORES = ("log_loss", "brier")
# Those shown with the difference to the best method.
PAIRED = ("log_loss", "brier", "worst_subset")


def recalibration_part(rows):
    """Average ranks, then one table for each set, then what failed."""
    if not rows:
        return "## Recalibration\n\nNot run yet."
    names = sorted({row["set"] for row in rows})
    n_splits = len({row["seed"] for row in rows})
    splits = "one split" if n_splits == 1 else f"{n_splits} splits"
    complete, incomplete = ranking.complete_methods(rows)
    lines = [
        "## Recalibration",
        f"{len(complete)} methods, {len(names)} sets of real predictions, {splits} of each. {SPLITS}",
        RANKS,
        "![Average ranks of the methods](images/leaderboard.png)",
        *([f"The figure shows the first {MOST} in log loss, the table all."] if len(complete) > MOST else []),
        rank_table(rows),
        "What the columns are:",
        "\n".join(f"- **{title}**: {meaning}." for title, _, meaning in COLUMNS.values()),
    ]
    if incomplete:
        lines.append(f"Not tried on every set and split, hence not ranked: {', '.join(incomplete)}.")
    lines += ["### Set by set", SETS, *(set_part(rows, name) for name in names), failures_part(rows)]
    return "\n\n".join(lines)


def rank_table(rows):
    """Average ranks, ratios to the input, failures and costs."""
    places = {column: {s.method: s for s in ranking.standings(rows, column)} for column in COLUMNS}
    ratios = [ranking.ratios_to_input(rows, column) for column in SCORES]
    lines = []
    for method in (s.method for s in ranking.standings(rows, "log_loss")):
        found = [places[column][method] for column in COLUMNS]
        ranks = [markdown.with_error(place.rank, place.rank_error, 1) for place in found]
        to_input = " / ".join(markdown.number(ratio.get(method, math.nan), 3) for ratio in ratios)
        worse = " / ".join(str(places[column][method].worse_than_input) for column in SCORES)
        lines.append([method, *ranks, to_input, worse, found[0].failures, *costs(rows, method)])
    titles = [title for title, _, _ in COLUMNS.values()]
    header = ["method", *titles, "to input", "worse than input", "failed", "fit", "predict", "memory"]
    return markdown.table(header, lines)


def costs(rows, method):
    """Median of fitting time, predicting time and memory."""
    made = [row for row in rows if row["method"] == method and row["status"] == "ok"]
    # Splits share a process, whose later ones use memory again that the first has taken.
    memory = {}
    for row in made:
        memory[row["set"]] = max(memory.get(row["set"], 0), row["peak_bytes"])
    return (
        markdown.seconds(_median(row["fit_seconds"] for row in made)),
        markdown.seconds(_median(row["predict_seconds"] for row in made)),
        markdown.mebibytes(_median(memory.values())),
    )


def _median(values):
    values = list(values)
    return float(np.median(values)) if values else math.nan


def set_part(rows, name):
    """The table of one set, the lowest log loss first."""
    own = [row for row in rows if row["set"] == name]
    found = {column: ranking.paired_differences(rows, name, column) for column in COLUMNS}
    order = sorted(found["log_loss"], key=lambda m: found["log_loss"][m][0])
    header = ["method"]
    for column, (title, _, _) in COLUMNS.items():
        header += [title, "± best"] if column in PAIRED else [title]
    lines = [[method, *cells(found, method), *set_costs(own, method)] for method in order]
    first = own[0]
    title = f"#### {name}\n\n{first['k']} classes, {first['n_calibration']:,} rows to fit on and "
    return f"{title}{first['n_evaluation']:,} to report on.\n\n" + markdown.table(
        [*header, "fit", "predict"], lines
    )


def cells(found, method):
    """A method's numbers in one set."""
    out = []
    for column, (_, digits, _) in COLUMNS.items():
        value, gap, error = found[column].get(method, (math.nan,) * 3)
        out.append(markdown.number(value, digits))
        if column in PAIRED:
            out.append(markdown.with_error(gap, error, digits))
    return out


def set_costs(own, method):
    """Median over splits of fitting and predicting time."""
    made = [row for row in own if row["method"] == method and row["status"] == "ok"]
    return [
        markdown.seconds(_median(row[column] for row in made))
        for column in ("fit_seconds", "predict_seconds")
    ]


def failures_part(rows):
    """What failed or took too long, with the error."""
    failed = {}
    for row in rows:
        if row["status"] != "ok":
            failed.setdefault((row["method"], row["set"]), []).append(row)
    lines = [
        [method, name, len(found), found[0]["status"], found[0]["error"]]
        for (method, name), found in sorted(failed.items())
    ]
    notes = sorted({(row["method"], row["note"]) for row in rows if row.get("note")})
    parts = ["### What failed or took too long"]
    parts.append(markdown.table(["method", "set", "splits", "what", "error"], lines) if lines else "Nothing.")
    if notes:
        remarks = {}
        for method, note in notes:
            remarks.setdefault(method, note)
        parts.append(
            "Answers that had to be mended: " + "; ".join(f"{m} ({n})" for m, n in remarks.items()) + "."
        )
    return "\n\n".join(parts)
