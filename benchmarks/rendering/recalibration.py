"""The leaderboard: a short table and a figure; on a page of its own all ranks, set by set, what failed, and notes."""

import math

from benchmarks import ranking
from benchmarks.rendering import markdown
from benchmarks.rendering.calls import calls_part
from benchmarks.rendering.columns import COLUMNS, SCORES, median
from benchmarks.rendering.outcomes import failures_part
from benchmarks.rendering.set_by_set import sets_part

SPLITS = (
    "A method fits, and chooses whatever it chooses, on the calibration part; numbers are of the evaluation part. The "
    "first split is that of the set's file, the others are random and of the same sizes."
)
RANKS = (
    "Average rank over the sets, by the mean over the splits, ± its standard error over the sets; 1 is best. A method "
    "that failed, ran out of time or was skipped on a set, as it had run out of time on one that is not larger, is "
    "ranked last there. *To input*: log loss / Brier score divided by that of the input, geometric mean over the sets. "
    "*Worse than input*: the number of sets on which it raised the log loss / the Brier score. *Failed*: the number of "
    "sets on which it did not finish every split. Times are medians over the sets and splits that the method finished, "
    "and memory is the median over these sets of the largest over splits: what fails on large sets looks cheaper than "
    "it is."
)
NO_RANKS = "No method was run on every set that counts yet, so there are no ranks."
LEADERS = (
    "Average rank over the sets, 1 is best; log loss / Brier score divided by those of the input, geometric mean over "
    "the sets; the number of sets on which they rose; and the median time to fit."
)
# Methods in the short table.
FIRST = 12


def leaders_part(rows):
    """The figure, and the first methods with what matters most."""
    if not rows:
        return "Not run yet."
    field = ranking.field_of(rows)
    if not field.ranked:
        return NO_RANKS
    places = [{s.method: s for s in ranking.standings(rows, column)} for column in SCORES]
    ratios = [ranking.ratios_to_input(rows, column) for column in SCORES]
    counted = list(filter(field.keeps, rows))
    lines = [
        [
            method,
            *(markdown.with_error(place[method].rank, place[method].rank_error, 1) for place in places),
            *_against_input(method, places, ratios),
            costs(counted, method)[0],
        ]
        for method in list(places[0])[:FIRST]
    ]
    titles = [COLUMNS[column][0] for column in SCORES]
    table = markdown.table(["method", *titles, "to input", "worse than input", "fit"], lines)
    figure = "![Average ranks of the methods](images/leaderboard.png)"
    return f"{extent(field)} {LEADERS}\n\n{figure}\n\n{table}"


def recalibration_part(rows):
    """All average ranks, then one table for each set, what failed, and notes."""
    if not rows:
        return "Not run yet."
    field = ranking.field_of(rows)
    parts = [
        f"{extent(field)} {SPLITS}",
        *([RANKS, rank_table(rows, field)] if field.ranked else [NO_RANKS]),
        "What the columns are:",
        "\n".join(f"- **{title}**: {meaning}." for title, _, meaning in COLUMNS.values()),
        not_counted(field),
        sets_part(rows),
        failures_part(rows),
        calls_part(rows),
    ]
    return "\n\n".join(part for part in parts if part)


def extent(field):
    """How much is compared."""
    sizes = sorted({sum(name == of for name, _ in field.counted) for of in field.sets}) or [0]
    splits = markdown.count(sizes[-1], "split")
    splits = splits if len(sizes) == 1 else f"{sizes[0]} to {splits}"
    sets = f"{markdown.count(len(field.sets), 'set')} of predictions"
    return f"{markdown.count(len(field.ranked), 'method')}, {sets}, {splits} of each."


def not_counted(field):
    """The sets and methods that take no part in the ranks, by name."""
    parts = []
    if field.begun:
        names = ", ".join(_begun(field, name, splits) for name, splits in field.begun.items())
        count = "it does not count" if len(field.begun) == 1 else "they do not count"
        parts.append(f"Not all methods were run on {names} yet, so {count}.")
    if field.unranked:
        names = ", ".join(map(markdown.escape, field.unranked))
        parts.append(f"Not tried on every set and split that counts, hence not ranked: {names}.")
    return "\n\n".join(parts)


def _begun(field, name, splits):
    """A set that does not count, or those of its splits that do not."""
    if name not in field.sets:
        return markdown.escape(name)
    which = "split" if len(splits) == 1 else "splits"
    return f"{markdown.escape(name)} ({which} {', '.join(map(str, splits))})"


def rank_table(rows, field):
    """Average ranks, ratios to the input, failures and costs."""
    places = {column: {s.method: s for s in ranking.standings(rows, column)} for column in COLUMNS}
    ratios = [ranking.ratios_to_input(rows, column) for column in SCORES]
    counted = list(filter(field.keeps, rows))
    lines = []
    for method, first in places["log_loss"].items():
        found = [places[column][method] for column in COLUMNS]
        ranks = [markdown.with_error(place.rank, place.rank_error, 1) for place in found]
        against = _against_input(method, [places[column] for column in SCORES], ratios)
        lines.append([method, *ranks, *against, first.failures, *costs(counted, method)])
    titles = [title for title, _, _ in COLUMNS.values()]
    header = ["method", *titles, "to input", "worse than input", "failed", "fit", "predict", "memory"]
    return markdown.table(header, lines)


def _against_input(method, places, ratios):
    """The ratios to the input, and on how many sets it is worse, for both scores."""
    to_input = " / ".join(markdown.number(ratio.get(method, math.nan), 3) for ratio in ratios)
    return to_input, " / ".join(_number_or_dash(place[method].worse_than_input) for place in places)


def _number_or_dash(number):
    return "–" if number is None else str(number)


def costs(rows, method):
    """Median of fitting time, predicting time and memory."""
    made = [row for row in rows if row["method"] == method and row["status"] == "ok"]
    # Splits share a process, whose later ones use memory again that the first has taken.
    memory = {}
    for row in made:
        memory[row["set"]] = max(memory.get(row["set"], 0), row["peak_bytes"])
    return (
        markdown.seconds(median(row["fit_seconds"] for row in made)),
        markdown.seconds(median(row["predict_seconds"] for row in made)),
        markdown.mebibytes(median(memory.values())),
    )
