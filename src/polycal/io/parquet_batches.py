"""Parquet files, here or behind a URL, read batch by batch with a bound on what is held of them."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import IO, Any

from polycal.io.arrow import pyarrow
from polycal.io.paths import FilePath
from polycal.io.remote import RemoteFile
from polycal.storage.damage import UnreachableError, readable

_KIND = "Parquet"
# Read ahead from every column: small, because there may be thousands of columns.
_BUFFER = 1 << 16
# What is held of a column at a time, beyond that: twice what it unpacks to, but of longer ones only a dictionary and a
# page, which have a mebibyte each unless the writer was told otherwise, packed and unpacked.
_COPIES, _MOST_HELD = 2, 3 << 20
# What may be held of a file, if nothing else is said: of one on this machine, anything.
DEFAULT_ROOM, _ANY_ROOM = 1 << 26, 1 << 62
# Of the room, what rows may take on their way to the disk.
_COPY_SHARE = 4
# Bytes of a number in a list, of a value's position in a dictionary, and of a text.
_NUMBER, _POSITION, _TEXT = 8, 4, 64
# Rows by which the length of lists is judged.
_FIRST_ROWS = 1 << 10


class OpenParquet:
    """An open Parquet file.

    On this machine a little is read ahead from every column. Elsewhere every read takes a journey: groups of rows are
    fetched whole, in few pieces, as long as they fit into ``room`` bytes; of larger ones, as much of every column as
    does. A column takes memory as long as it is read. Where all columns of a group would take more than the room, a few
    at a time are copied to a temporary file, from which rows are cut.
    """

    def __init__(self, file: Any, *, is_remote: bool, room: int) -> None:
        self._file, self._is_remote, self._room = file, is_remote, room
        self.parquet = self._open(None)
        self.schema = self.parquet.schema_arrow
        self.n_rows = int(self.parquet.metadata.num_rows)

    def batches(self, n_rows: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """All rows, at most so many at a time, with some columns only."""
        read = self._read_groups(n_rows, None if columns is None else list(columns))
        seen = 0
        with readable(_KIND):
            for batch in read:
                seen += batch.num_rows
                if batch.num_rows:
                    yield batch
        if seen != self.n_rows:
            raise ValueError(
                f"the file is truncated or corrupt (it announces {self.n_rows} rows and holds {seen})"
            )

    def mean_length(self, column: str) -> int:
        """About how many numbers a list of a column holds: by the first rows, and by the bytes of all."""
        first = next(self.batches(_FIRST_ROWS, [column]), None)
        seen = 0 if first is None else len(first.column(column).flatten()) // first.num_rows
        metadata = self.parquet.metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            seen = max(seen, int(group.total_byte_size) // max(1, int(group.num_rows)) // _NUMBER)
        return seen

    def _read_groups(self, n_rows: int, columns: list[str] | None) -> Iterator[Any]:
        """All groups: neighbours together, those with too many columns each by itself."""
        wanted = set(self.schema.names if columns is None else columns)
        names = [name for name in self.schema.names if name in wanted]
        is_wide = [
            len(names) > 1 and sum(map(_held, self._sizes(i, names))) > self._room
            for i in range(self.parquet.metadata.num_row_groups)
        ]
        for wide, run in groupby(range(len(is_wide)), is_wide.__getitem__):
            if not wide:
                yield from self._read(n_rows, columns, list(run))
                continue
            for group in run:
                yield from self._through_disk(n_rows, names, group)

    def _read(self, n_rows: int, columns: list[str] | None, groups: list[int]) -> Iterator[Any]:
        """Some groups. Elsewhere by a reader for each run: what a reader fetched, it holds as long as it lives."""
        if not self._is_remote:
            yield from self.parquet.iter_batches(batch_size=n_rows, row_groups=groups, columns=columns)
            return
        for run, size in self.runs(columns, groups):
            reader = self._open(self.parquet.metadata, fetch=size <= self._room)
            yield from reader.iter_batches(batch_size=n_rows, row_groups=run, columns=columns)

    def runs(self, columns: list[str] | None, groups: Sequence[int]) -> Iterator[tuple[list[int], int]]:
        """Groups of rows, as many in a run as fit into the room together, at least one; and about their bytes."""
        run: list[int] = []
        total = 0
        for group in groups:
            size = sum(self._sizes(group, self.schema.names if columns is None else columns))
            whole = int(self.parquet.metadata.row_group(group).total_byte_size)
            size = min(size, whole) if whole > 0 else size
            if run and total + size > self._room:
                yield run, total
                run, total = [], 0
            run.append(group)
            total += size
        if run:
            yield run, total

    def _through_disk(self, n_rows: int, names: list[str], group: int) -> Iterator[Any]:
        """A group whose columns cannot all be read at once: block by block to the disk, and back side by side."""
        pa = pyarrow()
        with tempfile.TemporaryFile() as file:
            blocks = _blocks(names, self._sizes(group, names), self._room)
            copies = [_copied(self._block(block, n_rows, group), file) for block in blocks]
            # The allocator keeps what the columns took.
            pa.default_memory_pool().release_unused()
            for parts in zip(*copies, strict=True):
                columns = [column for part in parts for column in _read_back(file, part).itercolumns()]
                fields = [field for part in parts for field in part.schema]
                schema = pa.schema(fields, metadata=self.schema.metadata)
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _block(self, names: list[str], n_rows: int, group: int) -> Iterator[Any]:
        """Some columns of a group, exactly so many rows at a time, read many times that where there is room."""
        group_rows = max(1, int(self.parquet.metadata.row_group(group).num_rows))
        row_bytes = max(1, sum(self._sizes(group, names)) // group_rows)
        times = max(1, self._room // _COPY_SHARE // (row_bytes * n_rows))
        return _recut(self._read(n_rows * times, names, [group]), n_rows)

    def _sizes(self, group: int, columns: Sequence[str]) -> list[int]:
        """Bytes that columns of a group have at most, unpacked, by their types.

        Lists may have all bytes of the group. PyArrow ends the process where it is asked what damaged metadata say of a
        column, so it is not asked.
        """
        about = self.parquet.metadata.row_group(group)
        n_rows = max(0, int(about.num_rows))
        widths = (_width(self.schema.field(name).type) for name in columns)
        return [max(0, int(about.total_byte_size)) if width is None else n_rows * width for width in widths]

    def _open(self, metadata: Any, *, fetch: bool = False) -> Any:
        n_columns = 1 if metadata is None else metadata.num_columns
        ahead = self._room // max(1, n_columns) if self._is_remote else _BUFFER
        return pyarrow("parquet").ParquetFile(
            self._file,
            metadata=metadata,
            page_checksum_verification=True,
            buffer_size=max(_BUFFER, ahead),
            pre_buffer=fetch,
        )


@dataclass(frozen=True)
class _Copied:
    """Rows of a block on the disk."""

    schema: Any
    start: int
    size: int


def _held(size: int) -> int:
    """Bytes that are held of a column of this size while it is read."""
    return _BUFFER + min(_COPIES * size, _MOST_HELD)


def _blocks(names: Sequence[str], sizes: Sequence[int], room: int) -> Iterator[list[str]]:
    """Neighbouring columns, as many as the room allows, at least one."""
    block: list[str] = []
    total = 0
    for name, held in zip(names, map(_held, sizes), strict=True):
        if block and total + held > room:
            yield block
            block, total = [], 0
        block.append(name)
        total += held
    yield block


def _width(kind: Any) -> int | None:
    """Bytes of one value, with the place it has in a dictionary; None for those that may have any number."""
    is_type = pyarrow().types
    if is_type.is_nested(kind):
        return None
    return kind.bit_width // 8 + _POSITION if is_type.is_primitive(kind) else _TEXT


def _recut(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """The same rows, exactly so many at a time: columns with dictionaries may come in other pieces."""
    pa = pyarrow()
    left: list[Any] = []
    for batch in batches:
        table = pa.Table.from_batches([*left, _without_dictionaries(batch)])
        whole = table.num_rows // n_rows * n_rows
        for start in range(0, whole, n_rows):
            yield from table.slice(start, n_rows).combine_chunks().to_batches()
        left = table.slice(whole).to_batches()
    if left:
        yield from pa.Table.from_batches(left).combine_chunks().to_batches()


def _without_dictionaries(batch: Any) -> Any:
    """The values themselves: rows are written one by one, and a dictionary belongs to many."""
    arrays = [c.dictionary_decode() if hasattr(c, "dictionary") else c for c in batch.columns]
    return pyarrow().RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _copied(batches: Iterable[Any], file: IO[bytes]) -> list[_Copied]:
    """Append batches to a file."""
    copies = []
    for batch in batches:
        data, start = batch.serialize(), file.tell()
        try:
            file.write(data)
        except OSError as error:
            # Not the file that is read is at fault.
            raise UnreachableError(
                f"the temporary file for a group of rows with many columns cannot be written ({error}); make room in "
                f"{tempfile.gettempdir()}, let TMPDIR name another folder, allow more memory, or write Parquet files "
                "with a smaller row_group_size"
            ) from error
        copies.append(_Copied(batch.schema, start, data.size))
    return copies


def _read_back(file: IO[bytes], copied: _Copied) -> Any:
    pa = pyarrow()
    file.seek(copied.start)
    return pa.ipc.read_record_batch(pa.py_buffer(file.read(copied.size)), copied.schema)


@contextmanager
def open_parquet(path: FilePath, room: int | None = None) -> Iterator[OpenParquet]:
    """Open a Parquet file, of which about ``room`` bytes are held at a time."""
    is_remote = isinstance(path, RemoteFile)
    if room is None:
        room = DEFAULT_ROOM if is_remote else _ANY_ROOM
    with _open_arrow(path) as file:
        with readable(_KIND):
            opened = OpenParquet(file, is_remote=is_remote, room=room)
        yield opened


@contextmanager
def _open_arrow(path: FilePath) -> Iterator[Any]:
    """A file as PyArrow reads it."""
    pa = pyarrow()
    if isinstance(path, RemoteFile):
        with path.open() as stream, pa.PythonFile(stream, mode="r") as file:
            yield file
    else:
        with pa.OSFile(str(path), "rb") as file:
            yield file
