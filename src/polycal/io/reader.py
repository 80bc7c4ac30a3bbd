"""One file of predictions: what it holds before the gate, and what every format can be asked for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from polycal._text import advice
from polycal._typing import Bools
from polycal.io.layout import Layout, Roles
from polycal.io.paths import FilePath

Part = Literal["all", "calibration", "evaluation"]
PARTS = ("all", "calibration", "evaluation")
# A file that is read whole must be smaller than the memory by this factor.
_WHOLE_SHARE = 4


@dataclass(frozen=True)
class Classes:
    """The classes of a file: how many, and what they are called."""

    n_classes: int
    names: tuple[str, ...] | None
    roles: Roles = field(default_factory=Roles, compare=False)


def classes_of(shape: tuple[int, ...], names: tuple[str, ...] | None) -> Classes:
    """The classes of an array; numbers without columns are probabilities of the second of two."""
    if len(shape) not in {1, 2}:
        raise ValueError(f"the probabilities must have shape (n, k); got shape {shape}")
    return Classes(2 if len(shape) == 1 else int(shape[1]), names)


@dataclass(frozen=True, eq=False)
class RawPredictions:
    """The arrays of one file. Coming from a reader they are unchecked; the writers get them checked."""

    proba: NDArray[Any]
    from_logits: bool = False
    labels: NDArray[Any] | None = None
    sample_weight: NDArray[Any] | None = None
    class_names: tuple[str, ...] | None = None
    evaluation: NDArray[Any] | None = None
    # Columns that were asked for by name: numbers, or text, one for each row.
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    roles: Roles = field(default_factory=Roles)

    @property
    def classes(self) -> Classes:
        """The classes, one for each column."""
        return replace(classes_of(self.proba.shape, self.class_names), roles=self.roles)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.proba.shape[0]) if self.proba.ndim else 0

    def rows(self, rows: slice) -> "RawPredictions":
        """Some rows, as views."""
        return replace(
            self,
            proba=self.proba[rows],
            labels=self._cut("y_true", self.labels, rows),
            sample_weight=self._cut("sample_weight", self.sample_weight, rows),
            evaluation=self._cut("evaluation", self.evaluation, rows),
            columns={name: self._cut_column(name, column, rows) for name, column in self.columns.items()},
        )

    def _cut(self, name: str, array: NDArray[Any] | None, rows: slice) -> NDArray[Any] | None:
        return None if array is None else self._cut_column(name, array, rows)

    def _cut_column(self, name: str, array: NDArray[Any], rows: slice) -> NDArray[Any]:
        # Of chunks that are cut alike nobody could tell.
        if array.shape[:1] != self.proba.shape[:1]:
            raise ValueError(
                f"{name} has shape {array.shape} but y_proba has {self.n_rows} rows; give one entry per row."
            )
        return array[rows]


# The number of the first row, and what makes arrays of the rows: on any thread, also while others are being made.
UnreadChunk = tuple[int, Callable[[], RawPredictions]]


class Reader(ABC):
    """A file of one format. Nothing that it gives has been checked.

    Parameters
    ----------
    path : path or RemoteFile
        The file.
    max_bytes : int
        What it may unpack to, if it is read whole.
    room : int, optional
        What may be held of it while it is read in chunks.
    layout : Layout, optional
        What its columns are, as far as the file does not say so.
    """

    # Whether chunks are read one by one, and not cut from the whole file.
    in_chunks: ClassVar[bool] = False
    # Where labels are expected.
    labels: ClassVar[str] = "a column 'label'"

    def __init__(
        self, path: FilePath, max_bytes: int, room: int | None = None, layout: Layout | None = None
    ) -> None:
        self.path, self.max_bytes, self.room = path, max_bytes, room
        self.layout = layout or Layout()

    @abstractmethod
    def read(self) -> RawPredictions:
        """All of it."""

    @staticmethod
    @abstractmethod
    def write(path: Path, raw: RawPredictions) -> None:
        """Write a file of this format in one piece."""

    def classes(self) -> Classes | None:
        """The classes of the file; None if it has no row."""
        raw = self.read()
        return raw.classes if raw.n_rows else None

    def n_rows(self) -> int:
        """The number of rows."""
        return self._extent(marked=False)[0]

    def chosen(self, part: Part) -> Bools:
        """Which rows are of the calibration part, or of the evaluation part."""
        total, evaluation = self._extent(marked=True)
        return rows_of_part(evaluation, part, total)

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """All rows, at most ``n_rows`` in a chunk: parts of what is all in memory, so that threads can share it."""
        raw = self.read()
        for start in range(0, raw.n_rows, n_rows):
            yield start, partial(raw.rows, slice(start, start + n_rows))

    def _extent(self, *, marked: bool) -> tuple[int, NDArray[Any] | None]:  # noqa: ARG002 - formats that can, ask
        """The number of rows and, if that is asked for, the marks of the evaluation part."""
        raw = self.read()
        return raw.n_rows, raw.evaluation

    def check_memory(self, n_bytes: int) -> None:
        """Refuse a file that is read whole and would take more than this, by what unpacking and checking take."""
        size = self._size()
        if not self.in_chunks and size * _WHOLE_SHARE > n_bytes:
            raise self._too_large(f"{size:,} bytes", n_bytes)

    def _too_large(self, what: str, n_bytes: int) -> ValueError:
        return ValueError(
            f"{self.path.suffix} files are read whole, and {what} are too many for a memory of {n_bytes:,}; "
            "write Parquet or .npy instead"
        )

    def _size(self) -> int:
        return self.path.stat().st_size if isinstance(self.path, Path) else self.path.size()

    @contextmanager
    def _on_disk(self) -> Iterator[Path]:
        """The file, or a copy of one that is not on this machine."""
        if isinstance(self.path, Path):
            yield self.path
            return
        with self.path.copied(self.max_bytes) as copy:
            yield copy


def check_evaluation(evaluation: NDArray[Any], n_samples: int) -> None:
    """Refuse what does not mark rows."""
    if evaluation.dtype != np.bool_ or evaluation.shape != (n_samples,):
        raise ValueError(
            f"evaluation must be one boolean per row, {n_samples} in all; got shape {evaluation.shape} of "
            f"{evaluation.dtype}"
        )


def rows_of_part(evaluation: NDArray[Any] | None, part: Part, n_samples: int) -> Bools:
    """Which rows are of the calibration part, or of the evaluation part."""
    if evaluation is None:
        asked = advice(f"part={part!r}", f"its {part} part")
        raise ValueError(
            f"the file does not mark its parts, so {asked} cannot be read; add a boolean array or column "
            "'evaluation', true for the rows of the evaluation part (an .npy file cannot hold one)"
            f"{advice('', ', or give the parts as two files')}"
        )
    check_evaluation(evaluation, n_samples)
    chosen: Bools = evaluation if part == "evaluation" else ~evaluation
    return chosen
