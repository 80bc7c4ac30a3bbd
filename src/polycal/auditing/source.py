"""Where rows come from: memory or files here, Dask partitions in `polycal.distributed`. One audit for all."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from polycal._threads import cpu_count, thread_count
from polycal.auditing.passes import AnyPass, show
from polycal.features import joined_features
from polycal.io.chunks import Chunk, PredictionFiles
from polycal.listed import ListedSample
from polycal.listed import joined as joined_lists
from polycal.sample import Sample

# Up to so many probabilities all rows are held and everything is exact; few classes count as `_FEW_CLASSES`, since rows
# have a cost of their own. Of lists the entries count.
HELD_CELLS = 1 << 22
_FEW_CLASSES = 20
# Rows of memory that a thread works on at once.
_THREAD_ROWS, _THREAD_CELLS = 1 << 14, 1 << 20


def held_rows(n_classes: int) -> int:
    """How many rows of so many classes are held; beyond, the audit is one of sums, cells and a sketch."""
    return HELD_CELLS // max(n_classes, _FEW_CLASSES)


def sketch_rows(n_classes: int) -> int:
    """Rows that searches see: a third of those that would be held, which the least memory allowed has room for."""
    return max(1, held_rows(n_classes) // 3)


def n_cells(sample: Sample) -> int:
    """The probabilities of a sample, as they count for `HELD_CELLS`: of lists the entries."""
    fewest = _FEW_CLASSES * sample.n_samples
    return max(fewest, sample.indices.size if isinstance(sample, ListedSample) else sample.proba.size)


class Source(ABC):
    """Rows of the same classes, in an order: they can be gathered if they are few, or shown to a pass."""

    n_classes: int
    class_names: tuple[str, ...] | None
    # Whether rows list only some classes.
    is_listed: bool = False
    # What may be used beyond the interpreter, in bytes; None where the rows are in memory already.
    free_memory: int | None = None

    @abstractmethod
    def gather(self) -> Sample | None:
        """All rows, in order, if there are no more than `held_rows`."""

    @abstractmethod
    def run(self, task: AnyPass, n_jobs: int | None) -> AnyPass:
        """Show all rows, with their numbers, to a pass."""

    def n_threads(self, bytes_each: int, n_jobs: int | None) -> int:
        """As many threads as asked for, if a quarter of the memory has room for what all but one need.

        Where memory is bounded, no more than there are cores: each thread has a heap of its own, which only grows.
        """
        asked = thread_count(n_jobs)
        if self.free_memory is None:
            return asked
        return min(asked, cpu_count(), 1 + self.free_memory // 4 // max(1, bytes_each))


@dataclass(eq=False)
class MemorySource(Source):
    """Rows in memory."""

    sample: Sample

    def __post_init__(self) -> None:
        self.n_classes, self.class_names = self.sample.n_classes, self.sample.class_names
        self.is_listed = self.sample.is_listed

    def gather(self) -> Sample | None:
        """The sample itself, if it is small enough."""
        return self.sample if n_cells(self.sample) <= HELD_CELLS else None

    def run(self, task: AnyPass, n_jobs: int | None) -> AnyPass:
        """Slices of the rows, on threads."""
        return show(task, self._slices(), thread_count(n_jobs))

    def _slices(self) -> Iterator[Callable[[], Chunk]]:
        width = max(1, n_cells(self.sample) // self.sample.n_samples)
        step = max(1, min(_THREAD_ROWS, _THREAD_CELLS // width))
        for start in range(0, self.sample.n_samples, step):
            yield partial(self._slice, start, min(start + step, self.sample.n_samples))

    def _slice(self, start: int, stop: int) -> Chunk:
        return Chunk(self.sample.take(slice(start, stop)), np.arange(start, stop))


@dataclass(eq=False)
class FileSource(Source):
    """Rows in files."""

    files: PredictionFiles

    def __post_init__(self) -> None:
        self.n_classes, self.class_names = self.files.sample_classes
        self.is_listed = self.files.is_listed
        self.free_memory = self.files.free_memory

    def gather(self) -> Sample | None:
        """All files, one after the other, until there are too many rows."""
        return gathered(self.files.samples())

    def run(self, task: AnyPass, n_jobs: int | None) -> AnyPass:
        """Chunks of the files, on threads."""
        n_threads = self.n_threads(task.bytes_each, n_jobs)
        return show(task, self.files.unread_chunks(n_threads), n_threads)


def gathered(parts: Iterable[Sample]) -> Sample | None:
    """The rows of several samples of the same classes, one after the other; None if they are too many to be held."""
    kept: list[Sample] = []
    total = 0
    for part in parts:
        kept.append(part)
        total += n_cells(part)
        if total > HELD_CELLS:
            return None
    if not kept:
        raise ValueError("there is no row to audit.")
    return joined(kept)


def joined(parts: list[Sample]) -> Sample:
    """Samples of the same classes as one; it has weights if any of them has."""
    if len(parts) == 1:
        return parts[0]
    lists = [part for part in parts if isinstance(part, ListedSample)]
    if lists:
        return joined_lists(lists)
    weights = None
    if any(part.sample_weight is not None for part in parts):
        weights = np.concatenate(
            [np.ones(p.n_samples) if p.sample_weight is None else p.sample_weight for p in parts]
        )
    proba = np.concatenate([part.proba for part in parts])
    names = next((part.class_names for part in parts if part.class_names is not None), None)
    features = joined_features([part.features for part in parts])
    return Sample(proba, np.concatenate([part.labels for part in parts]), weights, names, features)
