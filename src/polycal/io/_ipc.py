"""What a Feather (Arrow IPC) file claims to hold, from its metadata alone.

PyArrow tells the size of a batch only after unpacking it, and crashes when asked to count the rows of a damaged
file. So the few fields needed are read here: https://arrow.apache.org/docs/format/Columnar.html, whose metadata
are FlatBuffers. Whatever is out of place makes `struct` or NumPy raise; the numbers are claims, not yet facts.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polycal._typing import Ints

_MAGIC = b"ARROW1"
_DICTIONARY, _RECORDS = 2, 3  # kinds of message
_CONTINUATION = 0xFFFFFFFF


def read_claim(path: Path) -> tuple[int, int]:
    """Return the number of rows, and of bytes that all columns take when unpacked."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        n_rows = n_bytes = 0
        for message, body in _messages(data):
            kind, header = _get(data, "B", message, 1), _table(data, message, 2)
            batch = _table(data, header, 1) if kind == _DICTIONARY else header
            n_rows += _get(data, "q", batch, 0) if kind == _RECORDS else 0
            n_bytes += _unpacked(data, batch, body)
        return n_rows, n_bytes


def _messages(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield the position of each batch's metadata and of its body, as the footer lists them."""
    if data[-len(_MAGIC) :] != _MAGIC:
        raise ValueError("the last bytes are not those of an Arrow file")
    end = len(data) - len(_MAGIC) - 4
    footer = _root(data, end - _read(data, "i", end))
    for field in (2, 3):
        # Of each block: where it is, the length of its metadata (padded to eight bytes), that of its body.
        for start, length, _ in _vector(data, footer, field, width=3):
            prefix = 8 if _read(data, "I", int(start)) == _CONTINUATION else 4
            yield _root(data, int(start) + prefix), int(start) + int(length & 0x7FFFFFFF)


def _unpacked(data: mmap.mmap, batch: int, body: int) -> int:
    """Sum the sizes of a batch's buffers; a compressed one begins with its size, or -1 if it was not worth it."""
    buffers = _vector(data, batch, 2, width=2)
    if not _field(data, batch, 3):
        return int(buffers[:, 1].sum())
    return sum(max(_read(data, "q", body + int(start)), 0) for start, length in buffers if length >= 8)


def _read(data: mmap.mmap, code: str, at: int) -> int:
    """Read one little-endian number."""
    return int(struct.unpack_from(f"<{code}", data, at)[0])


def _root(data: mmap.mmap, at: int) -> int:
    """Follow a reference: to the root of a FlatBuffer, a table or a vector."""
    return at + _read(data, "I", at)


def _field(data: mmap.mmap, table: int, i: int) -> int:
    """Find a table's field by the list of offsets it shares with others of its kind; 0 means it is left out."""
    offsets = table - _read(data, "i", table)
    offset = _read(data, "H", offsets + 4 + 2 * i) if 4 + 2 * i < _read(data, "H", offsets) else 0
    return table + offset if offset else 0


def _get(data: mmap.mmap, code: str, table: int, i: int) -> int:
    """Read a table's number, 0 if it is left out."""
    at = _field(data, table, i)
    return _read(data, code, at) if at else 0


def _table(data: mmap.mmap, table: int, i: int) -> int:
    """Find a table inside a table."""
    at = _field(data, table, i)
    if not at:
        raise ValueError("a batch has no header")
    return _root(data, at)


def _vector(data: mmap.mmap, table: int, i: int, *, width: int) -> Ints:
    """Read a vector of structures of 64-bit numbers."""
    at = _field(data, table, i)
    if not at:
        return np.empty((0, width), dtype=np.int64)
    start = _root(data, at)
    numbers: np.ndarray[Any, Any] = np.frombuffer(data, "<i8", _read(data, "I", start) * width, start + 4)
    # A copy, since the file cannot be closed while there is a view of it.
    return numbers.reshape(-1, width).astype(np.int64)
