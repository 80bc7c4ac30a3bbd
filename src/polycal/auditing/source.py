"""Where rows come from: memory or files here, Dask partitions in `polycal.distributed`. One audit for all."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from polycal._threads import thread_count
from polycal.auditing.passes import AnyPass, show
from polycal.io.chunks import Chunk, PredictionFiles
from polycal.sample import Sample

# Up to so many probabilities all rows are held and everything is exact; few classes count as `_FEW_CLASSES`, since rows
# have a cost of their own.
HELD_CELLS = 1 << 22
_FEW_CLASSES = 20
# Rows of memory that a thread works on at once.
_THREAD_ROWS, _THREAD_CELLS = 1 << 14, 1 << 20


def held_rows(n_classes: int) -> int:
    """How many rows of so many classes are held; beyond, the audit is one of sums, cells and a sketch."""
    return HELD_CELLS // max(n_classes, _FEW_CLASSES)


class Source(ABC):
    """Rows of the same classes, in an order: they can be gathered if they are few, or shown to a pass."""

    n_classes: int
    class_names: tuple[str, ...] | None
    # What may be used beyond the interpreter, in bytes; None where the rows are in memory already.
    free_memory: int | None = None

    @abstractmethod
    def gather(self) -> Sample | None:
        """All rows, in order, if there are no more than `held_rows`."""

    @abstractmethod
    def run(self, task: AnyPass, n_jobs: int | None) -> AnyPass:
        """Show all rows, with their numbers, to a pass."""

    def n_threads(self, bytes_each: int, n_jobs: int | None) -> int:
        """As many threads as asked for, if a quarter of the memory has room for what all but one need."""
        asked = thread_count(n_jobs)
        return (
            asked if self.free_memory is None else min(asked, 1 + self.free_memory // 4 // max(1, bytes_each))
        )


@dataclass(eq=False)
class MemorySource(Source):
    """Rows in memory."""

    sample: Sample

    def __post_init__(self) -> None:
        self.n_classes, self.class_names = self.sample.n_classes, self.sample.class_names

    def gather(self) -> Sample | None:
        """The sample itself, if it is small enough."""
        return self.sample if self.sample.n_samples <= held_rows(self.n_classes) else None

    def run(self, task: AnyPass, n_jobs: int | None) -> AnyPass:
        """Slices of the rows, on threads."""
        return show(task, self._slices(), thread_count(n_jobs))

    def _slices(self) -> Iterator[Callable[[], Chunk]]:
        step = max(1, min(_THREAD_ROWS, _THREAD_CELLS // self.n_classes))
        for start in range(0, self.sample.n_samples, step):
            yield partial(self._slice, start, min(start + step, self.sample.n_samples))

    def _slice(self, start: int, stop: int) -> Chunk:
        return Chunk(self.sample.take(slice(start, stop)), np.arange(start, stop))


@dataclass(eq=False)
class FileSource(Source):
    """Rows in files."""

    files: PredictionFiles

    def __post_init__(self) -> None:
        self.n_classes, self.class_names = self.files.n_classes, self.files.class_names
        self.free_memory = self.files.free_memory

    def gather(self) -> Sample | None:
        """All files, one after the other, until there are too many rows."""
        return gathered(self.files.samples(), self.n_classes)

    def run(self, task: AnyPass, n_jobs: int | None) -> AnyPass:
        """Chunks of the files, on threads."""
        n_threads = self.n_threads(task.bytes_each, n_jobs)
        return show(task, self.files.unread_chunks(n_threads), n_threads)


def gathered(parts: Iterable[Sample], n_classes: int) -> Sample | None:
    """The rows of several samples of the same classes, one after the other; None if they are too many to be held."""
    most, kept, n_rows = held_rows(n_classes), [], 0
    for part in parts:
        kept.append(part)
        n_rows += part.n_samples
        if n_rows > most:
            return None
    if not kept:
        raise ValueError("there is no row to audit.")
    return joined(kept)


def joined(parts: list[Sample]) -> Sample:
    """Samples of the same classes as one; it has weights if any of them has."""
    if len(parts) == 1:
        return parts[0]
    weights = None
    if any(part.sample_weight is not None for part in parts):
        weights = np.concatenate(
            [np.ones(p.n_samples) if p.sample_weight is None else p.sample_weight for p in parts]
        )
    proba = np.concatenate([part.proba for part in parts])
    names = next((part.class_names for part in parts if part.class_names is not None), None)
    return Sample(proba, np.concatenate([part.labels for part in parts]), weights, names)
