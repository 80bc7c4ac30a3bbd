"""Text that came from data: what is refused at the gate, and how it is shown."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


class _Reader:
    """Who reads the words: a programmer, or somebody at a terminal."""

    at_terminal = False


@contextmanager
def for_terminal() -> Iterator[None]:
    """While a command runs, advice is given in its own words: ``--from-logits``, not ``from_logits=True``."""
    before, _Reader.at_terminal = _Reader.at_terminal, True
    try:
        yield
    finally:
        _Reader.at_terminal = before


def advice(python: str, command: str) -> str:
    """What to do about an error, for a program or for a command.

    Examples
    --------
    >>> advice("pass from_logits=True", "use --from-logits")
    'pass from_logits=True'
    """
    return command if _Reader.at_terminal else python


def listed_names(names: Sequence[str], most: int = 12) -> str:
    """The first names of many, as text.

    Examples
    --------
    >>> print(listed_names(["cat", "dog", "cow"], 2))
    'cat', 'dog' and 1 more
    """
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
