"""Lists of classes in Parquet files: a column of class ids and a column of probabilities, read chunk by chunk."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal import _typing
from polycal._typing import Ints
from polycal._validation import check_choice, check_integer
from polycal.io._arrow_columns import _is_list, _names_in_metadata, pyarrow
from polycal.io._chunk_readers import _open_parquet
from polycal.io.chunks import DEFAULT_MEMORY, ROWS_PER_FILE, _find, parse_memory
from polycal.sparse._gate import REMAINDERS, check_sparse_chunk
from polycal.sparse._sample import Remainder, SparseSample, joined
from polycal.storage.atomic import replacing
from polycal.storage.damage import named, readable

_CLASSES, _PROBA = "classes", "proba"
_SIZE = b"n_classes"
# What the interpreter, SciPy, the compiler and PyArrow take; bytes that a listed class takes while it is read and
# checked, with room to spare; and the share of the rest that a chunk may take.
_BASE_MEMORY, _BYTES_PER_ENTRY, _CHUNK_SHARE = 384 << 20, 128, 4


@dataclass(frozen=True, eq=False)
class SparseChunk:
    """Validated lists, and the places of their rows in the whole data."""

    sample: SparseSample
    rows: Ints


@dataclass(frozen=True, eq=False, repr=False)
class ListFiles:
    """Parquet files of lists. Iterate, as often as needed, to get them as `SparseChunk`.

    Attributes
    ----------
    paths : tuple of path
        The files, in order.
    n_classes : int
        Number of classes.
    class_names : tuple of str, or None
        Their names.
    remainder : {"unknown", "spread", "anywhere", "class"}
        What is said of the probability that lists leave over.
    memory : int
        Bytes that may be used in all.
    """

    paths: tuple[Path, ...]
    n_classes: int
    class_names: tuple[str, ...] | None
    remainder: Remainder
    memory: int

    def __iter__(self) -> Iterator[SparseChunk]:
        for number, path in enumerate(self.paths):
            with named(path):
                yield from self._file_chunks(path, number * ROWS_PER_FILE)

    def __repr__(self) -> str:
        return f"ListFiles({len(self.paths)} files, n_classes={self.n_classes})"

    def _file_chunks(self, path: Path, place: int) -> Iterator[SparseChunk]:
        seen = 0
        with _open_parquet(path) as parquet:
            names = parquet.schema_arrow.names
            weight = next((name for name in ("weight", "sample_weight") if name in names), None)
            columns = [_CLASSES, _PROBA, "label", *([] if weight is None else [weight])]
            with readable("Parquet"):
                batches = parquet.iter_batches(batch_size=self._chunk_rows(parquet), columns=columns)
            while True:
                with readable("Parquet"):
                    batch = next(batches, None)
                if batch is None:
                    break
                with named(Path(f"rows from {seen}")):
                    sample = self._checked(batch, weight)
                if sample.n_samples:
                    yield SparseChunk(sample, np.arange(place + seen, place + seen + sample.n_samples))
                seen += batch.num_rows

    def _chunk_rows(self, parquet: Any) -> int:
        """Rows whose entries fit, going by the mean number of entries."""
        groups = [parquet.metadata.row_group(i) for i in range(parquet.metadata.num_row_groups)]
        leaf = next(
            i
            for i in range(parquet.metadata.num_columns)
            if parquet.schema.column(i).path.startswith(_CLASSES)
        )
        n_entries = sum(int(group.column(leaf).num_values) for group in groups)
        mean = 1 + n_entries // max(1, int(parquet.metadata.num_rows))
        return max(1, (self.memory - _BASE_MEMORY) // (_CHUNK_SHARE * _BYTES_PER_ENTRY * mean))

    def _checked(self, batch: Any, weight: str | None) -> SparseSample:
        """Pass a batch through the gate."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

        lengths, ids = _flat(batch.column(_CLASSES), _CLASSES)
        proba_lengths, proba = _flat(batch.column(_PROBA), _PROBA)
        if (lengths != proba_lengths).any():
            row = int(np.argmax(lengths != proba_lengths))
            raise ValueError(f"row {row} lists {lengths[row]} classes but {proba_lengths[row]} probabilities")
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        outside = (ids < 0) | (ids >= self.n_classes)
        if outside.any():
            entry = int(np.argmax(outside))
            row = int(np.searchsorted(indptr, entry, side="right")) - 1
            raise ValueError(f"row {row} lists class {ids[entry]}, outside 0..{self.n_classes - 1}")
        return check_sparse_chunk(
            _values(batch.column("label"), "label"),
            csr_array((proba, ids, indptr), shape=(batch.num_rows, self.n_classes)),
            remainder=self.remainder,
            sample_weight=None if weight is None else _values(batch.column(weight), weight),
            class_names=self.class_names,
        )


def open_lists(
    path: _typing.Path | Sequence[_typing.Path],
    *,
    n_classes: int | None = None,
    remainder: Remainder = "unknown",
    memory: int | str = DEFAULT_MEMORY,
) -> ListFiles:
    r"""Open Parquet files of lists of classes, to be read in chunks.

    Parameters
    ----------
    path : str, path, or list of them
        Parquet files, folders and patterns. Columns: ``classes`` (lists of class indices), ``proba`` (lists of their
        probabilities), ``label`` (class index, or name if classes have names) and, optionally, ``weight``.
    n_classes : int, optional
        Number of classes; by default what the first file's metadata say under ``n_classes``, or the number of names
        in the JSON list under ``class_names``.
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        What is said of the probability that a list leaves over, as for `polycal.sparse.sparse_sample`.
    memory : int or str, default "1GiB"
        What may be used in all, in bytes or as text such as "512MiB". At least 512 MiB.

    Returns
    -------
    ListFiles

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy.sparse import csr_array
    >>> import polycal.sparse
    >>> from polycal.io.lists import open_lists, write_lists
    >>> sample = polycal.sparse.sparse_sample([1, 2], csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_lists(Path(folder, "top.parquet"), sample)
    ...     files = open_lists(folder)
    ...     files, [chunk.sample for chunk in files]
    (ListFiles(1 files, n_classes=4),
     [SparseSample(n_samples=2, n_classes=4, n_listed=4, remainder='unknown')])
    """
    check_choice(remainder, "remainder", REMAINDERS)
    limit = parse_memory(memory)
    given = [path] if isinstance(path, str | PathLike) else list(path)
    paths = tuple(found for one in given for found in _find(str(one)))
    if not paths:
        raise ValueError("the list of files is empty")
    schemas = [_schema_of(file) for file in paths]
    names = _names_in_metadata(schemas[0])
    for file, schema in zip(paths, schemas, strict=True):
        if _names_in_metadata(schema) != names:
            raise ValueError(f"{file}: has other class names than {paths[0]}")
    if n_classes is None:
        size = (schemas[0].metadata or {}).get(_SIZE)
        if size is None and names is None:
            raise ValueError(f"{paths[0]}: does not say how many classes there are; pass n_classes")
        n_classes = int(size) if size is not None else len(names or ())
    return ListFiles(paths, check_integer(n_classes, "n_classes", minimum=2), names, remainder, limit)


def read_lists(
    path: _typing.Path | Sequence[_typing.Path],
    *,
    n_classes: int | None = None,
    remainder: Remainder = "unknown",
) -> SparseSample:
    """Read Parquet files of lists of classes into memory.

    Parameters
    ----------
    path, n_classes, remainder
        As for `open_lists`.

    Returns
    -------
    SparseSample
    """
    files = open_lists(path, n_classes=n_classes, remainder=remainder)
    parts = [chunk.sample for chunk in files]
    if not parts:
        raise ValueError(f"{files.paths[0]}: there is no row in these files")
    return joined(parts)


def write_lists(path: _typing.Path, sample: SparseSample) -> None:
    """Write lists of classes to a Parquet file, as `open_lists` reads them.

    Parameters
    ----------
    path : str or path
    sample : SparseSample
    """
    pa = pyarrow()
    columns = {
        _CLASSES: pa.LargeListArray.from_arrays(sample.indptr, sample.indices),
        _PROBA: pa.LargeListArray.from_arrays(sample.indptr, sample.values),
        "label": pa.array(sample.labels),
    }
    if sample.sample_weight is not None:
        columns["weight"] = pa.array(sample.sample_weight)
    metadata = {_SIZE: str(sample.n_classes).encode()}
    if sample.class_names is not None:
        metadata[b"class_names"] = json.dumps(sample.class_names).encode()
        columns["label"] = pa.array(sample.class_names).take(columns["label"])
    table = pa.table(columns).replace_schema_metadata(metadata)
    with replacing(Path(path)) as file:
        pyarrow("parquet").write_table(table, file, write_page_checksum=True)


def _schema_of(path: Path) -> Any:
    """The schema of a file, if it has the columns of lists."""
    with named(path), _open_parquet(path) as parquet:
        schema = parquet.schema_arrow
        is_type = pyarrow().types
        for name in (_CLASSES, _PROBA, "label"):
            if name not in schema.names:
                raise ValueError(
                    f"there is no column {name!r}; lists need {_CLASSES!r}, {_PROBA!r} and 'label'"
                )
        for name in (_CLASSES, _PROBA):
            kind = schema.field(name).type
            if not _is_list(kind):
                raise ValueError(f"column {name!r} holds {kind}, not lists")
        if not is_type.is_integer(schema.field(_CLASSES).type.value_type):
            raise ValueError(f"column {_CLASSES!r} must hold lists of class indices")
        return schema


def _flat(column: Any, name: str) -> tuple[Ints, NDArray[Any]]:
    """The lengths of lists, and what they hold, one after the other."""
    lengths = _values(pyarrow("compute").list_value_length(column), name).astype(np.int64)
    return lengths, _values(column.flatten(), name)


def _values(column: Any, name: str) -> NDArray[Any]:
    if column.null_count:
        raise ValueError(f"column {name!r} holds a null; drop the row or give it a value")
    return np.asarray(column)
