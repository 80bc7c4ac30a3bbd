"""A small card for notebooks: a title and lines of label and value. Every string in it is escaped."""

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np

from polycal._text import printable

# Only borders and opacity: the notebook's own colours stay, light or dark.
FRAME = (
    "border:1px solid rgba(128,128,128,.4);border-radius:8px;padding:.7em 1em;max-width:56em;overflow-x:auto"
)
_LABEL = "text-align:left;font-weight:normal;opacity:.75;padding:.1em 1.2em .1em 0;vertical-align:top"
_VALUE = "text-align:left;padding:.1em 0;overflow-wrap:anywhere"


def card(title: str, lines: Iterable[tuple[str, str]]) -> str:
    """The card as a fragment of HTML."""
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{_LABEL}">{escape(printable(label))}</th>'
        f'<td style="{_VALUE}">{escape(printable(value))}</td></tr>'
        for label, value in lines
    )
    return f'<div style="{FRAME}"><strong>{escape(printable(title, lines=True))}</strong><table>{rows}</table></div>'


def some(names: Iterable[str], limit: int = 8) -> str:
    """The first names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - limit:,} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more


def value_words(value: Any) -> str:
    """A fitted number, or the shape of a fitted array."""
    array = np.asarray(value)
    if array.ndim:
        return f"array of shape {array.shape}"
    return f"{array.item():.6g}" if array.dtype.kind == "f" else str(array.item())
