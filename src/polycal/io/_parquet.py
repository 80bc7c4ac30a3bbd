"""Parquet files at any place, read batch by batch, with a bound on what is held of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from polycal.io._arrow_columns import pyarrow
from polycal.io._places import Place
from polycal.io._remote import RemoteFile
from polycal.storage.damage import readable

_KIND = "Parquet"
# Read ahead from every column: small, because there may be thousands of columns.
_BUFFER = 1 << 16
# What may be held of a file that is not on this machine, if nothing else is said.
DEFAULT_ROOM = 1 << 26


class OpenParquet:
    """An open Parquet file.

    On this machine a little is read ahead from every column. Elsewhere every read takes a journey: groups of rows are
    fetched whole, in few pieces, as long as they fit into ``room`` bytes; of larger ones, as much of every column as
    does.
    """

    def __init__(self, file: Any, *, is_remote: bool, room: int) -> None:
        self._file, self._is_remote, self._room = file, is_remote, room
        self.parquet = self._open(None)
        self.schema = self.parquet.schema_arrow
        self.n_rows = int(self.parquet.metadata.num_rows)

    def batches(self, n_rows: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """All rows, at most so many at a time, with some columns only."""
        names = None if columns is None else list(columns)
        read = self._fetched(n_rows, names) if self._is_remote else self._read(n_rows, names)
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

    def _read(self, n_rows: int, columns: list[str] | None) -> Iterator[Any]:
        yield from self.parquet.iter_batches(batch_size=n_rows, columns=columns)

    def _fetched(self, n_rows: int, columns: list[str] | None) -> Iterator[Any]:
        """Run by run, each by a reader of its own: what a reader fetched, it holds as long as it lives."""
        for groups, size in runs_of_groups(self.parquet.metadata, columns, self._room):
            reader = self._open(self.parquet.metadata, fetch=size <= self._room)
            yield from reader.iter_batches(batch_size=n_rows, row_groups=groups, columns=columns)

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


def runs_of_groups(metadata: Any, columns: list[str] | None, room: int) -> Iterator[tuple[list[int], int]]:
    """Groups of rows, as many in a run as fit into the room together, at least one; and their bytes."""
    wanted = None if columns is None else set(columns)
    leaves = [i for i in range(metadata.num_columns) if _is_wanted(metadata.schema.column(i).path, wanted)]
    run: list[int] = []
    total = 0
    for number in range(metadata.num_row_groups):
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
    """Whether a leaf belongs to one of the columns: lists have their numbers some levels down."""
    return columns is None or any(name in columns for name in accumulate(path.split("."), "{}.{}".format))


@contextmanager
def open_parquet(place: Place, room: int = DEFAULT_ROOM) -> Iterator[OpenParquet]:
    """Open a Parquet file; of one that is not on this machine, about ``room`` bytes are held at a time."""
    is_remote = isinstance(place, RemoteFile)
    with open_arrow(place) as file:
        with readable(_KIND):
            opened = OpenParquet(file, is_remote=is_remote, room=room)
        yield opened


@contextmanager
def open_arrow(place: Place) -> Iterator[Any]:
    """A file as PyArrow reads it."""
    pa = pyarrow()
    if isinstance(place, RemoteFile):
        with place.open() as stream, pa.PythonFile(stream, mode="r") as file:
            yield file
    else:
        with pa.OSFile(str(place), "rb") as file:
            yield file
