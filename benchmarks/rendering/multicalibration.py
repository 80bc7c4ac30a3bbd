"""How well calibrators do for rows that differ in their features."""

from collections import defaultdict

from benchmarks.rendering import markdown

INTRODUCTION = (
    "Calibrators that see the features of rows, fitted on the same calibration rows and judged on the same others, by "
    "`python -m benchmarks.multicalibration`. *Multicalibration error* is that of arXiv 2506.11251 on segments of "
    "up to two columns, computed by MCGrad's own package (for more than two classes the mean over classes, each "
    "against the rest); *in σ*: in standard deviations of what calibrated predictions would show. *Temperature "
    "scaling by groups*: a temperature for each value of the column that is best in three folds. *Patches*: what "
    "`MulticalibratedCalibrator` does not do; slice after slice is found on one half of the calibration rows, proven "
    "on the other, and its scores are shifted: trees predict the real sets better. The planted sets are calibrated "
    "but for one slice, the calibrated ones everywhere. Times are of a busy machine, on different days."
)


def multicalibration_part(rows):
    """One table for all sets, which averages over seeds."""
    if not rows:
        return "## Rows that differ\n\nNot run yet."
    cells = defaultdict(list)
    for row in rows:
        cells[row["set"], row["method"]].append(row)
    lines = [
        [
            f"{name}: {method}",
            len(several),
            *(f"{_mean(several, column):.4f}" for column in ("log_loss", "mce")),
            f"{_mean(several, 'mce_sigma'):.1f}",
            markdown.seconds(_mean(several, "seconds")),
        ]
        for (name, method), several in sorted(
            cells.items(), key=lambda item: (item[0][0], _mean(item[1], "log_loss"))
        )
    ]
    header = ["set: method", "runs", "log loss", "multicalibration error", "in σ", "time"]
    return f"## Rows that differ\n\n{INTRODUCTION}\n\n" + markdown.table(header, lines)


def _mean(rows, column):
    return sum(row[column] for row in rows) / len(rows)
