"""Read back what polycal saved: witnesses, calibrators, states, monitors, by the family named in the header."""

from importlib import import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING, cast

from polycal._typing import Path
from polycal.storage.damage import DEFAULT_MAX_BYTES, named, readable
from polycal.storage.model import load_object
from polycal.storage.saved import Saved, unpacked

if TYPE_CHECKING:
    from polycal.calibrators.base import Calibrator
    from polycal.families.witness import Witness
    from polycal.states.base import State

# What files hold, and the module that says where its families are.
_ROLES = {
    "witness": "polycal.families.witness",
    "calibrator": "polycal.calibrators.base",
    "state": "polycal.states.base",
    "monitor": "polycal.monitoring.monitor",
    "answers": "polycal.answering",
}


def load(path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> "Witness | Calibrator | State | Saved":
    """Load a witness, a calibrator, a state, a monitor or an `AnswerDepth` from the file that its ``save`` wrote.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int
        Refuse a file that claims to unpack to more than this (16 GiB).

    Returns
    -------
    Witness, Calibrator, State, Monitor or AnswerDepth

    Notes
    -----
    The file is an archive of plain arrays with a JSON header. Nothing in it is evaluated, and no pickle is loaded.

    What is promised: every object read is checked by its own class (shapes, types, ranges, finite numbers, sums that
    agree) before anything is computed with it. A witness has values in [-1, 1] on the whole simplex, a calibrator
    predicts probabilities or refuses, and sizes in the header are believed only as far as arrays bear them out. Files
    that are damaged, foreign, or of objects that could not be are a ``ValueError`` of one line that names the file.
    Files of earlier versions are read.

    What is not: a checksum over header and arrays shows accidents, not forgery. Whoever writes a file decides which
    witness or which calibrator it holds, so take files from those whose findings you would take.

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
    tree, arrays = load_object(path, max_bytes)
    with named(_Path(path)):
        role = str(tree.get("is", "")).partition("/")[0]
        if role not in _ROLES:
            raise ValueError(f"holds a {role[:40]!r}, which this polycal does not know")
        import_module(_ROLES[role])
        with readable(f"a {role}"):
            return cast("Witness | Calibrator | State | Saved", unpacked(tree, arrays))
