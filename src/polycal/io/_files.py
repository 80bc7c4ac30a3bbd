"""What all kinds of opened files have in common: places, classes, a bound on memory, and rows with their numbers."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from polycal._typing import Ints
from polycal.io._places import Place
from polycal.storage.damage import named

DEFAULT_MEMORY = 1 << 30
# What the interpreter, NumPy, SciPy, the compiler and PyArrow take by themselves.
_BASE_MEMORY = 384 << 20
# The shares of the rest that a chunk may take, and what is held of a file elsewhere.
_CHUNK_SHARE, _REMOTE_SHARE = 4, 8
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)(?:i?B)?\s*", flags=re.IGNORECASE)

AnySample = TypeVar("AnySample")
AnyChunk = TypeVar("AnyChunk")


@dataclass(frozen=True, eq=False)
class NumberedRows(Generic[AnySample]):
    """Validated rows, and their places in the whole data."""

    sample: AnySample
    rows: Ints


@dataclass(frozen=True, eq=False, repr=False)
class OpenedFiles(ABC, Generic[AnyChunk]):
    """Files of the same classes. Iterate, as often as needed, to get them chunk by chunk.

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
    """

    paths: tuple[Place, ...]
    n_classes: int
    class_names: tuple[str, ...] | None
    memory: int

    @property
    def free_memory(self) -> int:
        """Bytes left for data and results."""
        return free_memory(self.memory)

    @property
    def chunk_memory(self) -> int:
        """Bytes that a chunk may take while it is read, checked and worked on."""
        return self.free_memory // _CHUNK_SHARE

    @cached_property
    def first_rows(self) -> tuple[int, ...]:
        """The number of each file's first row: rows are counted through all files, in order."""
        counts = [self.n_rows(path) for path in self.paths]
        return tuple(int(n) for n in np.cumsum([0, *counts[:-1]]))

    def __iter__(self) -> Iterator[AnyChunk]:
        for path, first in zip(self.paths, self.first_rows, strict=True):
            with named(path):
                yield from self.file_chunks(path, first)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.paths)} files, n_classes={self.n_classes})"

    @abstractmethod
    def n_rows(self, path: Place) -> int:
        """How many rows a file has."""

    @abstractmethod
    def file_chunks(self, path: Place, place: int) -> Iterator[AnyChunk]:
        """The chunks of one file whose first row has this number."""


def free_memory(memory: int) -> int:
    """Bytes left for data and results."""
    return memory - _BASE_MEMORY


def remote_room(memory: int) -> int:
    """Bytes that may be held of a file that is not on this machine."""
    return free_memory(memory) // _REMOTE_SHARE


def parse_memory(memory: int | str) -> int:
    """Bytes, from a number or a text such as "1GiB"; at least 512 MiB."""
    if isinstance(memory, str):
        match = _SIZE.fullmatch(memory)
        if match is None:
            raise ValueError(f"memory must be a size such as '1GiB' or '512MiB'; got {memory!r}.")
        memory = int(float(match[1]) * 2 ** _UNITS[match[2].upper()])
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 512 << 20:
        raise ValueError(f"memory must be at least '512MiB'; got {memory!r}.")
    return memory
