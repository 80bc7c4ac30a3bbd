"""NumPy's own files: ``.npz`` archives and ``.npy`` arrays, the latter memory-mapped with small files beside."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal.io._raw import RawPredictions
from polycal.storage.archive import map_npy, read_arrays, write_array, write_arrays
from polycal.storage.atomic import replacing
from polycal.storage.damage import named, readable

_ARRAYS = ("proba", "logits", "labels", "weight", "sample_weight", "class_names", "evaluation")


def read_npz(path: Path, max_bytes: int) -> RawPredictions:
    """Read the arrays of an archive; those with other names are left compressed."""
    return _from_arrays(read_arrays(path, _ARRAYS, max_bytes))


def write_npz(path: Path, raw: RawPredictions) -> None:
    """Write one archive, uncompressed: probabilities hardly compress."""
    arrays = {
        "proba": raw.proba,
        "labels": raw.labels,
        "weight": raw.sample_weight,
        "evaluation": raw.evaluation,
    }
    if raw.class_names is not None:
        arrays["class_names"] = np.array(raw.class_names, dtype=np.str_)
    write_arrays(path, {k: v for k, v in arrays.items() if v is not None})


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
    if raw.evaluation is not None:
        raise ValueError("an .npy file cannot mark the rows of the evaluation part; write .npz")
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
    write_array(path, raw.proba)


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
        return write_array(path, content)
    with replacing(path) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
    return None
