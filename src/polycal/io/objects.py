"""Read back what polycal saved: witnesses, by the family named in the file's header."""

from importlib import import_module
from pathlib import Path as _Path
from pkgutil import iter_modules
from typing import Any

from polycal import witness
from polycal._typing import Path
from polycal.storage.damage import DEFAULT_MAX_BYTES, named, readable
from polycal.storage.model import Arrays, load_object
from polycal.witness._base import Witness


def load(path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Witness:
    """Load a witness from the file that its ``save`` wrote.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int
        Refuse a file that claims to unpack to more than this (16 GiB).

    Returns
    -------
    Witness

    Notes
    -----
    The file is an archive of plain arrays with a JSON header and a checksum. Nothing in it is evaluated, and no
    pickle is loaded; damaged, changed and foreign files are a ``ValueError`` that names the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> y_true, y_proba = [0, 1, 1], [0.2, 0.6, 0.7]
    >>> witness = pc.estimate_error(y_true, y_proba, pc.Classwise(smooth=True)).witness
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     witness.save(Path(folder, "found.polycal"))
    ...     again = pc.load(Path(folder, "found.polycal"))
    >>> again.describe() == witness.describe()
    True
    """
    kind, meta, arrays = load_object(path, max_bytes)
    with named(_Path(path)):
        if kind != "witness":
            raise ValueError(f"holds a {kind[:40]!r}, which this polycal does not know")
        return _rebuild(meta, arrays)


def _rebuild(meta: dict[str, Any], arrays: Arrays) -> Witness:
    """The witness of a saved object."""
    for module in iter_modules(witness.__path__):
        import_module(f"{witness.__name__}.{module.name}")
    with readable("a witness"):
        names = meta["class_names"]
        family = Witness.families[meta["family"]]
        return family.from_state(
            arrays, int(meta["n_classes"]), None if names is None else tuple(map(str, names))
        )
