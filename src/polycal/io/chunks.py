"""Predictions larger than the memory: files, folders and patterns of files, read chunk by chunk."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal import _typing
from polycal._validation import check_choice, check_chunk
from polycal.io._chunk_readers import reader_of
from polycal.io._files import DEFAULT_MEMORY, ROWS_PER_FILE, NumberedRows, OpenedFiles, parse_memory
from polycal.io._formats import FORMATS
from polycal.io._places import Place, find_files
from polycal.io._raw import Classes, RawPredictions, check_evaluation
from polycal.io._table import numbered
from polycal.io.predictions import Part
from polycal.sample import Remainder, Sample
from polycal.states.base import agree_names
from polycal.storage.damage import named

__all__ = ["DEFAULT_MEMORY", "Chunk", "PredictionFiles", "open_predictions", "parse_memory"]

# Bytes that a cell of a chunk takes while it is read, checked and worked on, with room to spare.
_BYTES_PER_CELL = 64
_MOST_ROWS = 1 << 16
# Of a chunk for one of several threads: few, so that all end at about the same time.
_THREAD_ROWS, _THREAD_CELLS = 1 << 14, 1 << 20


class Chunk(NumberedRows[Sample]):
    """Validated rows, and their places in the whole data."""


@dataclass(frozen=True, eq=False, repr=False)
class PredictionFiles(OpenedFiles[Chunk]):
    """Files of predictions with the same classes. Iterate, as often as needed, to get them as `Chunk`.

    Attributes
    ----------
    paths : tuple of path or URL
        The files, in order.
    n_classes : int
        Number of classes.
    class_names : tuple of str, or None
        Their names.
    memory : int
        Bytes that may be used in all.
    part : {"all", "calibration", "evaluation"}
        Which rows.
    """

    part: Part = "all"

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, at most."""
        room = self.chunk_memory // (_BYTES_PER_CELL * self.n_classes)
        return max(1, min(_MOST_ROWS, room))

    def thread_rows(self, n_threads: int) -> int:
        """Rows in a chunk, at most, where so many threads have one each."""
        cells = min(_THREAD_CELLS, self.chunk_memory // (_BYTES_PER_CELL * n_threads))
        return max(1, min(_THREAD_ROWS, self.chunk_rows, cells // self.n_classes))

    def file_chunks(self, path: Place, place: int) -> Iterator[Chunk]:
        """The chunks of one file whose first row has this number."""
        for start, read in reader_of(path, self.memory).unread_chunks(self.chunk_rows):
            chunk = self._made(read, start, place)
            if chunk is not None:
                yield chunk

    def unread_chunks(self, n_threads: int) -> Iterator[Callable[[], Chunk | None]]:
        """What makes the chunks of all files, on so many threads at once: reading and checking are left to them."""
        n_rows = self.thread_rows(n_threads)
        for number, path in enumerate(self.paths):
            with named(path):
                for start, read in reader_of(path, self.memory).unread_chunks(n_rows):
                    yield partial(self._made, read, start, number * ROWS_PER_FILE, path)

    def _made(
        self, read: Callable[[], RawPredictions], start: int, place: int, path: Place | None = None
    ) -> Chunk | None:
        """A chunk, read and checked; errors name its first row, and the file if it is given."""
        with nullcontext() if path is None else named(path), named(f"rows from {start}"):
            return self.checked(read(), place + start)

    def checked(self, raw: RawPredictions, place: int) -> Chunk | None:
        """Pass rows, the first of them at this place, through the gate; None if there are none."""
        _agree(self, raw.classes)
        if raw.labels is None:
            raise ValueError("the file has no labels; audits need them")
        sample = check_chunk(
            raw.labels,
            raw.proba,
            sample_weight=raw.sample_weight,
            class_names=self.class_names,
            from_logits=raw.from_logits,
        )
        if sample is None:
            return None
        return self.selected(Chunk(sample, np.arange(place, place + sample.n_samples)), raw.evaluation)

    def selected(self, chunk: Chunk, evaluation: NDArray[Any] | None) -> Chunk | None:
        """The rows of the part that was asked for; None if there are none."""
        if self.part == "all":
            return chunk
        if evaluation is None:
            raise ValueError(
                f"the file does not mark its parts, so part={self.part!r} cannot be read; add a boolean array or "
                "column 'evaluation', true for the rows of the evaluation part"
            )
        check_evaluation(evaluation, chunk.sample.n_samples)
        chosen = evaluation if self.part == "evaluation" else ~evaluation
        return Chunk(chunk.sample.take(chosen), chunk.rows[chosen]) if chosen.any() else None


def open_predictions(
    path: _typing.Path | Sequence[_typing.Path],
    *,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    remainder: Remainder = "unknown",
) -> PredictionFiles:
    r"""Open predictions that may be larger than the memory, to be read in chunks.

    Parameters
    ----------
    path : str, path, or list of them
        Files, folders (all files of predictions in them, at any depth) and patterns such as ``day-*.parquet``, on this
        machine or behind a URL such as ``s3://bucket/logs/*.parquet``. For the formats see `read_predictions`; Parquet
        and ``.npy`` are read in chunks, other files whole, one at a time. Files and folders in a folder whose names
        start with ``.`` or ``_`` are left out, and linked folders are not followed; a file that is given twice, also
        by a link, is read once.
    memory : int or str, default "1GiB"
        What may be used in all, in bytes or as text such as "512MiB" or "2GiB". At least 512 MiB.
    part : {"all", "calibration", "evaluation"}
        Which rows, for files that mark the rows of their evaluation part.
    remainder : {"unknown", "spread", "anywhere", "class"}
        For files of lists of classes: what is said of the rest, see `smooth_calibration_error`.

    Returns
    -------
    PredictionFiles
        Of lists of classes (see `open_lists`) it is a `ListFiles`, whose chunks hold a `ListedSample`.

    Notes
    -----
    Opening looks at the classes of each file: all must have the same in the same order. A file that cannot be read is
    named in the error.

    URLs need ``pip install 'polycal[remote]'`` and the driver of their storage, such as ``s3fs`` for ``s3://``, which
    finds credentials as it always does. Of Parquet files only the parts that are needed travel, group of rows by group
    of rows. About an eighth of the memory beyond what the interpreter takes is held of them; of groups that take more,
    here or elsewhere, a few columns at a time are copied to a temporary file. Other formats are copied to a temporary
    file, one at a time, when they are opened and each time they are read; ``.npy`` must be on this machine.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polycal.io.chunks import open_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in "ab":
    ...         _ = Path(folder, f"{day}.csv").write_text("cat,dog,label\n0.9,0.1,cat\n0.25,0.75,dog\n")
    ...     files = open_predictions(folder)
    ...     files, sum(chunk.sample.n_samples for chunk in files)
    (PredictionFiles(2 files, n_classes=2), 4)
    """
    check_choice(part, "part", ("all", "calibration", "evaluation"))
    limit = parse_memory(memory)
    from polycal.io.lists import holds_lists, open_lists  # noqa: PLC0415 - they are opened as predictions too

    paths = find_files(path, tuple(FORMATS))
    if paths and holds_lists(paths[0]):
        return open_lists(path, memory=memory, part=part, remainder=remainder)
    opened: PredictionFiles | None = None
    for file in paths:
        with named(file):
            classes = reader_of(file, limit).classes()
            if classes is None:
                continue
            if opened is None:
                opened = PredictionFiles(paths, classes.n_classes, classes.names, limit, part)
            _agree(opened, classes)
            if opened.class_names is None:
                opened = replace(opened, class_names=classes.names)
    if opened is None:
        given = ", ".join(map(str, paths[:3])) or "the list of files"
        raise ValueError(f"{given}{', ...' if len(paths) > 3 else ''}: there is no row in these files")
    return opened


def opened_predictions(
    data: _typing.Path | Sequence[_typing.Path] | PredictionFiles, memory: int | str, part: Part
) -> PredictionFiles:
    """Files that may have been opened before; what was chosen then is not to be chosen otherwise now."""
    if not isinstance(data, PredictionFiles):
        return open_predictions(data, memory=memory, part=part)
    for name, now, default, before in (
        ("part", part, "all", data.part),
        ("memory", parse_memory(memory), parse_memory(DEFAULT_MEMORY), data.memory),
    ):
        if now not in {default, before}:
            raise ValueError(
                f"{name}={now!r} is given, but the files were opened with {before!r}; open them with it"
            )
    return data


def _agree(files: PredictionFiles, classes: Classes) -> None:
    """Refuse a file of other classes."""
    if classes.n_classes != files.n_classes:
        raise ValueError(f"has {classes.n_classes} classes but the files before have {files.n_classes}")
    before, now = files.class_names, classes.names
    given = before or now
    if given is not None and set(given) == set(numbered(files.n_classes)):
        # Columns that are numbered in another order; those in this order count as without names.
        before, now = before or numbered(files.n_classes), now or numbered(files.n_classes)
    if before is not None:
        agree_names(before, now)
