"""Read losses, what each action costs for each class, from YAML, JSON or CSV."""

import csv
import math
from io import StringIO
from numbers import Real
from pathlib import Path
from typing import Any

from polycal import _typing
from polycal._text import check_text
from polycal._validation import named_losses
from polycal.io.mappings import kind_words, parse_mapping, small_text
from polycal.storage.damage import check_file, named, readable

_EXAMPLE = "such as 'treat: {sick: 0, default: 1}'"


def read_losses(path: _typing.Path) -> dict[str, dict[str, Any]]:
    r"""Read losses from a ``.yaml``, ``.yml``, ``.json`` or ``.csv`` file.

    Parameters
    ----------
    path : str or path
        A file of at most 16 MiB. YAML and JSON map each action to its costs: a number (the same for all classes), a
        list with a cost for each class, or a mapping from class to cost, in which ``default`` stands for all classes
        that are not named. Several losses stand under a name each; a single one is named after the file. A CSV file is
        one loss: its first line names the classes, each further line is an action, with its name first.

    Returns
    -------
    dict of str to dict
        For each loss its actions, for each action its costs, in file order, as `audit` takes them. Whether the classes
        exist is checked where the losses meet the predictions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "triage.yaml")
    ...     _ = path.write_text("treat: {sick: 0, default: 1}\nwait: {sick: 20, default: 0}\nask: 2\n")
    ...     pc.read_losses(path)
    {'triage': {'treat': {'sick': 0, 'default': 1}, 'wait': {'sick': 20, 'default': 0}, 'ask': 2}}
    """
    path = Path(path)
    check_file(path)
    with named(path):
        found = _parse_csv(path) if path.suffix.lower() == ".csv" else _parse(path)
        losses = named_losses(found, path.stem)
        for name, actions in losses.items():
            _check_actions(name, actions)
        return losses


def _parse(path: Path) -> dict[str, Any]:
    found = parse_mapping(path)
    if not isinstance(found, dict) or not found:
        raise ValueError(f"must map each action to its costs, {_EXAMPLE}; it holds {kind_words(found)}")
    return found


def _check_actions(name: str, actions: Any) -> None:
    """See that a loss is made of actions, and these of costs."""
    if not isinstance(actions, dict) or not actions:
        raise ValueError(
            f"loss {name!r} must map each action to its costs, {_EXAMPLE}; it is {kind_words(actions)}"
        )
    for action, costs in actions.items():
        where = f"loss {name!r}, action {action!r}"
        if not isinstance(action, str):
            raise TypeError(f"{where}: its name is {kind_words(action)}, not text; put quotes around it")
        check_text(action, "name of an action")
        cells = (
            costs.items() if isinstance(costs, dict) else enumerate(costs) if isinstance(costs, list) else ()
        )
        if isinstance(costs, dict | list) and not costs:
            raise ValueError(f"{where} holds no cost; give a number, a list or a mapping from class to cost")
        for key, cost in cells or [(None, costs)]:
            if isinstance(cost, bool) or not isinstance(cost, Real) or not math.isfinite(cost):
                of = "" if key is None else f" of {key!r}"
                raise ValueError(f"{where}: the cost{of} is {kind_words(cost)}, not a finite number")


def _parse_csv(path: Path) -> dict[str, Any]:
    """A table with a line for each action, after one with the classes."""
    with readable("CSV"):
        lines = [line for line in csv.reader(StringIO(small_text(path)), strict=True) if line]
    if len(lines) < 2 or len(lines[0]) < 2:
        raise ValueError("must have a first line that names the classes, and a line for each action")
    header = [cell.strip() for cell in lines[0][1:]]
    if len(set(header)) < len(header):
        twice = next(cell for cell in header if header.count(cell) > 1)
        raise ValueError(f"has two columns for class {twice!r}; drop one")
    actions: dict[str, Any] = {}
    for number, (action, *cells) in enumerate(lines[1:], start=2):
        if action in actions:
            raise ValueError(f"line {number}: action {action!r} is given twice; drop one")
        if len(cells) != len(header):
            raise ValueError(f"line {number} has {len(cells)} costs for {len(header)} classes")
        actions[action] = {
            name: _number(cell, number, name) for name, cell in zip(header, cells, strict=True)
        }
    return actions


def _number(cell: str, line: int, column: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"line {line}: the cost of class {column!r} is {cell!r:.40}, not a number") from None
