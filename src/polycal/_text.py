"""Text that came from data: what is refused at the gate, and how it is shown."""

import re
from typing import Any

# Controls, among them those that begin the escape sequences of terminals; ends of lines that are not "\n"; marks that
# turn the direction of text; and halves of characters.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_UNSEEN_IN_LINES = re.compile(_UNSEEN.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def printable(text: str, *, lines: bool = False) -> str:
    r"""Text for a terminal, a log or a page: what acts instead of being seen is written out.

    Called wherever words leave for people's eyes; JSON escapes such characters by itself. With ``lines``, ends of
    lines and tabs stay.

    Examples
    --------
    >>> print(printable("\x1b[2Jcat"))
    \x1b[2Jcat
    """
    unseen = _UNSEEN_IN_LINES if lines else _UNSEEN
    return unseen.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_data(data: Any, *, lines: bool = False) -> Any:
    """Dictionaries and lists with all text in them made printable."""
    if isinstance(data, str):
        return printable(data, lines=lines)
    if isinstance(data, dict):
        return {key: printable_data(value, lines=lines) for key, value in data.items()}
    return [printable_data(value, lines=lines) for value in data] if isinstance(data, list | tuple) else data


def check_text(text: str, what: str) -> str:
    """Refuse text that no file, page or terminal can show: halves of characters, and numbers beyond the last."""
    try:
        broken = any("\ud800" <= character <= "\udfff" for character in text)
    except SystemError:
        # NumPy makes text of any number, which Python then cannot take apart.
        broken = True
    if broken:
        raise ValueError(f"the {what} {text!a:.60} holds a code point that is no character; rename it.")
    return text
