"""Predictions larger than the memory: files, folders and patterns of files, read chunk by chunk."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from polycal import _typing
from polycal._typing import Ints
from polycal._validation import agree_names, check_choice, check_chunk
from polycal.io.columns import numbered
from polycal.io.paths import FilePath, find_files
from polycal.io.predictions import FORMATS, format_of
from polycal.io.reader import PARTS, Classes, Part, RawPredictions, Reader, rows_of_part
from polycal.sample import Remainder, Sample
from polycal.storage.damage import named

DEFAULT_MEMORY = 1 << 30
# What the interpreter, NumPy, SciPy, the compiler and PyArrow take by themselves.
_BASE_MEMORY = 384 << 20
# The shares of the rest that a chunk may take, and what is held of a file elsewhere.
_CHUNK_SHARE, _REMOTE_SHARE = 4, 8
# Bytes that a cell of a chunk takes while it is read, checked and worked on, with room to spare.
_BYTES_PER_CELL = 64
_MOST_ROWS = 1 << 16
# Of a chunk for one of several threads: few, so that all end at about the same time.
_THREAD_ROWS, _THREAD_CELLS = 1 << 14, 1 << 20
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)(?:i?B)?\s*", flags=re.IGNORECASE)

AnySample = TypeVar("AnySample")
AnyChunk = TypeVar("AnyChunk")


@dataclass(frozen=True, eq=False)
class NumberedRows(Generic[AnySample]):
    """Validated rows, and their numbers in the whole data."""

    sample: AnySample
    rows: Ints


@dataclass(frozen=True, eq=False, repr=False)
class OpenedFiles(ABC, Generic[AnyChunk]):
    """Files of the same classes. Iterate, as often as needed, to get them chunk by chunk.

    Attributes
    ----------
    paths : tuple of path or URL
        The files, in order.
    n_classes : int
        Number of classes.
    class_names : tuple of str, or None
        Their names.
    memory : int
        Bytes that may be used in all.
    """

    paths: tuple[FilePath, ...]
    n_classes: int
    class_names: tuple[str, ...] | None
    memory: int

    @property
    def free_memory(self) -> int:
        """Bytes left for data and results."""
        return free_memory(self.memory)

    @property
    def chunk_memory(self) -> int:
        """Bytes that a chunk may take while it is read, checked and worked on."""
        return self.free_memory // _CHUNK_SHARE

    @cached_property
    def first_rows(self) -> tuple[int, ...]:
        """The number of each file's first row: rows are numbered through all files, in order."""
        return tuple(accumulate(self.row_counts()[:-1], initial=0))

    def __iter__(self) -> Iterator[AnyChunk]:
        for path, first in zip(self.paths, self.first_rows, strict=True):
            with named(path):
                yield from self.file_chunks(path, first)

    def samples(self) -> Iterator[Any]:
        """The rows chunk by chunk, without their numbers, for which all rows would have to be counted."""
        for path in self.paths:
            with named(path):
                yield from (chunk.sample for chunk in self.file_chunks(path, 0))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.paths)} files, n_classes={self.n_classes})"

    @abstractmethod
    def row_counts(self) -> tuple[int, ...]:
        """The rows of each file; where the format tells their number, none is read."""

    @abstractmethod
    def file_chunks(self, path: FilePath, first_row: int) -> Iterator[AnyChunk]:
        """The chunks of one file whose first row has this number."""


class Chunk(NumberedRows[Sample]):
    """Validated rows, and their numbers in the whole data."""


@dataclass(frozen=True, eq=False, repr=False)
class PredictionFiles(OpenedFiles[Chunk]):
    """Files of predictions with the same classes. Iterate, as often as needed, to get them as `Chunk`.

    Attributes
    ----------
    paths : tuple of path or URL
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

    part: Part = "all"
    # Whether rows list only some classes.
    is_listed: ClassVar[bool] = False

    @property
    def sample_classes(self) -> tuple[int, tuple[str, ...] | None]:
        """Number and names of the classes that samples of these files have."""
        return self.n_classes, self.class_names

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, at most."""
        room = self.chunk_memory // (_BYTES_PER_CELL * self.n_classes)
        return max(1, min(_MOST_ROWS, room))

    def thread_rows(self, n_threads: int) -> int:
        """Rows in a chunk, at most, where so many threads have one each."""
        cells = min(_THREAD_CELLS, self.chunk_memory // (_BYTES_PER_CELL * n_threads))
        return max(1, min(_THREAD_ROWS, self.chunk_rows, cells // self.n_classes))

    def reader(self, path: FilePath) -> Reader:
        """What reads one of the files."""
        return _reader(path, self.memory)

    def row_counts(self) -> tuple[int, ...]:
        """The rows of each file that are of the chosen part; where the format tells their number, none is read."""
        counts = []
        for path in self.paths:
            with named(path):
                counts.append(self.n_rows(path))
        return tuple(counts)

    def n_rows(self, path: FilePath) -> int:
        """The rows of one file that are of the chosen part."""
        reader = self.reader(path)
        return reader.n_rows() if self.part == "all" else int(np.count_nonzero(reader.chosen(self.part)))

    def file_chunks(self, path: FilePath, first_row: int) -> Iterator[Chunk]:
        """The chunks of one file whose first row has this number."""
        for start, number, read in self._numbered(path, self.chunk_rows, first_row):
            chunk = self._made(read, start, number)
            if chunk is not None:
                yield chunk

    def unread_chunks(self, n_threads: int) -> Iterator[Callable[[], Chunk | None]]:
        """What makes the chunks of all files, on so many threads at once: reading and checking are left to them."""
        n_rows = self.thread_rows(n_threads)
        for path, first in zip(self.paths, self.first_rows, strict=True):
            with named(path):
                for start, number, read in self._numbered(path, n_rows, first):
                    yield partial(self._made, read, start, number, path)

    def _numbered(
        self, path: FilePath, n_rows: int, first_row: int
    ) -> Iterator[tuple[int, int, Callable[[], RawPredictions]]]:
        """Unread chunks of a file, with the number that the first row of the chosen part has among all of them."""
        reader = self.reader(path)
        chosen = None if self.part == "all" else reader.chosen(self.part)
        before, number = 0, first_row
        for start, read in reader.unread_chunks(n_rows):
            number += start - before if chosen is None else int(np.count_nonzero(chosen[before:start]))
            before = start
            yield start, number, read

    def _made(
        self, read: Callable[[], RawPredictions], start: int, number: int, path: FilePath | None = None
    ) -> Chunk | None:
        """A chunk, read and checked; errors name its first row, and the file if it is given."""
        with nullcontext() if path is None else named(path), named(f"rows from {start}"):
            return self.checked(read(), number)

    def checked(self, raw: RawPredictions, first_row: int) -> Chunk | None:
        """Pass rows, the first of the chosen part with this number, through the gate; None if there are none."""
        _agree(self, raw.classes)
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
        if self.part != "all":
            sample = sample.take(rows_of_part(raw.evaluation, self.part, sample.n_samples))
        rows = np.arange(first_row, first_row + sample.n_samples)
        return Chunk(sample, rows) if rows.size else None


def open_predictions(
    path: _typing.Path | Sequence[_typing.Path],
    *,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    remainder: Remainder = "unknown",
) -> PredictionFiles:
    r"""Open predictions that may be larger than the memory, to be read in chunks.

    Parameters
    ----------
    path : str, path, or list of them
        Files, folders (all files of predictions in them, at any depth) and patterns such as ``day-*.parquet``, on this
        machine or behind a URL such as ``s3://bucket/logs/*.parquet``. For the formats see `read_predictions`; Parquet
        and ``.npy`` are read in chunks, other files whole, one at a time. Files and folders in a folder whose names
        start with ``.`` or ``_`` are left out, and linked folders are not followed; a file that is given twice, also
        by a link, is read once.
    memory : int or str, default "1GiB"
        What may be used in all, in bytes or as text such as "512MiB" or "2GiB". At least 512 MiB.
    part : {"all", "calibration", "evaluation"}
        Which rows, for files that mark the rows of their evaluation part.
    remainder : {"unknown", "spread", "anywhere", "class"}
        For files of lists of classes: what is said of the rest, see `smooth_calibration_error`.

    Returns
    -------
    PredictionFiles
        Of lists of classes (see `open_lists`) it is a `ListFiles`, whose chunks hold a `ListedSample`.

    Notes
    -----
    Opening looks at the classes of each file: all must have the same in the same order. A file that cannot be read is
    named in the error.

    URLs need ``pip install 'polycal[remote]'`` and the driver of their storage, such as ``s3fs`` for ``s3://``, which
    finds credentials as it always does. Of Parquet files only the parts that are needed travel, group of rows by group
    of rows. About an eighth of the memory beyond what the interpreter takes is held of them; of groups that take more,
    here or elsewhere, a few columns at a time are copied to a temporary file. Other formats are copied to a temporary
    file, one at a time, when they are opened and each time they are read; ``.npy`` must be on this machine.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in "ab":
    ...         _ = Path(folder, f"{day}.csv").write_text("cat,dog,label\n0.9,0.1,cat\n0.25,0.75,dog\n")
    ...     files = pc.open_predictions(folder)
    ...     files, sum(chunk.sample.n_samples for chunk in files)
    (PredictionFiles(2 files, n_classes=2), 4)
    """
    check_choice(part, "part", PARTS)
    limit = parse_memory(memory)
    from polycal.io.lists import holds_lists, open_lists  # noqa: PLC0415 - they are opened as predictions too

    paths = find_files(path, tuple(FORMATS))
    if paths and holds_lists(paths[0]):
        return open_lists(path, memory=memory, part=part, remainder=remainder)
    opened: PredictionFiles | None = None
    for file in paths:
        with named(file):
            classes = _reader(file, limit).classes()
            if classes is None:
                continue
            if opened is None:
                opened = PredictionFiles(paths, classes.n_classes, classes.names, limit, part)
            _agree(opened, classes)
            if opened.class_names is None:
                opened = replace(opened, class_names=classes.names)
    if opened is None:
        given = ", ".join(map(str, paths[:3])) or "the list of files"
        raise ValueError(f"{given}{', ...' if len(paths) > 3 else ''}: there is no row in these files")
    return opened


def opened_predictions(
    data: _typing.Path | Sequence[_typing.Path] | PredictionFiles,
    memory: int | str,
    part: Part,
    remainder: Remainder = "unknown",
) -> PredictionFiles:
    """Files that may have been opened before; what was chosen then is not to be chosen otherwise now."""
    if not isinstance(data, PredictionFiles):
        return open_predictions(data, memory=memory, part=part, remainder=remainder)
    for name, now, default, before in (
        ("part", part, "all", data.part),
        ("remainder", remainder, "unknown", getattr(data, "remainder", remainder)),
        ("memory", parse_memory(memory), parse_memory(DEFAULT_MEMORY), data.memory),
    ):
        if now not in {default, before}:
            raise ValueError(
                f"{name}={now!r} is given, but the files were opened with {before!r}; open them with it"
            )
    return data


def _reader(path: FilePath, memory: int) -> Reader:
    """What reads a file in chunks, or whole if that fits."""
    reader = format_of(path)(path, memory // 2, remote_room(memory))
    reader.check_memory(memory)
    return reader


def _agree(files: PredictionFiles, classes: Classes) -> None:
    """Refuse a file of other classes."""
    if classes.n_classes != files.n_classes:
        raise ValueError(f"has {classes.n_classes} classes but the files before have {files.n_classes}")
    before, now = files.class_names, classes.names
    given = before or now
    if given is not None and set(given) == set(numbered(files.n_classes)):
        # Columns that are numbered in another order; those in this order count as without names.
        before, now = before or numbered(files.n_classes), now or numbered(files.n_classes)
    if before is not None:
        agree_names(before, now)


def free_memory(memory: int) -> int:
    """Bytes left for data and results."""
    return memory - _BASE_MEMORY


def remote_room(memory: int) -> int:
    """Bytes that may be held of a file that is not on this machine."""
    return free_memory(memory) // _REMOTE_SHARE


def parse_memory(memory: int | str) -> int:
    """Bytes, from a number or a text such as "1GiB"; at least 512 MiB."""
    if isinstance(memory, str):
        match = _SIZE.fullmatch(memory)
        if match is None:
            raise ValueError(f"memory must be a size such as '1GiB' or '512MiB'; got {memory!r}.")
        memory = int(float(match[1]) * 2 ** _UNITS[match[2].upper()])
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 512 << 20:
        raise ValueError(f"memory must be at least '512MiB'; got {memory!r}.")
    return memory
