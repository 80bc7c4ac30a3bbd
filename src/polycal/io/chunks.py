"""Predictions larger than the memory: files, folders and patterns of files, read chunk by chunk."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from polycal import _typing
from polycal._text import advice
from polycal._typing import Ints
from polycal._validation import agree_names, check_choice, check_chunk
from polycal.io.features import FeatureTable, check_join, feature_table
from polycal.io.jsonl import JsonlReader
from polycal.io.layout import Layout, Roles, explained, numbered, warn_unused
from polycal.io.memory import DEFAULT_MEMORY, free_memory, parse_memory, remote_room
from polycal.io.paths import FilePath, find_files
from polycal.io.predictions import FORMATS, format_of
from polycal.io.reader import PARTS, Classes, Part, RawPredictions, Reader, rows_of_part
from polycal.sample import Remainder, Sample
from polycal.storage.damage import named, rows_from

# The share of the free memory that a chunk may take.
_CHUNK_SHARE = 4
# Bytes that a cell of a chunk takes while it is read, checked and worked on, with room to spare.
_BYTES_PER_CELL = 64
_MOST_ROWS = 1 << 16
# Of a chunk for one of several threads: few, so that all end at about the same time.
_THREAD_ROWS, _THREAD_CELLS = 1 << 14, 1 << 20
# Rows by which files are told apart.
_FIRST_ROWS = 16

AnySample = TypeVar("AnySample")
AnyChunk = TypeVar("AnyChunk")


@dataclass(frozen=True, eq=False)
class NumberedRows(Generic[AnySample]):
    """Validated rows, and their numbers in the whole data."""

    sample: AnySample
    rows: Ints
    # Columns that were asked for by name: float64, or text as objects, one for each row.
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class OpenedFiles(ABC, Generic[AnyChunk]):
    """Files of the same classes. Iterate, as often as needed, to get them chunk by chunk; see `PredictionFiles`."""

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
    r"""Files of predictions with the same classes. Iterate, as often as needed, to get them as `Chunk`.

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
    layout : Layout
        What was said of their columns.
    roles : Roles
        Which columns of the first file were taken for classes unasked, and which have no role; as text, in words.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("cat,dog,label\n0.9,0.1,cat\n0.25,0.75,dog\n")
    ...     files = pc.open_predictions(folder)
    ...     files.class_names, files.row_counts()
    (('cat', 'dog'), (2,))
    """

    part: Part = "all"
    layout: Layout = field(default_factory=Layout)
    roles: Roles = field(default_factory=Roles)
    # Features from elsewhere, which rows are joined with.
    table: FeatureTable | None = field(default=None, kw_only=True)
    # Whether rows list only some classes.
    is_listed: ClassVar[bool] = False

    @property
    def sample_classes(self) -> tuple[int, tuple[str, ...] | None]:
        """Number and names of the classes that samples of these files have."""
        return self.n_classes, self.class_names

    @property
    def sliced_by(self) -> tuple[str, ...]:
        """The columns that are features of rows: those read along, but for the key, and those of the table."""
        if self.table is None:
            return tuple(self.layout.columns)
        return (*(name for name in self.layout.columns if name != self.table.key), *self.table.names)

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, at most."""
        room = self.chunk_memory // (_BYTES_PER_CELL * self.n_classes)
        return max(1, min(_MOST_ROWS, room))

    def thread_rows(self, n_threads: int) -> int:
        """Rows in a chunk, at most, where so many threads have one each."""
        cells = min(_THREAD_CELLS, self.chunk_memory // (_BYTES_PER_CELL * n_threads))
        return max(1, min(_THREAD_ROWS, self.chunk_rows, cells // self.n_classes))

    def joined(self, table: FeatureTable) -> Self:
        """The same files with features from elsewhere."""
        check_join(table, len(self.paths), self.part, self.row_counts()[0])
        return replace(self, table=table)

    def reader(self, path: FilePath) -> Reader:
        """What reads one of the files."""
        return _reader(path, self.memory, self.layout)

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
        with nullcontext() if path is None else named(path), rows_from(start):
            return self.checked(read(), number)

    def checked(self, raw: RawPredictions, first_row: int) -> Chunk | None:
        """Pass rows, the first of the chosen part with this number, through the gate; None if there are none."""
        _agree(self, raw.classes)
        if raw.labels is None:
            fix = advice("pass label=", "name them by --label")
            raise ValueError(f"the file has no labels: {fix} if they are called otherwise.{self.roles.guess}")
        with explained(self.roles):
            sample = check_chunk(
                raw.labels,
                raw.proba,
                sample_weight=raw.sample_weight,
                class_names=self.class_names,
                from_logits=raw.from_logits,
                normalize=self.layout.normalize,
                features={name: raw.columns[name] for name in self.sliced_by if name in raw.columns} or None,
            )
        if sample is None:
            return None
        columns = raw.columns
        if self.table is not None:
            sample = self.table.joined(sample, first_row, columns)
        if self.part != "all":
            chosen = rows_of_part(raw.evaluation, self.part, sample.n_samples)
            sample = sample.take(chosen)
            columns = {name: column[chosen] for name, column in columns.items()}
        rows = np.arange(first_row, first_row + sample.n_samples)
        return Chunk(sample, rows, columns) if rows.size else None


def open_predictions(
    path: _typing.Path | Sequence[_typing.Path],
    *,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    label: str | None = None,
    weight: str | None = None,
    classes: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
    features: Any = None,
    key: str | None = None,
    from_logits: bool = False,
    normalize: bool = False,
    format: str | None = None,
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
    label, weight, classes, drop, from_logits, normalize, format
        What the columns are and how to read them, as for `read_predictions`.
    columns : list of str
        Columns, or arrays, that are neither and are read along: chunks have them in ``chunk.columns``, as float64 where
        they hold numbers (NaN for gaps), else as text.
    features : path, data frame or mapping, optional
        Features from elsewhere, which are held in memory: CSV, TSV, Parquet, Feather, ``.npz``.
    key : str, optional
        The column of both by which rows get their features; without it, both have the same rows in the same order.
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
    read = (*columns, *(() if key is None else (key,)))
    layout = Layout(label, weight, classes, drop, read, from_logits, normalize, format)
    files = opened_predictions(path, memory, part, remainder, layout)
    return files if features is None else files.joined(feature_table(features, key))


def opened_predictions(
    data: _typing.Path | Sequence[_typing.Path] | PredictionFiles,
    memory: int | str,
    part: Part,
    remainder: Remainder = "unknown",
    layout: Layout | None = None,
) -> PredictionFiles:
    """Files that may have been opened before; what was chosen then is not to be chosen otherwise now."""
    layout = layout or Layout()
    if not isinstance(data, PredictionFiles):
        check_choice(part, "part", PARTS)
        return _open(find_files(data, tuple(FORMATS)), parse_memory(memory), part, remainder, layout)
    for name, now, default, before in (
        ("part", part, "all", data.part),
        ("remainder", remainder, "unknown", getattr(data, "remainder", remainder)),
        ("memory", parse_memory(memory), parse_memory(DEFAULT_MEMORY), data.memory),
        ("layout", layout, Layout(), data.layout),
    ):
        if now not in (default, before):
            raise ValueError(
                f"{name}={now!r} is given, but the files were opened with {before!r}; open them with it"
            )
    return data


def _open(
    paths: tuple[FilePath, ...], memory: int, part: Part, remainder: Remainder, layout: Layout
) -> PredictionFiles:
    """Look at the classes of each file."""
    from polycal.io.answer_files import open_answers  # noqa: PLC0415
    from polycal.io.lists import holds_lists, opened_lists  # noqa: PLC0415 - they are opened as predictions too

    if paths and layout.format in (None, ".parquet") and holds_lists(paths[0]):
        return opened_lists(paths, None, remainder, memory, part, layout)
    in_lines = bool(paths) and all(format_of(path, layout) is JsonlReader for path in paths)
    if in_lines and (answers := open_answers(paths, memory, part, remainder, layout)) is not None:
        return answers
    opened: PredictionFiles | None = None
    for file in paths:
        with named(file):
            classes = _reader(file, memory, layout).classes()
            if classes is None:
                continue
            if opened is None:
                warn_unused(classes.roles)
                opened = PredictionFiles(
                    paths, classes.n_classes, classes.names, memory, part, layout, classes.roles
                )
            _agree(opened, classes)
            if opened.class_names is None:
                opened = replace(opened, class_names=classes.names)
    if opened is None:
        given = ", ".join(map(str, paths[:3])) or "the list of files"
        raise ValueError(f"{given}{', ...' if len(paths) > 3 else ''}: there is no row in these files")
    _refuse_same_rows(opened)
    return opened


def _refuse_same_rows(files: PredictionFiles) -> None:
    """Refuse the same rows in two formats: the second copy of a row could judge what the first was searched for."""
    formats = {path: format_of(path, files.layout) for path in files.paths}
    if len(set(formats.values())) < 2:
        return
    seen: dict[tuple[int, bytes], FilePath] = {}
    for path in files.paths:
        with named(path):
            reader = files.reader(path)
            first = next((read for _, read in reader.unread_chunks(_FIRST_ROWS)), None)
            if first is None:
                continue
            digits = np.round(np.asarray(first().proba[:_FIRST_ROWS], dtype=np.float64), 4)
            other = seen.setdefault((reader.n_rows(), digits.tobytes()), path)
        if formats[other] is not formats[path]:
            raise ValueError(
                f"{other} and {path} hold the same rows in two formats, which would count twice; give one of them, or "
                f"a pattern such as '*{path.suffix}'"
            )


def _reader(path: FilePath, memory: int, layout: Layout) -> Reader:
    """What reads a file in chunks, or whole if that fits."""
    reader = format_of(path, layout)(path, memory // 2, remote_room(memory), layout)
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
