"""Parquet and Feather, by PyArrow, which is imported when first needed."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from polycal.io._arrow_columns import Table, pyarrow, read_table
from polycal.io._ipc import read_claim
from polycal.io._parquet import open_parquet
from polycal.io._places import Place
from polycal.io._raw import RawPredictions
from polycal.io._table import writable_names
from polycal.storage.atomic import replacing
from polycal.storage.damage import check_claim, readable

_FEATHER = "Feather (Arrow IPC)"

# The second limit is for cells that are lists.
_BATCH_CELLS, _BATCH_ROWS = 1 << 22, 1 << 14
# Of a group: few cells, because all its columns are read at once, but many rows, because every column of every group
# costs a piece of metadata.
_GROUP_CELLS, _LEAST_GROUP = 1 << 22, 1 << 10


def read_parquet(place: Place, max_bytes: int) -> RawPredictions:
    """Read a Parquet file."""
    with open_parquet(place) as parquet:

        def batches(columns: Sequence[str]) -> Iterator[Any]:
            return parquet.batches(min(_BATCH_ROWS, max(1, _BATCH_CELLS // len(columns))), columns)

        return read_table(Table(parquet.schema, parquet.n_rows, batches), max_bytes)


def read_feather(path: Path, max_bytes: int) -> RawPredictions:
    """Read a Feather (version 2, Arrow IPC) file."""
    ipc = pyarrow("ipc")
    with pyarrow().OSFile(str(path), "rb") as file:
        with readable(_FEATHER):
            schema = ipc.open_file(file).schema
            n_rows, n_bytes = read_claim(path)
        check_claim(n_bytes, max_bytes)

        def batches(columns: Sequence[str]) -> Iterator[Any]:
            with readable(_FEATHER):
                fields = [schema.get_field_index(name) for name in columns]
                reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))
                for i in range(reader.num_record_batches):
                    batch = reader.get_batch(i)
                    # Lengths and offsets are as the file gave them, and may point outside its buffers.
                    batch.validate(full=True)
                    yield batch

        return read_table(Table(schema, n_rows, batches), max_bytes)


def write_parquet(path: Path, raw: RawPredictions) -> None:
    """Write a Parquet file whose pages carry checksums."""
    schema = _schema(raw)
    with _writing(path, schema) as writer:
        for batch in _batches(raw, schema):
            writer.write_batch(batch)


def append_parquet(path: Path, parts: Iterable[RawPredictions]) -> int:
    """Write parts of the same columns to one Parquet file, as they come; returns the number of rows.

    Without any part no file is written.
    """
    remaining = iter(parts)
    first = next(remaining, None)
    if first is None:
        return 0
    schema, n_rows = _schema(first), 0
    with _writing(path, schema) as writer:
        for raw in chain([first], remaining):
            n_rows += raw.proba.shape[0]
            for batch in _batches(raw, schema):
                writer.write_batch(batch)
    return n_rows


def write_frame(path: Path, frame: Any, classes: Sequence[str]) -> None:
    """Write a pandas data frame, with its index, to a Parquet file whose metadata name the columns of classes."""
    table = pyarrow().Table.from_pandas(frame)
    named = (table.schema.metadata or {}) | {b"class_names": json.dumps(list(classes)).encode()}
    table = table.replace_schema_metadata(named)
    with _writing(path, table.schema) as writer:
        writer.write_table(table, row_group_size=_group_rows(len(classes)))


def _group_rows(n_classes: int) -> int:
    return max(_LEAST_GROUP, _GROUP_CELLS // n_classes)


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


def write_feather(path: Path, raw: RawPredictions) -> None:
    """Write a Feather (version 2, Arrow IPC) file, uncompressed."""
    schema = _schema(raw)
    with replacing(path) as file, pyarrow("ipc").new_file(file, schema) as writer:
        for batch in _batches(raw, schema):
            writer.write_batch(batch)


def _schema(raw: RawPredictions) -> Any:
    """Lay out the columns: label, weight and part if there are any, then the classes."""
    pa = pyarrow()
    fields = [
        (name, pa.from_numpy_dtype(raw.proba.dtype))
        for name in writable_names(raw.class_names, raw.proba.shape[1])
    ]
    if raw.evaluation is not None:
        fields.insert(0, ("evaluation", pa.bool_()))
    if raw.sample_weight is not None:
        fields.insert(0, ("weight", pa.float64()))
    if raw.labels is not None:
        fields.insert(0, ("label", pa.int64() if raw.class_names is None else pa.string()))
    return pa.schema(fields)


def _batches(raw: RawPredictions, schema: Any) -> Iterator[Any]:
    """Cut the arrays into batches."""
    pa = pyarrow()
    n_rows, n_classes = raw.proba.shape
    names = None if raw.class_names is None else pa.array(raw.class_names)
    step = _group_rows(n_classes)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        columns = [pa.array(np.ascontiguousarray(column)) for column in raw.proba[rows].T]
        if raw.evaluation is not None:
            columns.insert(0, pa.array(raw.evaluation[rows]))
        if raw.sample_weight is not None:
            columns.insert(0, pa.array(raw.sample_weight[rows]))
        if raw.labels is not None:
            labels = pa.array(raw.labels[rows])
            columns.insert(0, labels if names is None else names.take(labels))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
