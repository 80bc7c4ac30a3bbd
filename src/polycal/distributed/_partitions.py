"""What may be distributed: files, Dask data frames and Dask arrays, as partitions of unchecked rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from polycal._typing import Bools
from polycal._validation import check_choice
from polycal.distributed._dask import dask
from polycal.io.chunks import Chunk, PredictionFiles, opened_predictions
from polycal.io.columns import flags_from_codes
from polycal.io.layout import Columns, Layout, sort_columns
from polycal.io.memory import parse_memory
from polycal.io.paths import FilePath
from polycal.io.reader import PARTS, Part, RawPredictions, UnreadChunk, rows_of_part
from polycal.sample import Remainder
from polycal.storage.damage import named, rows_from


class Partition(ABC):
    """Rows that one task works on."""

    @abstractmethod
    def title(self) -> str:
        """What to call it in an error."""

    @abstractmethod
    def unread(self, files: PredictionFiles) -> Iterator[UnreadChunk]:
        """Its rows, to be read and checked: (number of the first row, what reads them)."""

    def naming(self) -> AbstractContextManager[None]:
        """Errors inside name the partition."""
        return named(self.title())

    def naming_rows(self, start: int) -> AbstractContextManager[None]:
        """Errors inside, which count the rows of one chunk, name the first of them."""
        return rows_from(start)

    @abstractmethod
    def n_rows(self, files: PredictionFiles) -> int:
        """How many rows it has."""

    def chunks(self, files: PredictionFiles, first_row: int) -> Iterator[Chunk]:
        """Its rows, checked, with their numbers in the whole data, of which the first is given."""
        with self.naming():
            for start, read in self.unread(files):
                with self.naming_rows(start):
                    chunk = files.checked(read(), first_row)
                if chunk is not None:
                    first_row += chunk.sample.n_samples
                    yield chunk


@dataclass(frozen=True)
class FilePartition(Partition):
    """A file that every worker can read."""

    path: FilePath

    def title(self) -> str:
        """The path or URL."""
        return str(self.path)

    def unread(self, files: PredictionFiles) -> Iterator[UnreadChunk]:
        """The file in chunks."""
        return files.reader(self.path).unread_chunks(files.chunk_rows)

    def chunks(self, files: PredictionFiles, first_row: int) -> Iterator[Chunk]:
        """Its rows, of either form, checked."""
        with self.naming():
            yield from files.file_chunks(self.path, first_row)

    def n_rows(self, files: PredictionFiles) -> int:
        """As the file says."""
        return files.n_rows(self.path)


@dataclass(frozen=True, eq=False)
class ArrayPartition(Partition):
    """Arrays in the memory of a worker."""

    number: int
    raw: RawPredictions

    def title(self) -> str:
        """Its number."""
        return f"partition {self.number}"

    def unread(self, files: PredictionFiles) -> Iterator[UnreadChunk]:  # noqa: ARG002 - it is there
        """All rows at once."""
        yield 0, lambda: self.raw

    def n_rows(self, files: PredictionFiles) -> int:
        """The length of its arrays, or the number of their rows that are of the chosen part."""
        n_rows = self.raw.n_rows
        if files.part == "all":
            return n_rows
        with self.naming():
            return int(np.count_nonzero(rows_of_part(self.raw.evaluation, files.part, n_rows)))

    def naming_rows(self, start: int) -> AbstractContextManager[None]:  # noqa: ARG002 - there is one chunk
        """Nothing to add: the first row of the chunk is that of the partition."""
        return nullcontext()


@dataclass(frozen=True, eq=False)
class Partitions:
    """Delayed partitions, and what all rows have in common."""

    files: PredictionFiles
    delayed: list[Any]


def partitions_of(
    data: Any,
    memory: int | str,
    part: Part,
    class_names: Any,
    remainder: Remainder = "unknown",
    layout: Layout | None = None,
) -> Partitions:
    """Partitions of files, of a Dask data frame, or of (labels, probabilities) as Dask arrays."""
    check_choice(part, "part", PARTS)
    layout = layout or Layout()
    if is_frame(data):
        return _frame_partitions(data, memory, part, class_names, layout)
    if is_arrays(data):
        return _array_partitions(data, memory, part, class_names, layout)
    if isinstance(data, str | PathLike | list | PredictionFiles):
        files = opened_predictions(data, memory, part, remainder, layout)
        # Workers may run in other folders.
        files = replace(files, paths=tuple(path.absolute() for path in files.paths))
        make = dask().delayed(FilePartition, pure=False)
        return Partitions(files, [make(path) for path in files.paths])
    raise TypeError(
        "data must be files, a Dask data frame with a column 'label', or a tuple of Dask arrays "
        f"(y_true, y_proba) or (y_true, y_proba, sample_weight); got {type(data).__name__}."
    )


def is_frame(data: Any) -> bool:
    """Tell a Dask data frame."""
    return hasattr(data, "to_delayed") and hasattr(data, "columns")


def is_arrays(data: Any) -> bool:
    """Tell (labels, probabilities) or (labels, probabilities, weights), the second a Dask array."""
    return isinstance(data, tuple) and len(data) in {2, 3} and hasattr(data[1], "to_delayed")


def frame_columns(frame: Any, class_names: Any, layout: Layout | None = None) -> Columns:
    """The columns of a data frame by their role; the classes are these, or all that are not special."""
    named_classes = None if class_names is None else list(map(str, class_names))
    return sort_columns(list(map(str, frame.columns)), layout, named_classes)


def _frame_partitions(
    frame: Any, memory: int | str, part: Part, class_names: Any, layout: Layout
) -> Partitions:
    columns = frame_columns(frame, class_names, layout)
    files = PredictionFiles(
        (), len(columns.classes), columns.class_names, parse_memory(memory), part, layout, columns.roles
    )
    make = dask().delayed(frame_partition, pure=False)
    pieces = enumerate(frame.to_delayed())
    return Partitions(files, [make(number, piece, columns, layout) for number, piece in pieces])


def frame_partition(number: int, frame: Any, columns: Columns, layout: Layout) -> ArrayPartition:
    """One pandas data frame as a partition. Whole numbers are positions of classes, text is names."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)

    def column(name: str | None) -> Any:
        return None if name is None else frame[name].to_numpy()

    with named(f"partition {number}"):
        evaluation = None if columns.evaluation is None else _flags(frame[columns.evaluation])
        others = {name: _other(frame[name]) for name in columns.others}
    proba = frame[list(columns.data)].to_numpy()
    return ArrayPartition(
        number,
        RawPredictions(
            proba if len(columns.data) > 1 else proba[:, 0],
            from_logits=layout.from_logits,
            labels=column(columns.label),
            sample_weight=column(columns.weight),
            class_names=columns.class_names,
            evaluation=evaluation,
            columns=others,
        ),
    )


def _other(column: Any) -> Any:
    """A column that is read along: float64 if it holds numbers, else text; a gap is NaN or None."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return (
        column.astype(object)
        .where(column.notna(), None)
        .map(lambda v: None if v is None else str(v))
        .to_numpy()
    )


def _flags(column: Any) -> Bools:
    """A column of true and false, in the spellings that files may have; a gap is neither."""
    codes, values = column.factorize(use_na_sentinel=False)
    return flags_from_codes(codes, values.tolist())


def _array_partitions(
    arrays: tuple[Any, ...], memory: int | str, part: Part, class_names: Any, layout: Layout
) -> Partitions:
    if replace(layout, classes=None, from_logits=False, normalize=False) != Layout():
        raise ValueError("arrays have no columns: label, weight, drop, columns and format are for files.")
    class_names = layout.classes if class_names is None else class_names
    if part != "all":
        raise ValueError(f"arrays do not mark their parts, so part={part!r} cannot be read.")
    proba, sides = aligned_arrays(arrays)
    n_classes = int(proba.shape[1])
    names = None if class_names is None else tuple(map(str, class_names))
    if names is not None and len(names) != n_classes:
        raise ValueError(
            f"class_names has {len(names)} names but y_proba has {n_classes} columns; give one per class."
        )
    files = PredictionFiles((), n_classes, names, parse_memory(memory), "all", layout)
    make = dask().delayed(array_partition, pure=False)
    blocks = proba.to_delayed()[:, 0].tolist()
    pieces = zip(blocks, *(side.to_delayed().tolist() for side in sides), strict=True)
    logits = layout.from_logits
    return Partitions(
        files, [make(number, *piece, from_logits=logits) for number, piece in enumerate(pieces)]
    )


def aligned_arrays(arrays: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The probabilities with all classes in each block; labels, and weights if any, cut as their rows are."""
    proba = arrays[1].rechunk({1: -1})
    return proba, [_like_rows(array, proba) for array in (arrays[0], *arrays[2:])]


def array_partition(
    number: int, proba: Any, labels: Any, weight: Any = None, *, from_logits: bool = False
) -> ArrayPartition:
    """One block of the arrays as a partition."""
    return ArrayPartition(number, RawPredictions(proba, from_logits, labels=labels, sample_weight=weight))


def _like_rows(array: Any, proba: Any) -> Any:
    """An array cut as the rows of the probabilities are."""
    if not hasattr(array, "to_delayed"):
        return dask("array").from_array(np.asarray(array), chunks=(proba.chunks[0],))
    if array.shape[0] == proba.shape[0]:
        return array.rechunk((proba.chunks[0],))
    if array.numblocks[0] == proba.numblocks[0] and np.isnan(array.shape[0]):
        # Sizes that are not known yet are compared when they are.
        return array
    raise ValueError(
        f"y_proba has {proba.shape[0]} rows, another array {array.shape[0]}; give one entry per row."
    )
