"""The formats of predictions files, by suffix."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from polycal.io import _arrow, _csv, _npz
from polycal.io._raw import RawPredictions


@dataclass(frozen=True)
class Format:
    """How a kind of file is read and written, where it keeps its labels, and how it can mark its parts."""

    read: Callable[[Path, int], RawPredictions]
    write: Callable[[Path, RawPredictions], None]
    labels: str
    parts: str


_TABLE = ("a column 'label'", "add a column 'evaluation', true for the rows of the evaluation part")
FORMATS = {
    ".npz": Format(
        _npz.read_npz,
        _npz.write_npz,
        "an array 'labels'",
        "add a boolean array 'evaluation', True for the rows of the evaluation part",
    ),
    ".npy": Format(
        _npz.read_npy,
        _npz.write_npy,
        "a file <name>.labels.npy beside it",
        "an .npy file has no place for that: use .npz",
    ),
    ".csv": Format(_csv.read_csv, _csv.write_csv, *_TABLE),
    ".parquet": Format(_arrow.read_parquet, _arrow.write_parquet, *_TABLE),
    ".feather": Format(_arrow.read_feather, _arrow.write_feather, *_TABLE),
}


def format_of(path: Path) -> Format:
    """Look up the format of a file's suffix."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{path}: the suffix {path.suffix!r} is not one of {', '.join(FORMATS)}")
    return FORMATS[suffix]
