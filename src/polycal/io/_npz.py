"""NumPy's own files: ``.npz`` archives and ``.npy`` arrays, the latter memory-mapped with small files beside."""

import io
import json
import math
import zipfile
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polycal.io._atomic import replacing
from polycal.io._raw import RawPredictions, check_claim, named, readable

_NPZ = "an .npz archive"
_NPY = "an .npy array"

# An .npy header may claim to be 4 GiB long; the headers of plain arrays are a few hundred bytes.
_MAX_HEADER = 1 << 14
# Version 3 exists for structured arrays, which are of no use here.
_HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}

_ARRAYS = ("proba", "logits", "labels", "weight", "sample_weight", "class_names", "evaluation")


def read_npz(path: Path, max_bytes: int) -> RawPredictions:
    """Read the arrays of an archive; those with other names are left compressed."""
    with path.open("rb") as file:
        with readable(_NPZ):
            archive = zipfile.ZipFile(file)
        with archive:
            check_claim(sum(member.file_size for member in archive.infolist()), max_bytes)
            _check_names(archive)
            members = {name: f"{name}.npy" for name in _ARRAYS}
            stored = set(archive.namelist())
            arrays = {name: _read_member(archive, m) for name, m in members.items() if m in stored}
    return _from_arrays(arrays)


def write_npz(path: Path, raw: RawPredictions) -> None:
    """Write one archive, uncompressed: probabilities hardly compress."""
    arrays = {"proba": raw.proba, "labels": raw.labels, "weight": raw.sample_weight}
    if raw.class_names is not None:
        arrays["class_names"] = np.array(raw.class_names, dtype=np.str_)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **{k: v for k, v in arrays.items() if v is not None})


def read_npy(path: Path, _max_bytes: int) -> RawPredictions:
    """Map the array, and read labels, weights and class names from the files beside it."""
    # Nothing is unpacked, so there is no claim to check.
    labels, weight, names = _sidecars(path)
    return RawPredictions(
        proba=map_npy(path),
        labels=_map_sidecar(labels),
        sample_weight=_map_sidecar(weight),
        class_names=_read_class_names(names),
    )


def write_npy(path: Path, raw: RawPredictions) -> None:
    """Write the files beside the array first, so that an array is never seen without them."""
    labels, weight, names = _sidecars(path)
    contents = {labels: raw.labels, weight: raw.sample_weight, names: raw.class_names}
    for sidecar, content in contents.items():
        if content is None and sidecar.exists():
            # It may be the user's own, so it is not ours to delete.
            raise ValueError(
                f"{sidecar.name} would be read with the new array; remove it first, or give its content"
            )
    for sidecar, content in contents.items():
        if content is not None:
            _write_sidecar(sidecar, content)
    _write_array(path, raw.proba)


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


def _from_arrays(arrays: dict[str, NDArray[Any]]) -> RawPredictions:
    """Sort an archive's arrays by their role."""
    if ("proba" in arrays) == ("logits" in arrays):
        both = "both 'proba' and 'logits'" if "proba" in arrays else "neither 'proba' nor 'logits'"
        raise ValueError(f"the archive has {both}; save exactly one of them, of shape (n, k)")
    if "weight" in arrays and "sample_weight" in arrays:
        raise ValueError("the archive has both 'weight' and 'sample_weight'; keep one")
    return RawPredictions(
        proba=arrays["logits"] if "logits" in arrays else arrays["proba"],
        from_logits="logits" in arrays,
        labels=arrays.get("labels"),
        sample_weight=arrays.get("weight", arrays.get("sample_weight")),
        class_names=_text("class_names", arrays.get("class_names")),
        evaluation=arrays.get("evaluation"),
    )


def _text(name: str, array: NDArray[Any] | None) -> tuple[str, ...] | None:
    """Turn a one-dimensional array of text into names."""
    if array is None:
        return None
    if array.dtype.kind != "U" or array.ndim != 1:
        raise ValueError(
            f"{name} must be one text per class; got dtype {array.dtype} and shape {array.shape}"
        )
    return tuple(array.tolist())


def _sidecars(path: Path) -> tuple[Path, Path, Path]:
    """Name the files beside an array: labels, weights, class names."""
    labels, weight, names = (f"{path.stem}.{end}" for end in ("labels.npy", "weight.npy", "class_names.json"))
    return path.with_name(labels), path.with_name(weight), path.with_name(names)


def _map_sidecar(path: Path) -> NDArray[Any] | None:
    """Map a file beside the array, if there is one."""
    if not path.exists():
        return None
    with named(Path(path.name)):
        return map_npy(path)


def _read_class_names(path: Path) -> tuple[str, ...] | None:
    """Read the class names beside the array, if there are any."""
    if not path.exists():
        return None
    with named(Path(path.name)):
        with readable("JSON"):
            names = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("must hold a list of class names, one text per class")
        return tuple(names)


def _write_sidecar(path: Path, content: NDArray[Any] | tuple[str, ...]) -> None:
    """Write one of the files beside the array."""
    if isinstance(content, np.ndarray):
        return _write_array(path, content)
    with replacing(path) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
    return None


def _write_array(path: Path, array: NDArray[Any]) -> None:
    """Write one array."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)
