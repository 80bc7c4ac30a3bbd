"""Seconds, ratios and growth."""

import math

from benchmarks import measuring
from benchmarks.rendering import markdown
from benchmarks.rendering.outcomes import outcome

INTRODUCTION = (
    "Seconds of one call, the best of several, each in a process of its own; in brackets as a multiple of polycal's in "
    "the same run. Then the exponent p of the growth (seconds ~ size^p, over the larger half of the sizes), and the "
    "memory taken at the largest size that it finished. *Skipped*: not tried, as a smaller size took too long. The "
    "calls measure different quantities."
)


def measuring_part(rows):
    """One table for each curve."""
    if not rows:
        return "## Measuring\n\nNot run yet."
    lines = ["## Measuring", INTRODUCTION]
    return "\n\n".join(
        [*lines, *(curve_part(rows, curve) for curve in dict.fromkeys(r["curve"] for r in rows))]
    )


def curve_part(rows, curve):
    """Methods by sizes."""
    own = {(row["method"], row["n"], row["k"]): row for row in rows if row["curve"] == curve}
    sizes = sorted({(n, k) for _, n, k in own})
    slopes = measuring.slopes(rows)
    reference = measuring.REFERENCE[curve]
    header = [
        "",
        *(f"{n:,} rows" if not curve.endswith("k") else f"{k:,} classes" for n, k in sizes),
        "p",
        "memory",
    ]
    lines = []
    for method in dict.fromkeys(m for m, _, _ in own):
        made = [own[method, n, k] for n, k in sizes if own.get((method, n, k), {}).get("status") == "ok"]
        times = [_time(own.get((method, n, k)), own.get((reference, n, k))) for n, k in sizes]
        peak = made[-1]["peak_bytes"] if made else math.nan
        slope = slopes.get((curve, method), math.nan)
        lines.append([method, *times, markdown.number(slope, 2), markdown.mebibytes(peak)])
    return f"### {curve[0].upper()}{curve[1:]}\n\n" + markdown.table(header, lines)


def _time(row, reference):
    if row is None:
        return "not tried"
    if row["status"] != "ok":
        return outcome(row)[0]
    shown = markdown.seconds(row["seconds"])
    if reference is None or reference["status"] != "ok" or reference is row:
        return shown
    return f"{shown} ({row['seconds'] / reference['seconds']:.3g})"
