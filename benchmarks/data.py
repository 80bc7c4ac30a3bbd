"""The predictions that methods are compared on: those of a folder, or the shipped example.

``POLYCAL_DATA`` names a folder of ``NAME.npz`` files, each with ``logits`` or ``proba`` of shape (n, k), ``labels``,
``evaluation`` (false: calibration part, true: evaluation part) and optionally ``class_names``. By default it is
``shared/data`` beside the repository.
"""

import hashlib
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import polycal as pc
from polycal.sample import Sample

ROOT = Path(__file__).parents[1]
DEFAULT_FOLDER = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Split:
    """Predictions in two parts: to fit on, and to report on."""

    calibration: Sample
    evaluation: Sample


@dataclass(frozen=True)
class PredictionSet:
    """Named predictions in a file that marks its two parts.

    Attributes
    ----------
    name : str
        The file's name without suffix.
    path : Path or None
        The file; None for the shipped example.
    """

    name: str
    path: Path | None = None

    @property
    def n_cells(self):
        """Rows to fit on times classes."""
        return self._summary[0]

    @property
    def fingerprint(self):
        """A short hash of the predictions and labels of both parts."""
        return self._summary[1]

    @cached_property
    def _summary(self):
        """Size and hash: both parts are read once for them, and not kept."""
        split, digest = self.split(), hashlib.sha256()
        for part in (split.calibration, split.evaluation):
            digest.update(np.ascontiguousarray(part.proba).tobytes())
            digest.update(part.labels.tobytes())
        return split.calibration.proba.size, digest.hexdigest()[:12]

    def split(self, seed=0):
        """The two parts: the file's own for seed 0, else all rows parted anew at random in the same sizes."""
        parts = [self._read(part) for part in ("calibration", "evaluation")]
        return Split(*parts) if seed == 0 else resplit(Split(*parts), seed)

    def _read(self, part):
        if self.path is None:
            return exact(pc.datasets.load_fashion(part))
        with warnings.catch_warnings():
            # Some have more arrays, such as features of the rows.
            warnings.simplefilter("ignore", pc.CalibrationWarning)
            return exact(pc.read_predictions(self.path, part=part))


def prediction_sets(names=None, folder=None):
    """The sets of a folder, in alphabetical order; the shipped example where there is no folder.

    Parameters
    ----------
    names : sequence of str, optional
        Only these sets; an unknown name is an error.
    folder : path, optional
        Instead of the one that ``POLYCAL_DATA`` names.

    Returns
    -------
    list of PredictionSet
    """
    folder = data_folder() if folder is None else Path(folder)
    if folder is None:
        print("no folder of predictions (set POLYCAL_DATA): using the shipped example alone")
        sets = [PredictionSet("fashion_mlp")]
    else:
        sets = [PredictionSet(path.stem, path) for path in sorted(folder.glob("*.npz"))]
        if not sets:
            raise ValueError(f"there is no .npz file in {folder}.")
    known = {s.name: s for s in sets}
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise ValueError(f"no set called {', '.join(unknown)}; there are {', '.join(known)}.")
    return [known[name] for name in names] if names else sets


def is_own_data():
    """Whether the predictions are others than those of the page."""
    given = data_folder()
    return given is not None and given.resolve() != DEFAULT_FOLDER.resolve()


def data_folder():
    """The folder of predictions, or None if there is none."""
    given = os.environ.get("POLYCAL_DATA")
    if given is None:
        return DEFAULT_FOLDER if DEFAULT_FOLDER.is_dir() else None
    if not Path(given).is_dir():
        raise ValueError(f"POLYCAL_DATA is {given!r}, which is not a folder.")
    return Path(given)


def resplit(split, seed):
    """All rows of both parts, parted anew at random (never by label) in the same sizes."""
    parts = (split.calibration, split.evaluation)
    whole = Sample(
        np.concatenate([part.proba for part in parts]),
        np.concatenate([part.labels for part in parts]),
        None,
        parts[0].class_names,
    )
    order = np.random.default_rng(seed).permutation(whole.n_samples)
    cut = parts[0].n_samples
    return Split(whole.take(np.sort(order[:cut])), whole.take(np.sort(order[cut:])))


def exact(sample):
    """The sample in double precision with rows that sum to 1 to rounding, as every method shall receive it."""
    proba = sample.proba.astype(np.float64)
    proba /= proba.sum(axis=1, keepdims=True)
    return Sample(proba, sample.labels, None, sample.class_names)
