"""Predictions larger than the memory: files, folders and patterns of files, read chunk by chunk."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from os import PathLike
from pathlib import Path

import numpy as np

from polycal import _typing
from polycal._typing import Ints
from polycal._validation import check_choice
from polycal.io._chunk_readers import ChunkReader, reader_of
from polycal.io._formats import FORMATS
from polycal.io._raw import RawPredictions
from polycal.io.predictions import Part
from polycal.sample import Sample
from polycal.states._chunk import agree_names, check_chunk
from polycal.storage.damage import check_file, named

DEFAULT_MEMORY = 1 << 30
# What the interpreter, NumPy, the compiler and PyArrow take by themselves.
_BASE_MEMORY = 384 << 20
# Bytes that a cell of a chunk takes while it is read, checked and worked on, with room to spare; and the share of
# the memory for them.
_BYTES_PER_CELL, _CHUNK_SHARE = 64, 4
_MOST_ROWS = 1 << 16
# Places of rows in all files: files may have up to this many rows.
ROWS_PER_FILE = 1 << 40
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True, eq=False)
class Chunk:
    """Validated rows, and their places in the whole data."""

    sample: Sample
    rows: Ints


@dataclass(frozen=True, eq=False, repr=False)
class PredictionFiles:
    """Files of predictions with the same classes. Iterate, as often as needed, to get them as `Chunk`.

    Attributes
    ----------
    paths : tuple of path
        The files, in order.
    n_classes : int
        Number of classes.
    class_names : tuple of str, or None
        Their names.
    memory : int
        Bytes that may be used in all.
    part : {"all", "calibration", "evaluation"}
        Which rows.
    """

    paths: tuple[Path, ...]
    n_classes: int
    class_names: tuple[str, ...] | None
    memory: int
    part: Part = "all"

    @property
    def free_memory(self) -> int:
        """Bytes left for data and results."""
        return self.memory - _BASE_MEMORY

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, at most."""
        room = self.free_memory // (_CHUNK_SHARE * _BYTES_PER_CELL * self.n_classes)
        return max(1, min(_MOST_ROWS, room))

    def __iter__(self) -> Iterator[Chunk]:
        for number, path in enumerate(self.paths):
            yield from self.file_chunks(path, number)

    def file_chunks(self, path: Path, number: int) -> Iterator[Chunk]:
        """The chunks of one file, by its number among all files."""
        with named(path):
            reader = reader_of(path, self.memory)
            for start, raw in reader.chunks(self.chunk_rows):
                with named(Path(f"rows from {start}")):
                    chunk = self.checked(raw, number * ROWS_PER_FILE + start)
                if chunk is not None:
                    yield chunk

    def __repr__(self) -> str:
        return f"PredictionFiles({len(self.paths)} files, n_classes={self.n_classes})"

    def checked(self, raw: RawPredictions, place: int) -> Chunk | None:
        """Pass rows, the first of them at this place, through the gate; None if there are none."""
        _agree(self, raw)
        if raw.labels is None:
            raise ValueError("the file has no labels; audits need them")
        sample = check_chunk(
            raw.labels,
            raw.proba,
            sample_weight=raw.sample_weight,
            class_names=self.class_names,
            from_logits=raw.from_logits,
        )
        if sample is None:
            return None
        rows = np.arange(place, place + sample.n_samples)
        if self.part == "all":
            return Chunk(sample, rows)
        if raw.evaluation is None:
            raise ValueError(f"the file does not mark its parts, so part={self.part!r} cannot be read")
        chosen = raw.evaluation if self.part == "evaluation" else ~raw.evaluation
        return Chunk(sample.take(chosen), rows[chosen]) if chosen.any() else None


def open_predictions(
    path: _typing.Path | Sequence[_typing.Path], *, memory: int | str = DEFAULT_MEMORY, part: Part = "all"
) -> PredictionFiles:
    r"""Open predictions that may be larger than the memory, to be read in chunks.

    Parameters
    ----------
    path : str, path, or list of them
        Files, folders (all files of predictions in them, at any depth) and patterns such as ``day-*.parquet``. For
        the formats see `read_predictions`; Parquet and ``.npy`` are read in chunks, other files whole, one at a time.
    memory : int or str, default "1GiB"
        What may be used in all, in bytes or as text such as "512MiB" or "2GiB". At least 512 MiB.
    part : {"all", "calibration", "evaluation"}
        Which rows, for files that mark the rows of their evaluation part.

    Returns
    -------
    PredictionFiles

    Notes
    -----
    Opening looks at one row of each file: all must have the same classes in the same order. A file that cannot be
    read is named in the error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polycal.io.chunks import open_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in "ab":
    ...         _ = Path(folder, f"{day}.csv").write_text("cat,dog,label\n0.9,0.1,cat\n0.25,0.75,dog\n")
    ...     files = open_predictions(folder)
    ...     files, sum(chunk.sample.n_samples for chunk in files)
    (PredictionFiles(2 files, n_classes=2), 4)
    """
    check_choice(part, "part", ("all", "calibration", "evaluation"))
    limit = parse_memory(memory)
    given = [path] if isinstance(path, str | PathLike) else list(path)
    paths = tuple(found for one in given for found in _find(str(one)))
    opened: PredictionFiles | None = None
    for file in paths:
        with named(file):
            raw = _first(reader_of(file, limit))
            if raw is None:
                continue
            if opened is None:
                opened = PredictionFiles(paths, _n_classes(raw), raw.class_names, limit, part)
            _agree(opened, raw)
    if opened is None:
        raise ValueError(
            f"{', '.join(map(str, given)) or 'the list of files'}: there is no row in these files"
        )
    return opened


def parse_memory(memory: int | str) -> int:
    """Bytes, from a number or a text such as "1GiB"; at least 512 MiB."""
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(?:i?B)?\s*", memory, flags=re.IGNORECASE)
        if match is None:
            raise ValueError(f"memory must be a size such as '1GiB' or '512MiB'; got {memory!r}.")
        memory = int(float(match[1]) * 2 ** _UNITS[match[2].upper()])
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 512 << 20:
        raise ValueError(f"memory must be at least '512MiB'; got {memory!r}.")
    return memory


def _first(reader: ChunkReader) -> RawPredictions | None:
    raw = reader.first()
    if raw is not None and raw.proba.ndim != 2:
        raise ValueError(f"the probabilities must have shape (n, k); got shape {raw.proba.shape}")
    return raw


def _n_classes(raw: RawPredictions) -> int:
    return int(raw.proba.shape[1])


def _agree(files: PredictionFiles, raw: RawPredictions) -> None:
    """Refuse a file of other classes."""
    if _n_classes(raw) != files.n_classes:
        raise ValueError(f"has {_n_classes(raw)} classes but the files before have {files.n_classes}")
    if files.class_names is not None:
        agree_names(files.class_names, raw.class_names)


def _find(path: str) -> list[Path]:
    """The files that a path stands for."""
    if has_magic(path) and not Path(path).exists():
        names = glob(path, recursive=True)  # noqa: PTH207 - the pattern may begin anywhere
        found = sorted(Path(name) for name in names if Path(name).is_file())
        if not found:
            raise FileNotFoundError(f"{path}: no file has such a name")
        return found
    if Path(path).is_dir():
        found = sorted(file for file in Path(path).rglob("*") if _is_predictions(file))
        if not found:
            raise FileNotFoundError(f"{path}: the folder has no file of predictions ({', '.join(FORMATS)})")
        return found
    check_file(Path(path))
    return [Path(path)]


def _is_predictions(file: Path) -> bool:
    """Whether a file in a folder is meant: hidden files and those beside an array are not."""
    beside = file.name.endswith((".labels.npy", ".weight.npy"))
    hidden = file.name.startswith((".", "_"))
    return file.is_file() and file.suffix.lower() in FORMATS and not beside and not hidden
