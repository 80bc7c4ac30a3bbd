"""Files of predictions, each counted once: the monitor in a file, with the checksums of all that it has counted.

A file is counted as a whole or not at all: its rows are taken in, its checksum is noted, and then the monitor's own
file is replaced in one step. Whatever stops the process before that step leaves the file before it, which knows
nothing of these rows; whatever stops it after finds them counted.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from polycal.io.chunks import Chunk, PredictionFiles, opened_predictions
from polycal.io.layout import Layout
from polycal.io.objects import load
from polycal.io.paths import FilePath, find_files
from polycal.io.predictions import FORMATS
from polycal.io.reader import Part
from polycal.monitoring.monitor import Monitor
from polycal.storage.damage import named

# Checksums: so many hexadecimal digits tell more files apart than there are.
_DIGITS = 32
_BLOCK = 1 << 20


@dataclass
class Ledger:
    """A monitor that lives in a file.

    Attributes
    ----------
    path : path
        The monitor's own file.
    monitor : Monitor
        As it is in the file, if that is there.
    memory, part, layout
        How files are read, as for `open_predictions`.
    """

    path: Path
    monitor: Monitor
    memory: int | str
    part: Part
    layout: Layout

    def count(self, path: FilePath) -> Literal["counted", "known"]:
        """Take in a file, unless its contents were counted before; the monitor's file is then replaced."""
        digest, name = contents(path), str(path)
        if digest in self.monitor.counted:
            return "known"
        if name in self.monitor.counted.values():
            raise ValueError(
                f"{name}: has changed since it was counted, and its rows would count twice; put new rows in a new file"
            )
        try:
            self._take_in(opened_predictions([path], self.memory, self.part, layout=self.layout), path)  # type: ignore[list-item]
        except BaseException:
            # Part of its rows may have been taken in.
            self.monitor = self._reopened()
            raise
        self.monitor.counted[digest] = name
        self.monitor.save(self.path)
        return "counted"

    def _take_in(self, files: PredictionFiles, path: FilePath) -> None:
        """Take in the rows of a file; what goes wrong in reading names it already."""
        with named(path):
            check_all_classes(files)
        for chunk in files:
            with named(path):
                take_in(self.monitor, [chunk])

    def _reopened(self) -> Monitor:
        return read_monitor(self.path) if self.path.exists() else self.monitor.anew()


def check_all_classes(files: PredictionFiles) -> PredictionFiles:
    """Refuse files that list some classes of each row."""
    if files.is_listed:
        raise TypeError("lists only some classes of each row, but a monitor needs the probabilities of all")
    return files


def take_in(monitor: Monitor, chunks: Iterable[Chunk]) -> None:
    """Take in rows that were read, with the columns that were read along."""
    for chunk in chunks:
        sample = chunk.sample
        monitor.update(
            sample.labels, sample.proba, features=chunk.columns or None, class_names=sample.class_names
        )


def read_monitor(path: Path) -> Monitor:
    """The monitor in a file."""
    monitor = load(path)
    if not isinstance(monitor, Monitor):
        raise TypeError(f"{path} holds a {type(monitor).__name__}, not a monitor")
    return monitor


def files_of(given: list[str]) -> tuple[FilePath, ...]:
    """The files that paths, folders, patterns and URLs stand for."""
    return find_files(given, tuple(FORMATS))


def contents(path: FilePath) -> str:
    """A checksum of the bytes of a file: what is counted is known by it, not by its name."""
    total = hashlib.sha256()
    with _opened(path) as file:
        while block := file.read(_BLOCK):
            total.update(block)
    return total.hexdigest()[:_DIGITS]


@contextmanager
def _opened(path: FilePath) -> Iterator[Any]:
    with path.open("rb") if isinstance(path, Path) else path.open() as file:
        yield file


def with_columns(layout: Layout, columns: list[str]) -> Layout:
    """A layout by which these columns are read along."""
    return replace(layout, columns=(*layout.columns, *columns))
