"""Power of the tests."""

import math

import numpy as np

from benchmarks import detecting
from benchmarks.peers.hypothesis_tests import TESTS
from benchmarks.rendering import markdown

INTRODUCTION = (
    "How often each test rejects at level 5 %. In the column 0 predictions are calibrated, and a valid test rejects at "
    "most 5 %. *Found from*: the strength rejected four times in five, by interpolation. *Samples*: of each "
    "strength, as many as there was time for; with few of them the shares are coarse. What looks at single "
    "classes or at the most likely one is blind to the first case by construction. The oracle is told which "
    "classes are off, and tests their sum on all rows: no search can do better."
)


def detecting_part(rows):
    """One table for each case."""
    if not rows:
        return "## Detecting\n\nNot run yet."
    lines = ["## Detecting", INTRODUCTION]
    cases = [case for case in detecting.CASES if any(row["case"] == case.name for row in rows)]
    return "\n\n".join([*lines, *(case_part(rows, case) for case in cases)])


def case_part(rows, case):
    """Tests by strengths."""
    own = {(row["test"], row["strength"]): row for row in rows if row["case"] == case.name}
    strengths = sorted({strength for _, strength in own})
    lines = []
    for test in dict.fromkeys(name for name, _ in own):
        made = {s: own[test, s] for s in strengths if (test, s) in own}
        points = [(s, row["rejected"] / row["repeats"]) for s, row in made.items() if row["status"] == "ok"]
        found = detecting.smallest_found(points)
        shares = [_share(made.get(s)) for s in strengths]
        cost = [row["seconds"] for row in made.values() if row["status"] == "ok"]
        looks_at = TESTS[test].looks_at if test in TESTS else ""
        time = markdown.seconds(float(np.median(cost)) if cost else math.nan)
        samples = min((row["repeats"] for row in made.values() if row["status"] == "ok"), default=0)
        lines.append([test, looks_at, *shares, "–" if found is None else f"{found:.3g}", samples, time])
    said = " or ".join(f"{n:,}" for n in sorted({row["n"] for row in own.values()}))
    header = ["test", "looks at", *map(str, strengths), "found from", "samples", "time"]
    return (
        f"### {case.name[0].upper()}{case.name[1:]}\n\nStrength: {case.meaning}; {said} rows.\n\n"
        + markdown.table(header, lines, text=(0, 1))
    )


def _share(row):
    if row is None:
        return "–"
    return f"{row['rejected'] / row['repeats']:.0%}" if row["status"] == "ok" else row["status"]
