"""How good the search for the worst subset is."""

from benchmarks.rendering import markdown

INTRODUCTION = (
    "The worst subset of the classes, searched on one half of each set's evaluation part: its smooth calibration error "
    "there, on the other half, and what calibrated predictions would read on that half. *polycal search* climbs on the "
    "error seen; *polycal auditor* looks for what will hold up on other rows."
)


def subset_search_part(rows):
    """One table for all sets."""
    if not rows:
        return "### Subset search\n\nNot run yet."
    lines = [
        [
            f"{row['set']}: {row['method']}",
            row["k"],
            f"{row['n']:,}",
            markdown.seconds(row["seconds"]),
            row["size"],
            *(markdown.number(row[column]) for column in ("seen", "held_out", "noise_floor")),
        ]
        for row in sorted(rows, key=lambda row: (row["k"], row["set"], -row["held_out"]))
    ]
    header = ["search", "classes", "rows", "time", "size", "seen", "held out", "noise floor"]
    return f"### Subset search\n\n{INTRODUCTION}\n\n" + markdown.table(header, lines)
