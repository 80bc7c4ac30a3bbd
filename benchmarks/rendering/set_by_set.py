"""One table for each set of predictions."""

import math

from benchmarks import ranking
from benchmarks.rendering import markdown
from benchmarks.rendering.columns import COLUMNS, PAIRED, median
from benchmarks.rendering.outcomes import tally

INTRODUCTION = (
    "Means over the splits. For log loss, Brier score and worst subset also the difference to the best method ± its "
    "paired standard error over the splits (which share rows: it says how stable the order is here, not what new data "
    "would show). A method that did not finish on every split has no means and stands last. Times are medians over "
    "the splits."
)


def sets_part(rows):
    """The tables of all sets, those that count and those that have begun."""
    field = ranking.field_of(rows)
    parts = ["## Set by set", INTRODUCTION]
    for name in sorted({row["set"] for row in rows}):
        own = [row for row in rows if row["set"] == name]
        parts.append(set_part(name, list(filter(field.keeps, own)) or own))
    return "\n\n".join(parts)


def set_part(name, own):
    """The table of one set, the lowest log loss first, what did not finish last."""
    found = {column: ranking.paired_differences(own, name, column) for column in COLUMNS}
    n_splits = len({row["seed"] for row in own})
    finished, others = [], []
    for method in sorted({row["method"] for row in own}):
        made = [row for row in own if row["method"] == method]
        unfinished = tally(made, n_splits)
        line = [f"{method} ({unfinished})" if unfinished else method, *cells(found, method)]
        if method in found["log_loss"]:
            finished.append((found["log_loss"][method][0], [*line, *costs(made)]))
        else:
            others.append([*line, "–", "–"])
    header = ["method"]
    for column, (title, _, _) in COLUMNS.items():
        header += [title, "± best"] if column in PAIRED else [title]
    lines = [line for _, line in sorted(finished)] + others
    first = own[0]
    about = (
        f"{first['k']:,} classes, {markdown.count(first['n_calibration'], 'row')} to fit on and "
        f"{first['n_evaluation']:,} to report on."
    )
    table = markdown.table([*header, "fit", "predict"], lines)
    return f"### {markdown.escape(name)}\n\n{about}\n\n{table}"


def cells(found, method):
    """A method's numbers in one set; dashes for one that did not finish."""
    out = []
    for column, (_, digits, _) in COLUMNS.items():
        value, gap, error = found[column].get(method, (math.nan,) * 3)
        out.append(markdown.number(value, digits))
        if column in PAIRED:
            out.append(markdown.with_error(gap, error, digits))
    return out


def costs(made):
    """Median over splits of fitting and predicting time."""
    finished = [row for row in made if row["status"] == "ok"]
    return [
        markdown.seconds(median(row[column] for row in finished))
        for column in ("fit_seconds", "predict_seconds")
    ]
