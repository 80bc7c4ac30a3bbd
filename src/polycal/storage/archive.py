"""NumPy's own files read without trust: ``.npz`` archives and ``.npy`` arrays of plain numbers and text."""

import io
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polycal.storage.atomic import replacing
from polycal.storage.damage import check_claim, readable

_NPZ = "an .npz archive"
_NPY = "an .npy array"

# An .npy header may claim to be 4 GiB long; the headers of plain arrays are a few hundred bytes.
_MAX_HEADER = 1 << 14
# Version 3 exists for structured arrays, which are of no use here.
_HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(path: Path, wanted: Iterable[str] | None, max_bytes: int) -> dict[str, NDArray[Any]]:
    """Read those of the ``wanted`` arrays that an archive has (None: all); others are left compressed."""
    with _opened(path, max_bytes) as archive:
        stored = _members(archive)
        names = stored if wanted is None else [name for name in wanted if name in stored]
        return {name: _read_member(archive, stored[name]) for name in names}


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one archive, uncompressed: probabilities and weights hardly compress."""
    # Not by `savez`: that of NumPy 2.1 takes allow_pickle for the name of an array.
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write one ``.npy`` array."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


@dataclass(frozen=True)
class NpyFile:
    """An ``.npy`` file whose header agrees with its size.

    Its numbers are read, never mapped into memory: a map brings the process down if the file is cut meanwhile, and its
    pages count as memory until it is closed.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool
    offset: int

    def read(self) -> NDArray[Any]:
        """The whole array."""
        array = self._run(0, (math.prod(self.shape),))
        with readable(_NPY):
            return array.reshape(self.shape, order="F" if self.by_columns else "C")

    def rows(self, rows: slice) -> NDArray[Any]:
        """Consecutive rows."""
        start, stop, _ = rows.indices(self.shape[0])
        if not self.by_columns or len(self.shape) == 1:
            return self._run(start * math.prod(self.shape[1:]), (stop - start, *self.shape[1:]))
        firsts = range(start, math.prod(self.shape), self.shape[0])
        return np.stack([self._run(first, (stop - start,)) for first in firsts], axis=1)

    def _run(self, first: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Numbers that follow each other in the file."""
        with readable(_NPY):
            offset = self.offset + first * self.dtype.itemsize
            run: NDArray[Any] = np.fromfile(self.path, self.dtype, math.prod(shape), offset=offset)
            return run.reshape(shape)


def open_npy(path: Path) -> NpyFile:
    """Look at the header of an ``.npy`` file."""
    with path.open("rb") as file:
        size = path.stat().st_size
        with readable(_NPY):
            header = _read_header(file)
    _check_header(header, size - header.length, _NPY)
    return NpyFile(path, header.shape, header.dtype, header.by_columns, header.length)


def array_names(path: Path, max_bytes: int) -> tuple[str, ...]:
    """The names of an archive's arrays."""
    with _opened(path, max_bytes) as archive:
        return tuple(_members(archive))


def array_shapes(path: Path, max_bytes: int) -> dict[str, tuple[int, ...]]:
    """The shapes of an archive's arrays by their names, from their headers."""
    with _opened(path, max_bytes) as archive:
        return {name: _member_header(archive, member).shape for name, member in _members(archive).items()}


@contextmanager
def _opened(path: Path, max_bytes: int) -> Iterator[zipfile.ZipFile]:
    """An archive that does not claim too much."""
    with path.open("rb") as file:
        with readable(_NPZ):
            archive = zipfile.ZipFile(file)
        with archive:
            check_claim(sum(member.file_size for member in archive.infolist()), max_bytes)
            yield archive


def _members(archive: zipfile.ZipFile) -> dict[str, str]:
    """The members by the names of their arrays.

    A damaged list of members, in which an optional array may have vanished unseen, is refused.
    """
    members: dict[str, str] = {}
    for member in archive.namelist():
        name = member.removesuffix(".npy")
        if name in members:
            raise ValueError(f"the archive holds two arrays of the same name, {name!r}")
        members[name] = member
    with readable(_NPZ):
        for info in archive.infolist():
            # NumPy writes no comments: a wrong length of one swallows the members that follow.
            if info.comment:
                raise ValueError("a member has a comment")
            # Each name is stored twice, and opening compares the two.
            archive.open(info).close()
    return members


def _read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array, once its header is known to agree with the size of the member."""
    _member_header(archive, name)
    with readable(_NPZ), archive.open(name) as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
    return array


class _Header(NamedTuple):
    """What an array says of itself, and in how many bytes."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    length: int


def _member_header(archive: zipfile.ZipFile, name: str) -> _Header:
    with readable(_NPZ), archive.open(name) as member:
        header = _read_header(member)
    _check_header(header, archive.getinfo(name).file_size - header.length, f"{name} of {_NPZ}")
    return header


def _read_header(file: IO[bytes]) -> _Header:
    """Read the header from a bounded number of bytes."""
    start = io.BytesIO(file.read(_MAX_HEADER))
    version = npy.read_magic(start)
    if version not in _HEADER_READERS:
        raise ValueError(f"version {version} of the format is for structured arrays")
    return _Header(*_HEADER_READERS[version](start, max_header_size=_MAX_HEADER), start.tell())


def _check_header(header: _Header, n_bytes: int, what: str) -> None:
    """Refuse objects, and sizes that are not those of the data: both are a danger to load."""
    shape, dtype = header.shape, header.dtype
    if dtype.hasobject:
        raise ValueError(
            f"{what} holds Python objects (a pickle), which polycal never loads; save numbers or text"
        )
    if dtype.kind not in "biufU" or dtype.itemsize == 0:
        raise ValueError(f"{what} holds {dtype}; save plain numbers or text")
    claim = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or claim != n_bytes:
        raise ValueError(
            f"cannot be read as {what}: the file is truncated or corrupt "
            f"(its header claims shape {shape} of {dtype}, {claim:,} bytes, but {n_bytes:,} follow)"
        )
