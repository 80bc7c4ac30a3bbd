"""Parquet files of predictions, read whole or by batches, and written with checksums."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from polycal._typing import Bools, Ints
from polycal.io.arrow import (
    Table,
    batches_of,
    column_classes,
    columns_of,
    encoded_column,
    group_rows,
    has_lists,
    pyarrow,
    read_table,
    schema_of,
)
from polycal.io.columns import flags_from_codes, labels_from_codes
from polycal.io.layout import Columns, Layout
from polycal.io.parquet_batches import OpenParquet, open_parquet
from polycal.io.reader import Classes, Part, RawPredictions, Reader, UnreadChunk, rows_of_part
from polycal.storage.atomic import replacing

# The second limit is for cells that are lists.
_BATCH_CELLS, _BATCH_ROWS = 1 << 22, 1 << 14
# Rows of one column that are read at a time; and what a batch may unpack to, which has been unpacked already.
_COLUMN_ROWS, _ANY_BYTES = 1 << 20, 1 << 62


class ParquetReader(Reader):
    """A Parquet file."""

    in_chunks: ClassVar[bool] = True

    def read(self) -> RawPredictions:
        """The table."""
        with open_parquet(self.path) as parquet:

            def batches(columns: Sequence[str]) -> Iterator[Any]:
                return parquet.batches(min(_BATCH_ROWS, max(1, _BATCH_CELLS // len(columns))), columns)

            columns_by_role = columns_of(parquet.schema, self.layout)
            table = Table(parquet.schema, parquet.n_rows, batches)
            return read_table(table, columns_by_role, self.layout, self.max_bytes)

    @staticmethod
    def write(path: Path, raw: RawPredictions) -> None:
        """Write a Parquet file whose pages carry checksums."""
        append_parquet(path, [raw])

    def classes(self) -> Classes | None:
        """Those of the schema; lists show theirs in the first row."""
        with open_parquet(self.path, self.room) as parquet:
            return _classes(parquet, self.layout) if parquet.n_rows else None

    def n_rows(self) -> int:
        """Those of the metadata."""
        with open_parquet(self.path, self.room) as parquet:
            return parquet.n_rows

    def chosen(self, part: Part) -> Bools:
        """What the column of marks says."""
        with open_parquet(self.path, self.room) as parquet:
            if "evaluation" not in parquet.schema.names:
                rows_of_part(None, part, parquet.n_rows)
            chosen, start = [np.empty(0, dtype=np.bool_)], 0
            for batch in parquet.batches(_COLUMN_ROWS, ["evaluation"]):
                marks = encoded_column(batch, "evaluation", start)
                flags = flags_from_codes(np.asarray(marks.indices), marks.dictionary.to_pylist())
                chosen.append(rows_of_part(flags, part, batch.num_rows))
                start += batch.num_rows
            return np.concatenate(chosen)

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """Batches."""
        with open_parquet(self.path, self.room) as parquet:
            columns = columns_of(parquet.schema, self.layout)
            code = _label_code(parquet, columns, self.layout)
            start = 0
            for batch in parquet.batches(n_rows, _known_columns(parquet, columns)):
                yield start, partial(_read_batch, batch, code, columns, self.layout)
                start += batch.num_rows


def append_parquet(path: Path, parts: Iterable[RawPredictions]) -> int:
    """Write parts of the same columns to one Parquet file, as they come; returns the number of rows.

    Without any part no file is written.
    """
    remaining = iter(parts)
    first = next(remaining, None)
    if first is None:
        return 0
    schema, n_rows = schema_of(first), 0
    with _writing(path, schema) as writer:
        for raw in chain([first], remaining):
            n_rows += raw.proba.shape[0]
            for batch in batches_of(raw, schema):
                writer.write_batch(batch)
    return n_rows


def write_frame(path: Path, frame: Any, classes: Sequence[str]) -> None:
    """Write a pandas data frame, with its index, to a Parquet file whose metadata name the columns of classes."""
    table = pyarrow().Table.from_pandas(frame)
    named = (table.schema.metadata or {}) | {b"class_names": json.dumps(list(classes)).encode()}
    table = table.replace_schema_metadata(named)
    with _writing(path, table.schema) as writer:
        writer.write_table(table, row_group_size=group_rows(len(classes)))


@contextmanager
def _writing(path: Path, schema: Any) -> Iterator[Any]:
    """A writer of a Parquet file that appears under its name when it is complete."""
    with (
        replacing(path) as file,
        pyarrow("parquet").ParquetWriter(
            file, schema, write_page_checksum=True, use_dictionary=["label"]
        ) as writer,
    ):
        yield writer


@dataclass(frozen=True)
class LabelCode:
    """Positions of label values among the classes, decided by all values that a file has."""

    column: str
    positions: dict[Any, int]

    def encode(self, column: Any) -> Ints:
        """A column of labels as positions."""
        encoded = column.dictionary_encode()
        known = np.array([self.positions.get(v, 0) for v in encoded.dictionary.to_pylist()], dtype=np.int64)
        codes: Ints = known[np.asarray(encoded.indices)]
        return codes


def _read_batch(batch: Any, code: LabelCode | None, columns: Columns, layout: Layout) -> RawPredictions:
    """A batch as arrays."""
    raw = read_table(_one_batch(batch), replace(columns, label=None), layout, _ANY_BYTES)
    return replace(raw, labels=None if code is None else code.encode(batch.column(code.column)))


def _known_columns(parquet: OpenParquet, columns: Columns) -> list[str] | None:
    """The columns that mean something here; None if all do."""
    known = set(columns.read)
    names = [name for name in parquet.schema.names if name in known]
    return names if len(names) < len(parquet.schema.names) else None


def _classes(parquet: OpenParquet, layout: Layout) -> Classes:
    if not has_lists(parquet.schema):
        return column_classes(parquet.schema, layout)
    columns = columns_of(parquet.schema, layout)
    only = Columns(columns.data, columns.classes)
    first = read_table(_one_batch(next(parquet.batches(1, columns.data))), only, layout, _ANY_BYTES)
    return replace(first.classes, roles=columns.roles)


def _label_code(parquet: OpenParquet, columns: Columns, layout: Layout) -> LabelCode | None:
    """What the labels of a file mean: names or positions, which only all of them together can tell."""
    if columns.label is None or not parquet.n_rows:
        return None
    # The first row of each value.
    rows: dict[Any, int] = {}
    start = 0
    for batch in parquet.batches(_COLUMN_ROWS, [columns.label]):
        encoded = encoded_column(batch, columns.label, start)
        first = _first_rows(np.asarray(encoded.indices), len(encoded.dictionary))
        for value, row in zip(encoded.dictionary.to_pylist(), first.tolist(), strict=True):
            # A dictionary may hold values that no row has.
            if row >= 0:
                rows.setdefault(value, start + row)
        start += batch.num_rows
    named = _classes(parquet, layout).names if has_lists(parquet.schema) else columns.classes
    codes = labels_from_codes(np.arange(len(rows)), list(rows), named or (), list(rows.values()))
    return LabelCode(columns.label, dict(zip(rows, codes.tolist(), strict=True)))


def _first_rows(codes: Ints, n_codes: int) -> Ints:
    """Where each code comes first; -1 where it does not."""
    first = np.full(n_codes, -1)
    # Of several entries for one code the last stays.
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    return first


def _one_batch(batch: Any) -> Table:
    return Table(batch.schema, batch.num_rows, lambda columns: iter([batch.select(list(columns))]))
