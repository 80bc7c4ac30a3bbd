"""Lists of classes in Parquet files: a column of class ids and a column of probabilities, read chunk by chunk."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal import _typing
from polycal._text import advice
from polycal._typing import Bools, Ints
from polycal._validation import check_choice, check_chunk, check_integer
from polycal._validation.lists import REMAINDERS
from polycal.io.arrow import is_list, names_in_metadata, other_values, pyarrow
from polycal.io.chunks import Chunk, PredictionFiles, opened_predictions
from polycal.io.layout import Columns, Layout, sort_columns
from polycal.io.memory import DEFAULT_MEMORY, parse_memory, remote_room
from polycal.io.parquet_batches import OpenParquet, open_parquet
from polycal.io.paths import FilePath, find_files, local_path
from polycal.io.predictions import FORMATS
from polycal.io.reader import PARTS, Part
from polycal.listed import NOT_LISTED, ListedSample, joined
from polycal.sample import Remainder, Sample
from polycal.storage.atomic import replacing
from polycal.storage.damage import named, rows_from

_CLASSES, _PROBA = "classes", "proba"
_SIZE = b"n_classes"
# Bytes that a listed class takes while it is read and checked, with room to spare.
_BYTES_PER_ENTRY = 128


@dataclass(frozen=True, eq=False, repr=False)
class ListFiles(PredictionFiles):
    """Parquet files of lists. Iterate, as often as needed, to get them as `Chunk`, each with a `ListedSample`.

    Attributes
    ----------
    paths, n_classes, class_names, memory, part
        As for `PredictionFiles`.
    remainder : {"unknown", "spread", "anywhere", "class"}
        What is said of the probability that lists leave over.
    """

    remainder: Remainder = "unknown"
    is_listed: ClassVar[bool] = True

    @property
    def sample_classes(self) -> tuple[int, tuple[str, ...] | None]:
        """Number and names of the classes; with a remainder of "class" there is one more."""
        if self.remainder != "class":
            return self.n_classes, self.class_names
        return self.n_classes + 1, None if self.class_names is None else (*self.class_names, NOT_LISTED)

    def file_chunks(self, path: FilePath, first_row: int) -> Iterator[Chunk]:
        """The chunks of one file whose first row has this number."""
        chunks = (make() for make in self._unread(path, first_row, 1))
        return (chunk for chunk in chunks if chunk is not None)

    def unread_chunks(self, n_threads: int) -> Iterator[Callable[[], Chunk | None]]:
        """What makes the chunks of all files, on so many threads at once: checking is left to them."""
        for path, first in zip(self.paths, self.first_rows, strict=True):
            with named(path):
                yield from self._unread(path, first, n_threads)

    def _unread(self, path: FilePath, first_row: int, n_threads: int) -> Iterator[Callable[[], Chunk | None]]:
        """What makes the chunks of one file."""
        chosen = None if self.part == "all" else self.reader(path).chosen(self.part)
        with open_parquet(path, remote_room(self.memory)) as parquet:
            columns = columns_by_role(parquet.schema, self.layout)
            start, number = 0, first_row
            for batch in parquet.batches(max(1, self._chunk_rows(parquet) // n_threads), columns.read):
                end = start + batch.num_rows
                marks = None if chosen is None else chosen[start:end]
                yield partial(self._made_lists, batch, columns, marks, path, start, number)
                number += batch.num_rows if marks is None else int(np.count_nonzero(marks))
                start = end

    def _made_lists(
        self,
        batch: Any,
        columns: Columns,
        marks: Bools | None,
        path: FilePath,
        start: int,
        number: int,
    ) -> Chunk | None:
        """A batch, checked, with its rows' numbers; None if none of them is of the part asked for."""
        with named(path), rows_from(start):
            sample = self._checked(batch, columns)
            others = {name: other_values(batch.column(name), name) for name in columns.others}
        if sample is not None and marks is not None:
            sample = sample.take(marks)
            others = {name: other[marks] for name, other in others.items()}
        if sample is None or sample.n_samples == 0:
            return None
        return Chunk(sample, np.arange(number, number + sample.n_samples), others)

    def _chunk_rows(self, parquet: OpenParquet) -> int:
        """Rows whose entries fit, going by the mean number of entries."""
        mean = 1 + parquet.mean_length(_CLASSES)
        return max(1, self.chunk_memory // (_BYTES_PER_ENTRY * mean))

    def _checked(self, batch: Any, columns: Columns) -> Sample | None:
        """Pass a batch through the gate."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

        label, weight = columns.label or "label", columns.weight
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
        return check_chunk(
            _values(batch.column(label), label),
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
    part: Part = "all",
    layout: Layout | None = None,
) -> ListFiles:
    r"""Open Parquet files of lists of classes, to be read in chunks.

    Parameters
    ----------
    path : str, path, or list of them
        Parquet files, folders and patterns, or URLs of them, as for `open_predictions`. Columns: ``classes`` (lists of
        class indices), ``proba`` (lists of their probabilities), ``label`` (class index, or name if classes have
        names) and, optionally, ``weight``.
    n_classes : int, optional
        Number of classes; by default what the first file's metadata say under ``n_classes``, or the number of names
        in the JSON list under ``class_names``. Files that say otherwise are then refused.
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        What is said of the probability that a list leaves over, as for `smooth_calibration_error`.
    memory : int or str, default "1GiB"
        What may be used in all, in bytes or as text such as "512MiB". At least 512 MiB.
    part : {"all", "calibration", "evaluation"}
        Which rows, for files with a boolean column ``evaluation``.
    layout : Layout, optional
        Other names of the columns of labels and weights, and columns that are read along.

    Returns
    -------
    ListFiles

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy.sparse import csr_array
    >>> import polycal as pc
    >>> from polycal.sparse import sparse_sample
    >>> sample = sparse_sample([1, 2], csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pc.write_lists(Path(folder, "top.parquet"), sample)
    ...     files = pc.open_lists(folder)
    ...     files, [chunk.sample for chunk in files]
    (ListFiles(1 files, n_classes=4),
     [ListedSample(n_samples=2, n_classes=4, n_listed=4, remainder='unknown')])
    """
    check_choice(part, "part", PARTS)
    paths = find_files(path, (".parquet",))
    return opened_lists(paths, n_classes, remainder, parse_memory(memory), part, layout or Layout())


def opened_lists(
    paths: tuple[FilePath, ...],
    n_classes: int | None,
    remainder: Remainder,
    memory: int,
    part: Part,
    layout: Layout,
) -> ListFiles:
    """Files of lists, once their schemas agree."""
    check_choice(remainder, "remainder", REMAINDERS)
    if not paths:
        raise ValueError("the list of files is empty")
    if layout.classes is not None or layout.from_logits or layout.normalize:
        raise ValueError(
            f"{paths[0]}: holds lists of classes, which are named in its metadata and are probabilities; leave out "
            + advice("classes, from_logits and normalize", "--classes, --from-logits and --normalize")
        )
    schemas = [_schema_of(file) for file in paths]
    names, *others = map(_names_of, paths, schemas)
    for file, other in zip(paths[1:], others, strict=True):
        if other != names:
            raise ValueError(f"{file}: has other class names than {paths[0]}")
    if n_classes is None:
        n_classes = _common_size(paths, schemas)
    with named(paths[0]):
        roles = columns_by_role(schemas[0], layout).roles
    size = check_integer(n_classes, "n_classes", minimum=2)
    return ListFiles(paths, size, names, memory, part, layout, roles, remainder)


def columns_by_role(schema: Any, layout: Layout) -> Columns:
    """The columns of a file of lists."""
    columns = sort_columns(schema.names, layout, (_CLASSES, _PROBA))
    if columns.label is None:
        raise ValueError(f"there is no column 'label'; lists need {_CLASSES!r}, {_PROBA!r} and 'label'")
    return columns


def read_lists(
    path: _typing.Path | Sequence[_typing.Path],
    *,
    n_classes: int | None = None,
    remainder: Remainder = "unknown",
    part: Part = "all",
    layout: Layout | None = None,
) -> ListedSample:
    """Read files of lists of classes into memory: Parquet, or answers of language models (see `read_predictions`).

    Parameters
    ----------
    path, n_classes, remainder, part, layout
        As for `open_lists`.

    Returns
    -------
    ListedSample

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy.sparse import csr_array
    >>> import polycal as pc
    >>> from polycal.sparse import sparse_sample
    >>> sample = sparse_sample([1, 2], csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pc.write_lists(Path(folder, "top.parquet"), sample)
    ...     pc.read_lists(folder)
    ListedSample(n_samples=2, n_classes=4, n_listed=4, remainder='unknown')
    """
    files: PredictionFiles
    if n_classes is None and not any(is_parquet(file) for file in find_files(path, tuple(FORMATS))):
        files = opened_predictions(path, DEFAULT_MEMORY, part, remainder, layout)
    else:
        files = open_lists(path, n_classes=n_classes, remainder=remainder, part=part, layout=layout)
    parts = [chunk.sample for chunk in files if isinstance(chunk.sample, ListedSample)]
    if not parts:
        raise ValueError(f"{files.paths[0]}: there is no row in these files")
    return joined(parts)


def write_lists(path: _typing.Path, sample: ListedSample) -> None:
    """Write lists of classes to a Parquet file, as `open_lists` reads them.

    Parameters
    ----------
    path : str or path
        The file to write, on this machine.
    sample : ListedSample
        The lists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy.sparse import csr_array
    >>> import polycal as pc
    >>> from polycal.sparse import sparse_sample
    >>> sample = sparse_sample([1, 2], csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pc.write_lists(Path(folder, "top.parquet"), sample)
    ...     pc.read_lists(folder).n_samples
    2
    """
    path = local_path(path, "path")
    pa = pyarrow()
    columns = {
        _CLASSES: pa.LargeListArray.from_arrays(
            sample.indptr.astype(np.int64), sample.indices.astype(np.int64)
        ),
        _PROBA: pa.LargeListArray.from_arrays(sample.indptr.astype(np.int64), sample.values),
        "label": pa.array(sample.labels),
    }
    if sample.sample_weight is not None:
        columns["weight"] = pa.array(sample.sample_weight)
    metadata = {_SIZE: str(sample.n_classes).encode()}
    if sample.class_names is not None:
        metadata[b"class_names"] = json.dumps(sample.class_names).encode()
        columns["label"] = pa.array(sample.class_names).take(columns["label"])
    table = pa.table(columns).replace_schema_metadata(metadata)
    with replacing(path) as file:
        pyarrow("parquet").write_table(table, file, write_page_checksum=True)


def is_parquet(path: FilePath) -> bool:
    """Whether a file is a Parquet file, by its name."""
    return path.suffix.lower() == ".parquet"


def holds_lists(path: FilePath) -> bool:
    """Whether a file is a Parquet file of lists of classes, and not one of full predictions."""
    if not is_parquet(path):
        return False
    with named(path), open_parquet(path) as parquet:
        schema = parquet.schema
        return all(name in schema.names and is_list(schema.field(name).type) for name in (_CLASSES, _PROBA))


def _schema_of(path: FilePath) -> Any:
    """The schema of a file, if it has the columns of lists."""
    with named(path), open_parquet(path) as parquet:
        schema = parquet.schema
        is_type = pyarrow().types
        for name in (_CLASSES, _PROBA):
            if name not in schema.names:
                raise ValueError(
                    f"there is no column {name!r}; lists need {_CLASSES!r}, {_PROBA!r} and 'label'"
                )
        for name in (_CLASSES, _PROBA):
            kind = schema.field(name).type
            if not is_list(kind):
                raise ValueError(f"column {name!r} holds {kind}, not lists")
        if not is_type.is_integer(schema.field(_CLASSES).type.value_type):
            raise ValueError(f"column {_CLASSES!r} must hold lists of class indices")
        return schema


def _names_of(path: FilePath, schema: Any) -> tuple[str, ...] | None:
    with named(path):
        return names_in_metadata(schema)


def _common_size(paths: Sequence[FilePath], schemas: Sequence[Any]) -> int:
    """The number of classes that the first file tells; others may tell nothing, but nothing else."""
    first, *others = map(_size_in_metadata, paths, schemas)
    if first is None:
        raise ValueError(f"{paths[0]}: does not say how many classes there are; pass n_classes")
    for path, size in zip(paths[1:], others, strict=True):
        if size not in (None, first):
            raise ValueError(f"{path}: has {size} classes but the files before have {first}")
    return first


def _size_in_metadata(path: FilePath, schema: Any) -> int | None:
    text = (schema.metadata or {}).get(_SIZE)
    if text is None:
        names = names_in_metadata(schema)
        return None if names is None else len(names)
    if not re.fullmatch(rb"\s*[0-9]{1,18}\s*", text):
        said = text.decode(errors="replace")
        raise ValueError(f"{path}: its metadata say n_classes={said!r}, which is no number; pass n_classes")
    return int(text)


def _flat(column: Any, name: str) -> tuple[Ints, NDArray[Any]]:
    """The lengths of lists, and what they hold, one after the other."""
    lengths = _values(pyarrow("compute").list_value_length(column), name).astype(np.int64)
    return lengths, _values(column.flatten(), name, lengths)


def _values(column: Any, name: str, lengths: Ints | None = None) -> NDArray[Any]:
    """A column, or what its lists of these lengths hold, as an array."""
    if column.null_count:
        row = int(np.argmax(np.asarray(column.is_null())))
        if lengths is not None:
            row = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
        raise ValueError(f"row {row}, column {name!r} holds a null; drop the row or give it a value")
    return np.asarray(column)
