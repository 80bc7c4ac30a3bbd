"""Read named groups of classes from YAML or JSON."""

from pathlib import Path
from typing import Any

from polycal import _typing
from polycal._text import check_text
from polycal.io.mappings import kind_words, parse_mapping
from polycal.storage.damage import check_file, named


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
        return _check(parse_mapping(path))


def _check(groups: Any) -> dict[str, list[str | int]]:
    """See that these are names, each with a list of classes."""
    if not isinstance(groups, dict) or not groups:
        raise ValueError(
            f"must map each group's name to its classes, such as 'animal: [cat, dog]'; it holds {kind_words(groups)}"
        )
    problem = next(filter(None, (_problem(name, members) for name, members in groups.items())), None)
    if problem is not None:
        raise ValueError(problem)
    return groups


def _problem(name: Any, members: Any) -> str | None:
    """Say what is wrong with a group, if anything is."""
    if not isinstance(name, str):
        return f"a group's name is {kind_words(name)}, not text; put quotes around it"
    check_text(name, "group name")
    if not isinstance(members, list) or not members:
        return f"group {name!r} must be a list of at least one class, such as [cat, dog]; it is {kind_words(members)}"
    bad = [m for m in members if isinstance(m, bool) or not isinstance(m, str | int)]
    if bad:
        kind = kind_words(bad[0])
        return f"group {name!r} holds {kind}, not a class; put quotes around a name that is not plain text"
    return None
