"""Files of predictions read a chunk at a time: Parquet by batches, ``.npy`` by slices, others whole."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Ints
from polycal.io._arrow_columns import Table, pyarrow, read_table
from polycal.io._formats import format_of
from polycal.io._npz import read_npy
from polycal.io._raw import RawPredictions
from polycal.io._table import labels_from_codes, sort_columns
from polycal.storage.damage import readable

_PARQUET = "Parquet"
# Read ahead from every column of a Parquet file: small, because there may be thousands of columns.
_BUFFER = 1 << 16
# Other formats are read whole: their files must be smaller than the memory, by what unpacking and checking take.
_WHOLE_SHARE = 4


class ChunkReader(ABC):
    """One file, as unchecked chunks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def first(self) -> RawPredictions | None:
        """Something of the file that shows its classes; None if it has no row."""

    @abstractmethod
    def chunks(self, n_rows: int) -> Iterator[tuple[int, RawPredictions]]:
        """All rows, as (number of the first row, at most ``n_rows`` rows)."""


class NpyReader(ChunkReader):
    """A mapped array, read by slices. Mapped anew for each, because pages seen count as memory until unmapped."""

    def first(self) -> RawPredictions | None:
        """One row."""
        raw = self._slice(0, 1)
        return raw if raw.proba.shape[0] else None

    def chunks(self, n_rows: int) -> Iterator[tuple[int, RawPredictions]]:
        """Slices."""
        for start in range(0, int(read_npy(self.path, 0).proba.shape[0]), n_rows):
            yield start, self._slice(start, start + n_rows)

    def _slice(self, start: int, stop: int) -> RawPredictions:
        raw = read_npy(self.path, 0)

        def part(array: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if array is None else np.array(array[start:stop])

        return RawPredictions(
            np.array(raw.proba[start:stop]),
            labels=part(raw.labels),
            sample_weight=part(raw.sample_weight),
            class_names=raw.class_names,
        )


class WholeReader(ChunkReader):
    """A file of a format that is read whole."""

    def __init__(self, path: Path, memory: int) -> None:
        super().__init__(path)
        size = path.stat().st_size
        if size * _WHOLE_SHARE > memory:
            raise ValueError(
                f"{path.suffix} files are read whole, and {size:,} bytes are too many for a memory of {memory:,}; "
                "write Parquet or .npy instead"
            )
        self._max_bytes = memory // 2

    def first(self) -> RawPredictions:
        """All rows."""
        return format_of(self.path).read(self.path, self._max_bytes)

    def chunks(self, n_rows: int) -> Iterator[tuple[int, RawPredictions]]:
        """All rows, whatever ``n_rows``."""
        del n_rows
        yield 0, self.first()


@dataclass(frozen=True)
class LabelCode:
    """Positions of label values among the classes, decided by all values that a file has."""

    positions: dict[Any, int]

    def encode(self, column: Any) -> Ints:
        """A column of labels as positions."""
        encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        known = np.array([self.positions.get(v, 0) for v in encoded.dictionary.to_pylist()], dtype=np.int64)
        codes: Ints = known[np.asarray(encoded.indices)]
        return codes


class ParquetReader(ChunkReader):
    """A Parquet file, read by batches, without ever holding a whole group of rows."""

    def first(self) -> RawPredictions | None:
        """One row."""
        return next((raw for _, raw in self._batches(1)), None)

    def chunks(self, n_rows: int) -> Iterator[tuple[int, RawPredictions]]:
        """Batches."""
        code = self._label_code()
        start = 0
        for batch, raw in self._batches(n_rows):
            labels = None if code is None else code.encode(batch.column("label"))
            yield (
                start,
                RawPredictions(
                    raw.proba,
                    labels=labels,
                    sample_weight=raw.sample_weight,
                    class_names=raw.class_names,
                    evaluation=raw.evaluation,
                ),
            )
            start += batch.num_rows

    def _batches(self, n_rows: int) -> Iterator[tuple[Any, RawPredictions]]:
        """Batches as they are, and their columns but the labels."""
        for batch in self._read(n_rows, None):
            others = [name for name in batch.schema.names if name != "label"]
            yield batch, read_table(_one_batch(batch.select(others)), _no_limit())

    def _label_code(self) -> LabelCode | None:
        """What the labels mean: names or positions, which only all of them together can tell."""
        with _open_parquet(self.path) as parquet:
            columns = sort_columns(parquet.schema_arrow.names)
        if "label" not in columns.special:
            return None
        values: dict[Any, None] = {}
        for batch in self._read(1 << 20, ["label"]):
            column = batch.column("label")
            if column.null_count:
                row = int(np.argmax(np.asarray(column.is_null())))
                raise ValueError(f"row {row}, column 'label' is null; drop the row or give it a value")
            values.update(dict.fromkeys(column.unique().to_pylist()))
        first = self.first()
        classes = columns.classes if first is None else first.class_names or columns.classes
        codes = labels_from_codes(np.arange(len(values)), list(values), classes)
        return LabelCode(dict(zip(values, codes.tolist(), strict=True)))

    def _read(self, n_rows: int, columns: Sequence[str] | None) -> Iterator[Any]:
        seen = 0
        with _open_parquet(self.path) as parquet:
            with readable(_PARQUET):
                for batch in parquet.iter_batches(batch_size=n_rows, columns=columns):
                    seen += batch.num_rows
                    if batch.num_rows:
                        yield batch
            announced = parquet.metadata.num_rows
        if seen != announced:
            raise ValueError(
                f"the file is truncated or corrupt (it announces {announced} rows and holds {seen})"
            )


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    """An open Parquet file."""
    with pyarrow().OSFile(str(path), "rb") as file:
        with readable(_PARQUET):
            parquet = pyarrow("parquet").ParquetFile(
                file, page_checksum_verification=True, buffer_size=_BUFFER, pre_buffer=False
            )
        yield parquet


def reader_of(path: Path, memory: int) -> ChunkReader:
    """How a file is read, by its suffix."""
    makers: dict[str, Callable[[Path], ChunkReader]] = {".parquet": ParquetReader, ".npy": NpyReader}
    suffix = path.suffix.lower()
    if suffix in makers:
        return makers[suffix](path)
    format_of(path)
    return WholeReader(path, memory)


def _one_batch(batch: Any) -> Table:
    return Table(batch.schema, batch.num_rows, lambda columns: iter([batch.select(list(columns))]))


def _no_limit() -> int:
    """A batch is small already: it was unpacked."""
    return 1 << 62
