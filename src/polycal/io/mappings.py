"""Mappings in YAML or JSON, read without trust: of equal keys none wins, and nothing deep or endless is built."""

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from polycal.storage.damage import readable

MAPPING_SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 16 << 20
_MAX_DEPTH, _MAX_TEXT = 20, 10_000
_DEEP = "lists or mappings are nested too deeply"

# The parser in C is tens of times faster, where PyYAML was built with it.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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


def parse_mapping(path: Path, max_depth: int = _MAX_DEPTH) -> Any:
    """What a file of at most 16 MiB holds, by its suffix; errors say what is wrong, without the file's name."""
    suffix = path.suffix.lower()
    if suffix not in MAPPING_SUFFIXES:
        raise ValueError(f"the suffix {path.suffix!r} is not one of {', '.join(MAPPING_SUFFIXES)}")
    text = small_text(path)
    try:
        if suffix == ".json":
            return json.loads(text, object_pairs_hook=_distinct)
        _check_events(text, max_depth)
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a safe loader, made stricter
    except _RefusedError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(_DEEP) from None
    except Exception as error:
        # Beside errors of their own, parsers raise what int, float and date say about a text.
        kind = "JSON" if suffix == ".json" else "YAML"
        raise ValueError(f"cannot be read as {kind}: {_one_line(error)}") from error


def small_text(path: Path) -> str:
    """The text of a file of at most 16 MiB."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"the file has {size:,} bytes; it may have up to {MAX_BYTES:,}")
    with readable("text in UTF-8"):
        return path.read_text(encoding="utf-8-sig")


def _check_events(text: str, max_depth: int) -> None:
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
        if depth > max_depth:
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


def kind_words(value: Any) -> str:
    """Name the kind of a parsed value; lists and mappings are not shown, a hostile one may be endless."""
    if isinstance(value, list | dict):
        return f"{'a' if value else 'an empty'} {'list' if isinstance(value, list) else 'mapping'}"
    return "nothing" if value is None else f"the {type(value).__name__} {value!r:.40}"
