"""The formats of predictions files, by suffix."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from polycal.io import _arrow, _csv, _npz
from polycal.io._places import Place
from polycal.io._raw import RawPredictions

Reader = Callable[[Place, int], RawPredictions]


@dataclass(frozen=True)
class Format:
    """How a kind of file is read and written, where it keeps its labels, and how it can mark its parts."""

    read: Reader
    write: Callable[[Path, RawPredictions], None]
    labels: str
    parts: str


def _copied(read: Callable[[Path, int], RawPredictions]) -> Reader:
    """A reader of files of this machine, which copies others here first."""

    def read_copy(place: Place, max_bytes: int) -> RawPredictions:
        if isinstance(place, Path):
            return read(place, max_bytes)
        with place.copied(max_bytes) as copy:
            return read(copy, max_bytes)

    return read_copy


def _never_copied(read: Callable[[Path, int], RawPredictions]) -> Reader:
    """A reader of files that are mapped into memory, which must be on this machine."""

    def read_here(place: Place, max_bytes: int) -> RawPredictions:
        if isinstance(place, Path):
            return read(place, max_bytes)
        raise ValueError(
            f"{place.suffix} files are mapped into memory, and this one is elsewhere; write Parquet"
        )

    return read_here


_TABLE = ("a column 'label'", "add a column 'evaluation', true for the rows of the evaluation part")
FORMATS = {
    ".npz": Format(
        _copied(_npz.read_npz),
        _npz.write_npz,
        "an array 'labels'",
        "add a boolean array 'evaluation', True for the rows of the evaluation part",
    ),
    ".npy": Format(
        _never_copied(_npz.read_npy),
        _npz.write_npy,
        "a file <name>.labels.npy beside it",
        "an .npy file has no place for that: use .npz",
    ),
    ".csv": Format(_copied(_csv.read_csv), _csv.write_csv, *_TABLE),
    ".parquet": Format(_arrow.read_parquet, _arrow.write_parquet, *_TABLE),
    ".feather": Format(_copied(_arrow.read_feather), _arrow.write_feather, *_TABLE),
}


def format_of(path: Place) -> Format:
    """Look up the format of a file's suffix."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"the suffix {path.suffix!r} is not one of {', '.join(FORMATS)}")
    return FORMATS[suffix]
