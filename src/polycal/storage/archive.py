"""NumPy's own files read without trust: ``.npz`` archives and ``.npy`` arrays of plain numbers and text."""

import io
import math
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Literal

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
    with path.open("rb") as file:
        with readable(_NPZ):
            archive = zipfile.ZipFile(file)
        with archive:
            check_claim(sum(member.file_size for member in archive.infolist()), max_bytes)
            _check_names(archive)
            stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
            names = stored if wanted is None else [name for name in wanted if name in stored]
            return {name: _read_member(archive, stored[name]) for name in names}


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one archive, uncompressed: probabilities and weights hardly compress."""
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write one ``.npy`` array."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def map_npy(path: Path) -> NDArray[Any]:
    """Memory-map an ``.npy`` file whose header agrees with its size."""
    with path.open("rb") as file:
        size = path.stat().st_size
        with readable(_NPY):
            shape, dtype, offset = _read_header(file)
    _check_header(shape, dtype, size - offset, _NPY)
    with readable(_NPY):
        # An array without entries cannot be mapped.
        mode: Literal["r"] | None = None if 0 in shape else "r"
        array: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    return array


def read_rows(array: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Consecutive rows of an array that `map_npy` has mapped, read from its file into memory of their own.

    Pages seen through a map count as memory until it is unmapped, bring the process down if the file has been cut
    since, and make threads wait for each other.
    """
    by_rows = array.flags.c_contiguous
    if not isinstance(array, np.memmap) or array.filename is None or not (by_rows or array.ndim == 2):
        return np.array(array[rows])
    start, stop, _ = rows.indices(array.shape[0])
    place = array.offset + start * array.strides[0]
    if by_rows:
        return _read_run(array, place, (stop - start, *array.shape[1:]))
    places = [place + column * array.strides[1] for column in range(array.shape[1])]
    return np.stack([_read_run(array, place, (stop - start,)) for place in places], axis=1)


def _read_run(array: Any, place: int, shape: tuple[int, ...]) -> NDArray[Any]:
    """Numbers that follow each other in the file of a mapped array."""
    with readable(_NPY):
        run: NDArray[Any] = np.fromfile(array.filename, array.dtype, math.prod(shape), offset=place)
        return run.reshape(shape)


def _check_names(archive: zipfile.ZipFile) -> None:
    """Refuse a damaged list of members, in which an optional array may have vanished unseen."""
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise ValueError("the archive holds two arrays of the same name")
    with readable(_NPZ):
        for member in archive.infolist():
            # NumPy writes no comments: a wrong length of one swallows the members that follow.
            if member.comment:
                raise ValueError("a member has a comment")
            # Each name is stored twice, and opening compares the two.
            archive.open(member).close()


def _read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array, once its header is known to agree with the size of the member."""
    with readable(_NPZ), archive.open(name) as member:
        shape, dtype, offset = _read_header(member)
    _check_header(shape, dtype, archive.getinfo(name).file_size - offset, f"{name} of {_NPZ}")
    with readable(_NPZ), archive.open(name) as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
    return array


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Read shape, dtype and length of the header from a bounded number of bytes."""
    start = io.BytesIO(file.read(_MAX_HEADER))
    version = npy.read_magic(start)
    if version not in _HEADER_READERS:
        raise ValueError(f"version {version} of the format is for structured arrays")
    shape, _, dtype = _HEADER_READERS[version](start, max_header_size=_MAX_HEADER)
    return shape, dtype, start.tell()


def _check_header(shape: tuple[int, ...], dtype: np.dtype[Any], n_bytes: int, what: str) -> None:
    """Refuse objects, and sizes that are not those of the data: both are a danger to load."""
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
