"""Saved objects: one archive of plain arrays and a JSON header, versioned and checksummed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Path as AnyPath
from polycal.storage.archive import read_arrays, write_arrays
from polycal.storage.damage import DEFAULT_MAX_BYTES, check_file, named, readable

# Raised when a reader of today could misunderstand a file of tomorrow.
FORMAT = 1
_HEADER = "polycal_header"

Arrays = dict[str, NDArray[Any]]


def save_object(path: AnyPath, kind: str, meta: dict[str, Any], arrays: Arrays) -> None:
    """Write an object in one piece; ``kind`` says what it is, ``meta`` is what JSON can hold."""
    header = {"format": FORMAT, "kind": kind, "meta": meta, "sha256": _digest(arrays)}
    text = np.frombuffer(json.dumps(header, ensure_ascii=False).encode(), dtype=np.uint8)
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {target.parent}")
    write_arrays(target, {_HEADER: text, **arrays})


def load_object(path: AnyPath, max_bytes: int = DEFAULT_MAX_BYTES) -> tuple[str, dict[str, Any], Arrays]:
    """Read an object's kind, meta data and arrays; damage, tampering and newer formats are refused."""
    path = Path(path)
    check_file(path)
    with named(path):
        arrays = read_arrays(path, None, max_bytes)
        header = _read_header(arrays.pop(_HEADER, None))
        if header["format"] > FORMAT:
            raise ValueError(
                f"was saved by a newer polycal (format {header['format']}); upgrade polycal to read it"
            )
        if header["sha256"] != _digest(arrays):
            raise ValueError("its checksum does not fit its arrays: the file was damaged or changed")
    return header["kind"], header["meta"], arrays


def _read_header(text: NDArray[Any] | None) -> dict[str, Any]:
    """Parse the header; anything else than what `save_object` writes is refused."""
    if text is None or text.dtype != np.uint8:
        raise ValueError("is not a file saved by polycal")
    with readable("a file saved by polycal"):
        header = json.loads(text.tobytes().decode())
        expected = {"format": int, "kind": str, "meta": dict, "sha256": str}
        if {key: type(header[key]) for key in expected} != expected:
            raise ValueError("its header has fields of the wrong type")
    return dict(header)


def _digest(arrays: Arrays) -> str:
    """A checksum of names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
