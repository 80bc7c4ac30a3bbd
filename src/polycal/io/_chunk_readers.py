"""Files of predictions read a chunk at a time: Parquet by batches, ``.npy`` by slices, others whole."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Ints
from polycal.io._arrow_columns import (
    Table,
    column_classes,
    columns_of,
    encoded_column,
    has_lists,
    read_table,
)
from polycal.io._csv import count_cells
from polycal.io._files import remote_room
from polycal.io._formats import format_of
from polycal.io._npz import read_npy
from polycal.io._parquet import OpenParquet, open_parquet
from polycal.io._places import Place
from polycal.io._raw import Classes, RawPredictions
from polycal.io._table import labels_from_codes
from polycal.storage.archive import read_rows

# Other formats are read whole: their files must be smaller than the memory, by what unpacking and checking take.
_WHOLE_SHARE = 4
# Cells of CSV may have two bytes each; what one takes while it is read, and what is looked at of a file elsewhere.
_CSV_CELL, _CSV_HEAD = 24, 1 << 20

# The number of the first row, and what makes arrays of the rows: on any thread, also while others are being made.
UnreadChunk = tuple[int, Callable[[], RawPredictions]]


class ChunkReader(ABC):
    """One file, as unchecked chunks."""

    @abstractmethod
    def classes(self) -> Classes | None:
        """The classes of the file; None if it has no row."""

    @abstractmethod
    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """All rows, at most ``n_rows`` in a chunk."""


class NpyReader(ChunkReader):
    """An array on this machine, read by slices."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def classes(self) -> Classes | None:
        """Those of the columns."""
        raw = read_npy(self.path, 0)
        classes = raw.classes
        return classes if raw.proba.shape[0] else None

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """Slices."""
        raw = read_npy(self.path, 0)
        for start in range(0, raw.proba.shape[0], n_rows):
            yield start, partial(_rows_of, raw, slice(start, start + n_rows), read_rows)


class WholeReader(ChunkReader):
    """A file of a format that is read whole."""

    def __init__(self, place: Place, memory: int) -> None:
        size = place.stat().st_size if isinstance(place, Path) else place.size()
        self._place, self._max_bytes = place, memory // 2
        if size * _WHOLE_SHARE > memory:
            _refuse_whole(place, f"{size:,} bytes", memory)
        if place.suffix.lower() == ".csv":
            cells = _cells_of(place, size)
            if cells * _CSV_CELL > self._max_bytes:
                _refuse_whole(place, f"{cells:,} cells", memory)

    def classes(self) -> Classes:
        """Those of all rows."""
        return self._read().classes

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """Parts of what is all in memory, so that threads can share it."""
        raw = self._read()
        for start in range(0, raw.proba.shape[0], n_rows):
            yield start, partial(_rows_of, raw, slice(start, start + n_rows))

    def _read(self) -> RawPredictions:
        return format_of(self._place).read(self._place, self._max_bytes)


def _refuse_whole(place: Place, what: str, memory: int) -> NoReturn:
    raise ValueError(
        f"{place.suffix} files are read whole, and {what} are too many for a memory of {memory:,}; "
        "write Parquet or .npy instead"
    )


def _cells_of(place: Place, size: int) -> int:
    """The cells of a table: on this machine all are counted, elsewhere the first ones stand for all."""
    if isinstance(place, Path):
        with place.open("rb") as file:
            return count_cells(file, size, size)
    with place.open() as stream:
        return count_cells(stream, size, _CSV_HEAD)


@dataclass(frozen=True)
class LabelCode:
    """Positions of label values among the classes, decided by all values that a file has."""

    positions: dict[Any, int]

    def encode(self, column: Any) -> Ints:
        """A column of labels as positions."""
        encoded = column.dictionary_encode()
        known = np.array([self.positions.get(v, 0) for v in encoded.dictionary.to_pylist()], dtype=np.int64)
        codes: Ints = known[np.asarray(encoded.indices)]
        return codes


class ParquetReader(ChunkReader):
    """A Parquet file, read by batches."""

    def __init__(self, place: Place, memory: int) -> None:
        self._place, self._room = place, remote_room(memory)

    def classes(self) -> Classes | None:
        """Those of the schema; lists show theirs in the first row."""
        with open_parquet(self._place, self._room) as parquet:
            return _classes(parquet) if parquet.n_rows else None

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """Batches."""
        with open_parquet(self._place, self._room) as parquet:
            code = _label_code(parquet)
            start = 0
            for batch in parquet.batches(n_rows, _known_columns(parquet)):
                yield start, partial(_read_batch, batch, code)
                start += batch.num_rows


def _read_batch(batch: Any, code: LabelCode | None) -> RawPredictions:
    """A batch of a Parquet file as arrays."""
    others = [name for name in batch.schema.names if name != "label"]
    raw = read_table(_one_batch(batch.select(others)), _no_limit())
    return replace(raw, labels=None if code is None else code.encode(batch.column("label")))


def _view(array: NDArray[Any], rows: slice) -> NDArray[Any]:
    return array[rows]


def _rows_of(
    raw: RawPredictions,
    rows: slice,
    cut: Callable[[NDArray[Any], slice], NDArray[Any]] = _view,
) -> RawPredictions:
    """Some rows, as views or read from a file."""

    def part(name: str, array: NDArray[Any] | None) -> NDArray[Any] | None:
        if array is None:
            return None
        # Of parts that are cut alike nobody could tell.
        if array.shape[:1] != raw.proba.shape[:1]:
            raise ValueError(
                f"{name} has shape {array.shape} but y_proba has {raw.proba.shape[0]} rows; give one entry per row."
            )
        return cut(array, rows)

    return replace(
        raw,
        proba=cut(raw.proba, rows),
        labels=part("y_true", raw.labels),
        sample_weight=part("sample_weight", raw.sample_weight),
        evaluation=part("evaluation", raw.evaluation),
    )


def _known_columns(parquet: OpenParquet) -> list[str] | None:
    """The columns that mean something here; None if all do."""
    columns = columns_of(parquet.schema)
    known = columns.special.union(columns.classes)
    names = [name for name in parquet.schema.names if name in known]
    return names if len(names) < len(parquet.schema.names) else None


def _classes(parquet: OpenParquet) -> Classes:
    if not has_lists(parquet.schema):
        return column_classes(parquet.schema)
    return read_table(_one_batch(next(parquet.batches(1, ["proba"]))), _no_limit()).classes


def _label_code(parquet: OpenParquet) -> LabelCode | None:
    """What the labels of a file mean: names or positions, which only all of them together can tell."""
    if "label" not in parquet.schema.names or not parquet.n_rows:
        return None
    # The first row of each value.
    rows: dict[Any, int] = {}
    start = 0
    for batch in parquet.batches(1 << 20, ["label"]):
        encoded = encoded_column(batch, "label", start)
        first = _first_places(np.asarray(encoded.indices), len(encoded.dictionary))
        for value, row in zip(encoded.dictionary.to_pylist(), first.tolist(), strict=True):
            # A dictionary may hold values that no row has.
            if row >= 0:
                rows.setdefault(value, start + row)
        start += batch.num_rows
    classes = _classes(parquet).names or columns_of(parquet.schema).classes
    codes = labels_from_codes(np.arange(len(rows)), list(rows), classes, list(rows.values()))
    return LabelCode(dict(zip(rows, codes.tolist(), strict=True)))


def _first_places(codes: Ints, n_codes: int) -> Ints:
    """Where each code comes first; -1 where it does not."""
    first = np.full(n_codes, -1)
    # Of several entries for one place the last stays.
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    return first


def reader_of(place: Place, memory: int) -> ChunkReader:
    """How a file is read, by its suffix."""
    suffix = place.suffix.lower()
    if suffix == ".parquet":
        return ParquetReader(place, memory)
    if suffix == ".npy" and isinstance(place, Path):
        return NpyReader(place)
    format_of(place)
    return WholeReader(place, memory)


def _one_batch(batch: Any) -> Table:
    return Table(batch.schema, batch.num_rows, lambda columns: iter([batch.select(list(columns))]))


def _no_limit() -> int:
    """A batch is small already: it was unpacked."""
    return 1 << 62
