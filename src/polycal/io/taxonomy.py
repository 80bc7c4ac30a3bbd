"""Read a tree of classes from YAML, JSON or CSV."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

from polycal import _typing
from polycal._validation import MAX_DEPTH, nested_paths
from polycal.io.mappings import parse_mapping, small_text
from polycal.storage.damage import check_file, named, readable
from polycal.taxonomy import Taxonomy, make_taxonomy


def read_taxonomy(path: _typing.Path) -> Taxonomy:
    r"""Read a tree of classes from a ``.yaml``, ``.yml``, ``.json``, ``.csv`` or ``.tsv`` file.

    Parameters
    ----------
    path : str or path
        A file of at most 16 MiB. YAML and JSON hold a nested mapping whose innermost lists are classes, a list of paths
        ``a/b/c`` that end in classes, or a mapping from each node to its parent (null at the top). CSV has a column
        ``path``, with a column ``class`` beside it where the path does not end in the class; or the columns ``node``
        and ``parent``.

    Returns
    -------
    Taxonomy
        Whether its leaves are the classes is checked where it meets the predictions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tree.yaml")
    ...     _ = path.write_text("animal:\n  pet: [cat, dog]\n  farm: [cow]\nvehicle: [car]\n")
    ...     pc.read_taxonomy(path)
    Taxonomy(8 nodes, 4 leaves, 3 deep)
    """
    path = Path(path)
    check_file(path)
    with named(path):
        table = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
        # A mapping and its list are two levels of the file for one of the tree.
        tree = parse_mapping(path, 2 * MAX_DEPTH) if table is None else _parse_table(path, table)
        return make_taxonomy(tree)


def _parse_table(path: Path, separator: str) -> Any:
    with readable("CSV"):
        lines = [
            line for line in csv.reader(StringIO(small_text(path)), delimiter=separator, strict=True) if line
        ]
    header = [cell.strip().lower() for cell in lines[0]] if lines else []
    uneven = next((i for i, line in enumerate(lines, start=1) if len(line) != len(header)), None)
    if uneven is not None:
        raise ValueError(f"line {uneven} has {len(lines[uneven - 1])} cells for {len(header)} columns")
    if "path" in header:
        return _paths(lines[1:], header)
    if {"node", "parent"} <= set(header):
        node, parent = header.index("node"), header.index("parent")
        return _parents([(line[node].strip(), line[parent].strip()) for line in lines[1:]])
    raise ValueError("needs a column 'path', or the columns 'node' and 'parent', in its first line")


def _paths(lines: list[list[str]], header: list[str]) -> dict[str, Any]:
    paths = []
    for line in lines:
        path = "/".join(part.strip() for part in line[header.index("path")].split("/"))
        own = line[header.index("class")].strip() if "class" in header else path.rpartition("/")[2]
        # The name of a class may have a slash itself, and a class may stand at the top.
        above = path.removesuffix(own).removesuffix("/") if f"/{path}".endswith(f"/{own}") else path
        paths.append([*(above.split("/") if above else ()), own])
    return nested_paths(paths)


def _parents(pairs: list[tuple[str, str]]) -> dict[str, str | None]:
    parents: dict[str, str | None] = {}
    for node, parent in pairs:
        if node in parents:
            raise ValueError(f"node {node!r:.60} is given twice; a node has one parent")
        parents[node] = parent or None
    return parents
