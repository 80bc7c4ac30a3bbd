"""Read back what polycal saved: witnesses, calibrators and states, by the family named in the file's header."""

from collections.abc import Callable
from pathlib import Path as _Path
from typing import Any

from polycal._typing import Path
from polycal.calibrators._base import Calibrator
from polycal.calibrators._loading import rebuild_calibrator
from polycal.families.witness import Witness, rebuild_witness
from polycal.states.base import State, rebuild_state
from polycal.storage.damage import DEFAULT_MAX_BYTES, named
from polycal.storage.model import Arrays, load_object


def load(path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Witness | Calibrator | State:
    """Load a witness, a calibrator or a state from the file that its ``save`` wrote.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int
        Refuse a file that claims to unpack to more than this (16 GiB).

    Returns
    -------
    Witness, Calibrator or State

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
        if kind not in _REBUILD:
            raise ValueError(f"holds a {kind[:40]!r}, which this polycal does not know")
        return _REBUILD[kind](meta, arrays)


_REBUILD: dict[str, Callable[[dict[str, Any], Arrays], Witness | Calibrator | State]] = {
    "witness": rebuild_witness,
    "calibrator": rebuild_calibrator,
    "state": rebuild_state,
}
