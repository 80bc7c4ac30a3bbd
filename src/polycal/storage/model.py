"""Files of saved objects: one archive of plain arrays and a JSON header, versioned and checksummed.

The checksum shows accidents: a file cut short, a bit lost, a header edited by hand. It is no signature: whoever means
to change a file can mend its checksum. So what is read is checked all the same, by the class of every object in it.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Path as AnyPath
from polycal.storage.archive import read_arrays, write_arrays
from polycal.storage.damage import DEFAULT_MAX_BYTES, check_file, named, readable
from polycal.storage.first_format import upgraded

# Raised when a reader of today could misunderstand a file of tomorrow.
FORMAT = 2
_HEADER = "polycal_header"
_CHECKSUM = "polycal_sha256"

Arrays = dict[str, NDArray[Any]]


def save_object(path: AnyPath, tree: dict[str, Any], arrays: Arrays) -> None:
    """Write an object in one piece; ``tree`` is what JSON can hold (see `polycal.storage.saved`)."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {target.parent}")
    header = json.dumps({"format": FORMAT, "object": tree}, ensure_ascii=False)
    contents = {_HEADER: _bytes(header), **arrays}
    write_arrays(target, {_CHECKSUM: _bytes(digest(contents)), **contents})


def load_object(path: AnyPath, max_bytes: int = DEFAULT_MAX_BYTES) -> tuple[dict[str, Any], Arrays]:
    """Read an object's tree and arrays; damage and newer formats are refused, older formats brought up to date."""
    path = Path(path)
    check_file(path)
    with named(path):
        arrays = read_arrays(path, None, max_bytes)
        checksum = arrays.pop(_CHECKSUM, None)
        header = _read_header(arrays)
        if header["format"] > FORMAT:
            raise ValueError(
                f"was saved by a newer polycal (format {header['format']}); upgrade polycal to read it"
            )
        is_first = header["format"] == 1
        contents = {name: array for name, array in arrays.items() if not (is_first and name == _HEADER)}
        said = header["sha256"] if is_first else _text(checksum)
        if said != digest(contents):
            raise ValueError("its checksum does not fit its contents: the file was damaged or changed")
        del arrays[_HEADER]
        with readable("a file saved by polycal"):
            tree = upgraded(header["kind"], header["meta"], arrays) if is_first else dict(header["object"])
    return tree, arrays


def digest(arrays: Arrays) -> str:
    """A checksum of names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _read_header(arrays: Arrays) -> dict[str, Any]:
    """Parse the header; anything else than what some version of `save_object` writes is refused."""
    text = arrays.get(_HEADER)
    if text is None or text.dtype != np.uint8:
        raise ValueError("is not a file saved by polycal")
    with readable("a file saved by polycal"):
        header = dict(json.loads(_text(text)))
        first = {"kind": str, "meta": dict, "sha256": str}
        expected = {"format": int} | (first if header["format"] == 1 else {})
        if {key: type(header[key]) for key in expected} != expected:
            raise ValueError("its header has fields of the wrong type")
    return header


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _text(array: NDArray[Any] | None) -> str:
    return "" if array is None else array.tobytes().decode(errors="replace")
