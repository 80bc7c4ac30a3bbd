"""Trees of classes at the gate: nested mappings, paths or parents become names and parents, parents first."""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from polycal._text import check_text

# Deeper or larger trees are a mistake, or meant to do harm.
MAX_DEPTH, MAX_NODES = 64, 1 << 18
_EXAMPLE = "such as {'animal': ['cat', 'dog'], 'vehicle': ['car']}"


class _Nodes:
    """Names and parents, as they are found."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parents: list[int] = []

    def add(self, name: Any, parent: int) -> int:
        """One more node; its number."""
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            kind = "an empty text" if name == "" else f"the {type(name).__name__} {name!r:.40}"
            raise ValueError(
                f"taxonomy: a node's name is {kind}; names must be text. Put quotes around others."
            )
        if len(self.names) >= MAX_NODES:
            raise ValueError(f"taxonomy: there are more than {MAX_NODES:,} nodes.")
        self.names.append(check_text(str(name), "name of a node"))
        self.parents.append(parent)
        return len(self.names) - 1

    def add_below(self, tree: Any, parent: int, depth: int) -> None:
        """All that a nested mapping or list holds."""
        if depth > MAX_DEPTH:
            raise ValueError(f"taxonomy: nodes are nested more than {MAX_DEPTH} deep.")
        if isinstance(tree, Mapping):
            for name, below in tree.items():
                node = self.add(name, parent)
                if below is not None:
                    self.add_below(below, node, depth + 1)
        elif isinstance(tree, list | tuple):
            for item in tree:
                if isinstance(item, Mapping):
                    self.add_below(item, parent, depth)
                else:
                    self.add(item, parent)
        else:
            self.add(tree, parent)


def taxonomy_nodes(tree: Any) -> tuple[tuple[str, ...], list[int]]:
    """The names and parents of a tree in any of its forms, each parent before its children; -1 is above the top.

    A mapping whose values are texts maps children to parents, any other is nested; a list of texts is one of paths
    ``a/b/c``.
    """
    nodes = _Nodes()
    if isinstance(tree, Mapping) and tree:
        texts = [isinstance(value, str) for value in tree.values()]
        points_up = any(texts) and all(
            is_text or value is None for is_text, value in zip(texts, tree.values(), strict=True)
        )
        nodes.add_below(_from_parents(tree) if points_up else tree, -1, 1)
    elif isinstance(tree, list | tuple) and tree:
        are_paths = all(isinstance(item, str) for item in tree)
        nodes.add_below(nested_paths([item.split("/") for item in tree]) if are_paths else tree, -1, 1)
    else:
        hint = " read_taxonomy reads a file." if isinstance(tree, str | PathLike) else ""
        raise ValueError(
            f"taxonomy must be a nested mapping that is not empty, {_EXAMPLE}; got {type(tree).__name__}.{hint}"
        )
    _check_leaves(nodes)
    return tuple(nodes.names), nodes.parents


def nested_paths(paths: Iterable[list[str]]) -> dict[str, Any]:
    """Paths from the top to a class as a nested mapping."""
    tree: dict[str, Any] = {}
    ends: set[tuple[str, ...]] = set()
    for number, parts in enumerate(paths):
        path = tuple(part.strip() for part in parts)
        shown = "/".join(path)
        if not all(path):
            raise ValueError(f"taxonomy: path {number}, {shown!r:.80}, has an empty part; write a/b/c.")
        if len(path) > MAX_DEPTH:
            raise ValueError(f"taxonomy: path {number}, {shown!r:.80}, is more than {MAX_DEPTH} deep.")
        if path in ends:
            raise ValueError(f"taxonomy: the path {shown!r:.80} is given twice; drop one.")
        ends.add(path)
        below = tree
        for part in path:
            below = below.setdefault(part, {})
    inner = next((path for path in ends if _at(tree, path)), None)
    if inner is not None:
        raise ValueError(
            f"taxonomy: the path {'/'.join(inner)!r:.80} ends at a node with others below; a class must be a leaf."
        )
    return tree


def _at(tree: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for part in path:
        tree = tree[part]
    return tree


def _from_parents(parents: Mapping[Any, str | None]) -> dict[str, Any]:
    """Children with their parents as a nested mapping."""
    trees: dict[str, dict[str, Any]] = {str(child): {} for child in parents}
    tops: dict[str, Any] = {}
    for child, parent in parents.items():
        above = tops if parent in {None, ""} else trees.get(str(parent))
        if above is None:
            raise ValueError(
                f"taxonomy: the parent of {str(child)!r:.60} is {parent!r:.60}, which is no node; add it, with an "
                "empty parent if it is at the top."
            )
        above[str(child)] = trees[str(child)]
    _check_cycles({str(child): parent for child, parent in parents.items()})
    return tops


def _check_cycles(parents: Mapping[str, str | None]) -> None:
    """Refuse nodes that are above themselves."""
    safe: set[str] = set()
    for start in parents:
        node, way = start, set()
        while node not in safe and node not in way:
            way.add(node)
            parent = parents[node]
            if not parent:
                break
            node = str(parent)
        if node in way and node not in safe and parents[node]:
            raise ValueError(f"taxonomy: {node!r:.60} is above itself: its parents form a circle.")
        safe |= way


def _check_leaves(nodes: _Nodes) -> None:
    """Refuse a class in two places."""
    inner = set(nodes.parents)
    seen: set[str] = set()
    for node, name in enumerate(nodes.names):
        if node not in inner:
            if name in seen:
                raise ValueError(f"taxonomy: the leaf {name!r:.60} is there twice; a class has one place.")
            seen.add(name)
