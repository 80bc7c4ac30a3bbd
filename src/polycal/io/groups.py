"""Read named groups of classes from YAML or JSON."""

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from polycal import _typing
from polycal._text import check_text
from polycal.storage.damage import check_file, named, readable

MAX_GROUPS_BYTES = 16 << 20
_MAX_DEPTH, _MAX_TEXT = 20, 10_000
_DEEP = "lists or mappings are nested too deeply; a group is a plain list"

# The parser in C is tens of times faster, where PyYAML was built with it.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_groups(path: _typing.Path) -> dict[str, list[str | int]]:
    r"""Read groups of classes from a ``.yaml``, ``.yml`` or ``.json`` file.

    Parameters
    ----------
    path : str or path
        A file of at most 16 MiB that maps each group's name to a list of class names or class indices.

    Returns
    -------
    dict of str to list
        The groups in file order. Whether the classes exist is checked where the groups meet the predictions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "groups.yaml")
    ...     _ = path.write_text("animal: [cat, dog]\nvehicle:\n  - car\n")
    ...     pc.read_groups(path)
    {'animal': ['cat', 'dog'], 'vehicle': ['car']}
    """
    path = Path(path)
    check_file(path)
    with named(path):
        return _check(_parse(path))


class _RefusedError(Exception):
    """What a parser would take, and we do not."""


class _StrictLoader(_SafeLoader):
    """PyYAML's safe loader, which lets the last of equal keys win, made to refuse them."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping from distinct keys."""
        keys = (self.construct_object(key, deep=True) for key, _ in node.value)
        _refuse_duplicates([key for key in keys if isinstance(key, Hashable)])
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _parse(path: Path) -> Any:
    """Parse a file by its suffix."""
    suffix = path.suffix.lower()
    if suffix not in {".json", ".yaml", ".yml"}:
        raise ValueError(f"the suffix {path.suffix!r} is not one of .yaml, .yml, .json")
    size = path.stat().st_size
    if size > MAX_GROUPS_BYTES:
        raise ValueError(f"the file has {size:,} bytes; groups may take up to {MAX_GROUPS_BYTES:,}")
    with readable("text in UTF-8"):
        text = path.read_text(encoding="utf-8-sig")
    try:
        if suffix == ".json":
            return json.loads(text, object_pairs_hook=_distinct)
        _check_events(text)
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a safe loader, made stricter
    except _RefusedError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(_DEEP) from None
    except Exception as error:
        # Beside errors of their own, parsers raise what int, float and date say about a text.
        kind = "JSON" if suffix == ".json" else "YAML"
        raise ValueError(f"cannot be read as {kind}: {_one_line(error)}") from error


def _check_events(text: str) -> None:
    """Refuse, before anything is built, what would end the process or take for ever: deep nesting, endless numbers."""
    depth = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and len(event.value) > _MAX_TEXT:
            raise _RefusedError(
                f"holds a text of {len(event.value):,} characters; names may have {_MAX_TEXT:,}"
            )
        if depth > _MAX_DEPTH:
            raise _RefusedError(_DEEP)


def _one_line(error: Exception) -> str:
    """What a parser says, and where."""
    mark = getattr(error, "problem_mark", None)
    if isinstance(error, yaml.MarkedYAMLError) and mark is not None:
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object from distinct keys."""
    _refuse_duplicates([key for key, _ in pairs])
    return dict(pairs)


def _refuse_duplicates(keys: list[Any]) -> None:
    """Refuse a group given twice, of which a parser would drop one."""
    seen = set()
    for key in keys:
        if key in seen:
            raise _RefusedError(f"{key!r:.40} is given twice; merge the two or rename one")
        seen.add(key)


def _check(groups: Any) -> dict[str, list[str | int]]:
    """See that these are names, each with a list of classes."""
    if not isinstance(groups, dict) or not groups:
        raise ValueError(
            f"must map each group's name to its classes, such as 'animal: [cat, dog]'; it holds {_kind(groups)}"
        )
    problem = next(filter(None, (_problem(name, members) for name, members in groups.items())), None)
    if problem is not None:
        raise ValueError(problem)
    return groups


def _problem(name: Any, members: Any) -> str | None:
    """Say what is wrong with a group, if anything is."""
    if not isinstance(name, str):
        return f"a group's name is {_kind(name)}, not text; put quotes around it"
    check_text(name, "group name")
    if not isinstance(members, list) or not members:
        return (
            f"group {name!r} must be a list of at least one class, such as [cat, dog]; it is {_kind(members)}"
        )
    bad = [m for m in members if isinstance(m, bool) or not isinstance(m, str | int)]
    if bad:
        return f"group {name!r} holds {_kind(bad[0])}, not a class; put quotes around a name that is not plain text"
    return None


def _kind(value: Any) -> str:
    """Name the kind of a parsed value; lists and mappings are not shown, a hostile one may be endless."""
    if isinstance(value, list | dict):
        return f"{'a' if value else 'an empty'} {'list' if isinstance(value, list) else 'mapping'}"
    return "nothing" if value is None else f"the {type(value).__name__} {value!r:.40}"
