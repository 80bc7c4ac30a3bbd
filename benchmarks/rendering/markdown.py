"""Small pieces of Markdown."""

import math

# Characters that mean something in Markdown, in its mathematics or in HTML.
ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{character: f"\\{character}" for character in "\\`*_[]|~$#"}}
)


def table(header, rows, text=(0,)):
    """A table; the columns of text stand left, the others, which are numbers, right."""
    rule = ["---" if i in text else "--:" for i in range(len(header))]
    lines = [_line(header), "|" + "|".join(rule) + "|", *map(_line, rows)]
    return "\n".join(lines)


def _line(cells):
    return "| " + " | ".join(map(escape, cells)) + " |"


def escape(text):
    """One line of text that is shown as it is, in a cell, in a heading or in a sentence."""
    return " ".join(str(text).split()).translate(ESCAPES)


def count(n, noun):
    """How many there are, such as "1 set" and "2 sets"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


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
