"""Small pieces of Markdown."""

import math


def table(header, rows):
    """A table; the first column is text, the others are numbers and stand right."""
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join(["---", *["--:"] * (len(header) - 1)]) + "|"]
    lines += ["| " + " | ".join(map(escape, row)) + " |" for row in rows]
    return "\n".join(lines)


def escape(text):
    """Text that cannot end a cell, begin HTML or be taken for emphasis."""
    return " ".join(str(text).replace("|", "/").replace("<", "‹").replace(">", "›").replace("*", "·").split())


def number(value, digits=4):
    """A number with this many decimals; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def seconds(value):
    """Seconds in a readable unit."""
    if value is None or math.isnan(value):
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.2g} µs"


def mebibytes(value):
    """Bytes in MiB."""
    return "–" if value is None or math.isnan(value) else f"{value / 2**20:,.0f} MiB"


def with_error(value, error, digits=4):
    """A number and its standard error."""
    shown = number(value, digits)
    return shown if math.isnan(error) else f"{shown} ± {error:.{digits}f}"
