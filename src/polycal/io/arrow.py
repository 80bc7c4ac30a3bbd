"""Arrow's tables, of which Parquet and Feather files are made, and Feather itself; PyArrow is imported when needed.

Columns are read batch by batch into one array, so that memory holds little else.
"""

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Ints
from polycal.io.columns import flags_from_codes, labels_from_codes
from polycal.io.layout import Columns, Layout, not_a_class, sort_columns, writable_names
from polycal.io.reader import Classes, RawPredictions, Reader
from polycal.storage.atomic import replacing
from polycal.storage.damage import check_claim, readable

_FEATHER = "Feather (Arrow IPC)"
# Of a group: few cells, because all its columns are read at once, but many rows, because every column of every group
# costs a piece of metadata.
_GROUP_CELLS, _LEAST_GROUP = 1 << 22, 1 << 10
_MATRIX = "proba"
_SMALL_FLOATS: dict[str, np.dtype[Any]] = {"float": np.dtype(np.float32), "halffloat": np.dtype(np.float16)}


@dataclass(frozen=True)
class Table:
    """An open file: its schema, its number of rows, and its batches with some columns only."""

    schema: Any
    n_rows: int
    batches: Callable[[Sequence[str]], Iterator[Any]]


def pyarrow(module: str = "") -> Any:
    """Import PyArrow, or one of its modules, when it is first needed."""
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError as error:
        raise ImportError(
            "Parquet and Feather files need PyArrow, which is not installed: pip install 'polycal[arrow]'"
        ) from error


def read_table(table: Table, columns: Columns, layout: Layout, max_bytes: int) -> RawPredictions:
    """Read a table of either form, one column per class or one column of lists, whose columns have these roles."""
    if table.n_rows <= 0:
        raise ValueError("the file has columns but no row")
    if has_lists(table.schema):
        class_names = layout.class_names or names_in_metadata(table.schema)
        proba = _read_lists(table, max_bytes)
        classes = class_names or ()
    else:
        classes, class_names = columns.classes, columns.class_names
        proba = _read_columns(table, columns.data, max_bytes)
        proba = proba if len(columns.data) > 1 else proba[:, 0]
    weight = None if columns.weight is None else _read_columns(table, (columns.weight,), max_bytes)[:, 0]
    texts = {
        name: _read_codes(table, name) for name in (columns.label, columns.evaluation) if name is not None
    }
    return RawPredictions(
        proba=proba,
        from_logits=layout.from_logits,
        labels=None if columns.label is None else labels_from_codes(*texts[columns.label], classes),
        sample_weight=weight,
        class_names=class_names,
        evaluation=None if columns.evaluation is None else flags_from_codes(*texts[columns.evaluation]),
        columns={name: _read_other(table, name, max_bytes) for name in columns.others},
        roles=columns.roles,
    )


class FeatherReader(Reader):
    """A Feather (version 2, Arrow IPC) file, read whole."""

    def read(self) -> RawPredictions:
        """The table."""
        with self._on_disk() as path, pyarrow().OSFile(str(path), "rb") as file:
            with readable(_FEATHER):
                schema = pyarrow("ipc").open_file(file).schema

            def batches(columns: Sequence[str]) -> Iterator[Any]:
                return _feather_batches(file, [schema.get_field_index(name) for name in columns])

            n_rows = 0
            for batch in _feather_batches(file, [_narrowest(schema)]):
                n_rows += batch.num_rows
                # Before the next is unpacked: a few bytes can stand for billions.
                check_claim(n_rows * len(schema), self.max_bytes)
            columns_by_role = columns_of(schema, self.layout)
            return read_table(Table(schema, n_rows, batches), columns_by_role, self.layout, self.max_bytes)

    @staticmethod
    def write(path: Path, raw: RawPredictions) -> None:
        """Write a Feather file, uncompressed."""
        schema = schema_of(raw)
        with replacing(path) as file, pyarrow("ipc").new_file(file, schema) as writer:
            for batch in batches_of(raw, schema):
                writer.write_batch(batch)


def _feather_batches(file: Any, fields: list[int]) -> Iterator[Any]:
    """All batches with some fields only; the others stay packed."""
    ipc = pyarrow("ipc")
    with readable(_FEATHER):
        reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            # Lengths and offsets are as the file gave them, and may point outside its buffers.
            batch.validate(full=True)
            yield batch


def _narrowest(schema: Any) -> int:
    """The field that takes the least to unpack, to count the rows by."""
    is_number = pyarrow().types.is_primitive
    return min(
        range(len(schema)),
        key=lambda i: schema.field(i).type.bit_width if is_number(schema.field(i).type) else 1 << 10,
        default=0,
    )


def columns_of(schema: Any, layout: Layout) -> Columns:
    """The columns by their role. The classes are those that the schema's metadata name, if these are columns."""
    if has_lists(schema):
        # The names are those of the entries of lists.
        return sort_columns(schema.names, replace(layout, classes=None), (_MATRIX,))
    names = names_in_metadata(schema)
    return sort_columns(schema.names, layout, names if names and set(names) <= set(schema.names) else None)


def has_lists(schema: Any) -> bool:
    """Tell whether probabilities are in one column of lists, and not in one column per class."""
    return _MATRIX in schema.names and is_list(schema.field(_MATRIX).type)


def column_classes(schema: Any, layout: Layout) -> Classes:
    """The classes of a table with one column of numbers per class."""
    columns = columns_of(schema, layout)
    _dtype_of(schema, columns.data)
    return Classes(len(columns.classes), columns.class_names, columns.roles)


def _read_columns(table: Table, names: tuple[str, ...], max_bytes: int) -> NDArray[Any]:
    """Read columns of numbers side by side."""
    dtype = _dtype_of(table.schema, names)
    out = _allocate(table.n_rows, len(names), dtype, max_bytes)
    for start, batch in _numbered_batches(table, names):
        for name in names:
            _refuse_null(batch.column(name), name, start)
        if batch.num_rows == table.n_rows:
            out = _side_by_side(batch, names, dtype)
        else:
            out[start : start + batch.num_rows] = _side_by_side(batch, names, dtype)
    return out


def _side_by_side(batch: Any, names: tuple[str, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Columns without gaps as one array."""
    columns = [batch.column(name) for name in names]
    if len({str(column.type) for column in columns}) > 1:
        return np.stack([np.asarray(column, dtype) for column in columns], axis=1)
    # In one call, so that threads need not take turns at every column.
    matrix: NDArray[Any] = batch.select(list(names)).to_tensor(row_major=True).to_numpy()
    return matrix.astype(dtype, copy=False)


def _read_lists(table: Table, max_bytes: int) -> NDArray[Any]:
    """Read a column of lists, all of the same length."""
    dtype = _common_dtype({_MATRIX: table.schema.field(_MATRIX).type.value_type})
    out = np.empty((0, 0), dtype)
    for start, batch in _numbered_batches(table, (_MATRIX,)):
        lists = batch.column(_MATRIX)
        _refuse_null(lists, _MATRIX, start)
        lengths = np.asarray(pyarrow("compute").list_value_length(lists))
        if start == 0:
            out = _allocate(table.n_rows, int(lengths[0]), dtype, max_bytes)
        if (lengths != out.shape[1]).any():
            row = int(np.argmax(lengths != out.shape[1]))
            raise ValueError(
                f"{_MATRIX}[{start + row}] has {lengths[row]} entries, the first row {out.shape[1]}"
            )
        flat = lists.flatten()
        _refuse_null(flat, _MATRIX, start, per_row=out.shape[1])
        out[start : start + batch.num_rows] = np.asarray(flat).reshape(batch.num_rows, out.shape[1])
    return out


def _read_other(table: Table, name: str, max_bytes: int) -> NDArray[Any]:
    """A column that is read along."""
    # Text is kept once for each distinct value, and a pointer for each row.
    check_claim(table.n_rows * 8, max_bytes)
    parts = [other_values(batch.column(name), name) for _, batch in _numbered_batches(table, (name,))]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def other_values(column: Any, name: str) -> NDArray[Any]:
    """What a column holds: float64 with NaN for gaps if that is numbers, else text with None for gaps."""
    is_type = pyarrow().types
    if is_type.is_nested(column.type):
        raise ValueError(f"column {name!r} holds {column.type}; give one value per row")
    if is_type.is_floating(column.type) or is_type.is_integer(column.type):
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False))
    return _texts(column)


def _texts(column: Any) -> NDArray[Any]:
    """A column of anything as text; None where it has a gap."""
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    distinct = [None if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    codes = np.asarray(encoded.indices.fill_null(len(distinct)))
    texts: NDArray[Any] = np.array([*distinct, None], dtype=object)[codes]
    return texts


def _read_codes(table: Table, name: str) -> tuple[Ints, list[Any]]:
    """Read any column as positions in the list of its distinct values."""
    values: dict[Any, int] = {}
    codes = np.empty(table.n_rows, dtype=np.int64)
    for start, batch in _numbered_batches(table, (name,)):
        encoded = encoded_column(batch, name, start)
        distinct = encoded.dictionary.to_pylist()
        # A dictionary may hold values that no row has.
        used, inverse = np.unique(np.asarray(encoded.indices), return_inverse=True)
        known = [values.setdefault(distinct[i], len(values)) for i in used]
        codes[start : start + batch.num_rows] = np.array(known, dtype=np.int64)[inverse]
    return codes, list(values)


def encoded_column(batch: Any, name: str, start: int) -> Any:
    """A column of one value per row, without gaps, as codes and a dictionary; ``start`` is its first row's number."""
    column = batch.column(name)
    _refuse_null(column, name, start)
    if pyarrow().types.is_nested(column.type):
        raise ValueError(f"column {name!r} holds {column.type}; give one value per row")
    return column.dictionary_encode()


def _numbered_batches(table: Table, names: tuple[str, ...]) -> Iterator[tuple[int, Any]]:
    """Yield the batches with their first row's number, and see that there are as many rows as announced."""
    start = 0
    for batch in table.batches(names):
        if start + batch.num_rows <= table.n_rows and batch.num_rows:
            yield start, batch
        start += batch.num_rows
    if start != table.n_rows:
        raise ValueError(
            f"the file is truncated or corrupt (it announces {table.n_rows} rows and holds {start})"
        )


def _allocate(n_rows: int, n_columns: int, dtype: np.dtype[Any], max_bytes: int) -> NDArray[Any]:
    """Make room for the numbers, if the file does not claim too many: a few bytes can stand for billions."""
    check_claim(n_rows * n_columns * dtype.itemsize, max_bytes)
    return np.empty((n_rows, n_columns), dtype)


def _refuse_null(column: Any, name: str, start: int, *, per_row: int = 1) -> None:
    """Name the row of the first gap in a column."""
    if column.null_count:
        row = start + int(np.argmax(np.asarray(column.is_null()))) // per_row
        raise ValueError(f"row {row}, column {name!r} is null; drop the row or give it a value")


def _dtype_of(schema: Any, names: tuple[str, ...]) -> np.dtype[Any]:
    """The type of columns of numbers."""
    if not names:
        raise ValueError(
            "there is no column of probabilities; add one column per class, its name the class name"
        )
    return _common_dtype({name: schema.field(name).type for name in names})


def _common_dtype(types: dict[str, Any]) -> np.dtype[Any]:
    """Keep float32 and float16 when all columns are that; take float64 for other numbers."""
    is_type = pyarrow().types
    for name, kind in types.items():
        if not (is_type.is_floating(kind) or is_type.is_integer(kind)):
            raise ValueError(f"column {name!r} holds {kind}, not floats. {not_a_class(name)}")
    kinds = {str(kind) for kind in types.values()}
    return _SMALL_FLOATS.get(kinds.pop(), np.dtype(np.float64)) if len(kinds) == 1 else np.dtype(np.float64)


def is_list(kind: Any) -> bool:
    """Tell whether a type is one of the list types."""
    is_type = pyarrow().types
    return bool(is_type.is_fixed_size_list(kind) or is_type.is_list(kind) or is_type.is_large_list(kind))


def names_in_metadata(schema: Any) -> tuple[str, ...] | None:
    """Read class names from the schema's metadata: under ``class_names``, a JSON list."""
    text = (schema.metadata or {}).get(b"class_names")
    if text is None:
        return None
    with readable("JSON (class_names in the schema's metadata)"):
        return tuple(map(str, json.loads(text)))


def group_rows(n_classes: int) -> int:
    """Rows of a group, or of a batch, that are written together."""
    return max(_LEAST_GROUP, _GROUP_CELLS // n_classes)


def schema_of(raw: RawPredictions) -> Any:
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


def batches_of(raw: RawPredictions, schema: Any) -> Iterator[Any]:
    """Cut the arrays into batches."""
    pa = pyarrow()
    n_rows, n_classes = raw.proba.shape
    names = None if raw.class_names is None else pa.array(raw.class_names)
    step = group_rows(n_classes)
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
