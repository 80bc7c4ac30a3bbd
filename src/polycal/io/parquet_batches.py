"""Parquet files, here or behind a URL, read batch by batch with a bound on what is held of them."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, groupby
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
# Of the room, what rows may take on their way to the disk; and the bytes of one of their numbers.
_COPY_SHARE, _NUMBER = 4, 8


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

    def n_values(self, column: str) -> int:
        """How many numbers the lists of a column hold."""
        metadata = self.parquet.metadata
        leaf = next(
            i for i in range(metadata.num_columns) if _is_wanted(metadata.schema.column(i).path, {column})
        )
        groups = range(metadata.num_row_groups)
        return sum(int(metadata.row_group(i).column(leaf).num_values) for i in groups)

    def _read_groups(self, n_rows: int, columns: list[str] | None) -> Iterator[Any]:
        """All groups: neighbours together, those with too many columns each by itself."""
        metadata = self.parquet.metadata
        leaves = _leaves(metadata, self.schema.names if columns is None else columns)
        is_wide = [
            _is_wide(metadata.row_group(i), leaves, self._room) for i in range(metadata.num_row_groups)
        ]
        for wide, run in groupby(range(len(is_wide)), is_wide.__getitem__):
            if not wide:
                yield from self._read(n_rows, columns, list(run))
                continue
            for group in run:
                yield from self._through_disk(n_rows, leaves, group)

    def _read(self, n_rows: int, columns: list[str] | None, groups: list[int]) -> Iterator[Any]:
        """Some groups. Elsewhere by a reader for each run: what a reader fetched, it holds as long as it lives."""
        if not self._is_remote:
            yield from self.parquet.iter_batches(batch_size=n_rows, row_groups=groups, columns=columns)
            return
        for run, size in runs_of_groups(self.parquet.metadata, columns, self._room, groups):
            reader = self._open(self.parquet.metadata, fetch=size <= self._room)
            yield from reader.iter_batches(batch_size=n_rows, row_groups=run, columns=columns)

    def _through_disk(self, n_rows: int, leaves: dict[int, str], group: int) -> Iterator[Any]:
        """A group whose columns cannot all be read at once: block by block to the disk, and back side by side."""
        pa = pyarrow()
        blocks = list(_blocks(self.parquet.metadata.row_group(group), leaves, self._room))
        with tempfile.TemporaryFile() as file:
            copies = [_copied(self._block(block, n_rows, group), file) for block in blocks]
            # The allocator keeps what the columns took.
            pa.default_memory_pool().release_unused()
            for parts in zip(*copies, strict=True):
                columns = [column for part in parts for column in _read_back(file, part).itercolumns()]
                fields = [field for part in parts for field in part.schema]
                schema = pa.schema(fields, metadata=self.schema.metadata)
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _block(self, block: "_Block", n_rows: int, group: int) -> Iterator[Any]:
        """Some columns of a group, exactly so many rows at a time, read many times that where there is room."""
        group_rows = max(1, int(self.parquet.metadata.row_group(group).num_rows))
        row_bytes = max(1, block.n_values * _NUMBER // group_rows)
        times = max(1, self._room // _COPY_SHARE // (row_bytes * n_rows))
        return _recut(self._read(n_rows * times, block.columns, [group]), n_rows)

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


@dataclass
class _Block:
    """Columns that are read together."""

    columns: list[str]
    n_values: int


@dataclass(frozen=True)
class _Copied:
    """Rows of a block on the disk."""

    schema: Any
    start: int
    size: int


def _is_wide(group: Any, leaves: dict[int, str], room: int) -> bool:
    """Whether the columns of a group take too much; one cannot be parted."""
    return len(set(leaves.values())) > 1 and sum(_held(group.column(i)) for i in leaves) > room


def _held(leaf: Any) -> int:
    """Bytes that are held of a column while it is read."""
    return _BUFFER + min(_COPIES * int(leaf.total_uncompressed_size), _MOST_HELD)


def _blocks(group: Any, leaves: dict[int, str], room: int) -> Iterator[_Block]:
    """Neighbouring columns, as many as the room allows, at least one."""
    block, total = _Block([], 0), 0
    for name, own in groupby(leaves, leaves.__getitem__):
        parts = [group.column(i) for i in own]
        held = sum(map(_held, parts))
        if block.columns and total + held > room:
            yield block
            block, total = _Block([], 0), 0
        block.columns.append(name)
        block.n_values += sum(int(part.num_values) for part in parts)
        total += held
    yield block


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


def runs_of_groups(
    metadata: Any, columns: list[str] | None, room: int, groups: Sequence[int] | None = None
) -> Iterator[tuple[list[int], int]]:
    """Groups of rows, as many in a run as fit into the room together, at least one; and their bytes."""
    wanted = None if columns is None else set(columns)
    leaves = [i for i in range(metadata.num_columns) if _is_wanted(metadata.schema.column(i).path, wanted)]
    run: list[int] = []
    total = 0
    for number in range(metadata.num_row_groups) if groups is None else groups:
        group = metadata.row_group(number)
        size = sum(int(group.column(i).total_compressed_size) for i in leaves)
        if run and total + size > room:
            yield run, total
            run, total = [], 0
        run.append(number)
        total += size
    if run:
        yield run, total


def _is_wanted(path: str, columns: set[str] | None) -> bool:
    """Whether a leaf belongs to one of the columns."""
    return columns is None or _column_of(path, columns) is not None


def _leaves(metadata: Any, columns: Sequence[str]) -> dict[int, str]:
    """The leaves of some columns, in order, and the columns they belong to."""
    wanted = set(columns)
    owners = {i: _column_of(metadata.schema.column(i).path, wanted) for i in range(metadata.num_columns)}
    return {i: name for i, name in owners.items() if name is not None}


def _column_of(path: str, columns: set[str]) -> str | None:
    """The column that a leaf belongs to: lists have their numbers some levels down."""
    names = accumulate(path.split("."), "{}.{}".format)
    return next((name for name in names if name in columns), None)


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
