"""Text files that may be compressed by gzip: read with a bound on what they unpack to."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from polycal.storage.damage import check_claim, readable

_MARK = b"\x1f\x8b"
_BUFFER = 1 << 16


class _Bounded(io.RawIOBase):
    """What a file unpacks to, until that is too much: a few bytes can stand for billions."""

    def __init__(self, file: IO[bytes], max_bytes: int) -> None:
        self._file, self._left, self._max = file, max_bytes, max_bytes

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        with readable("gzip"):
            block = self._file.read(len(buffer))
        self._left -= len(block)
        if self._left < 0:
            check_claim(self._max - self._left, self._max)
        buffer[: len(block)] = block
        return len(block)


@contextmanager
def unpacked(file: Any, max_bytes: int) -> Iterator[io.BufferedReader]:
    """A file, unpacked if it is compressed, whatever its suffix says."""
    start = file.read(len(_MARK))
    file.seek(0)
    source: Any = gzip.GzipFile(fileobj=file) if start == _MARK else file
    yield io.BufferedReader(_Bounded(source, max_bytes), _BUFFER)


@contextmanager
def packed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """What compresses into a file on its way to this path, if the path ends in ``.gz``; the same bytes every time."""
    if path.suffix.lower() != ".gz":
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream:
        yield stream  # type: ignore[misc]  # all of a binary file that writers need
