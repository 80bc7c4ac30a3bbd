"""NumPy's own files: ``.npz`` archives, and ``.npy`` arrays with small files beside them."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal.io.reader import Classes, RawPredictions, Reader, UnreadChunk, classes_of
from polycal.storage.archive import NpyFile, array_shapes, open_npy, read_arrays, write_array, write_arrays
from polycal.storage.atomic import replacing
from polycal.storage.damage import check_claim, check_file, named, readable

_PROBA = ("proba", "logits")
_ARRAYS = (*_PROBA, "labels", "weight", "sample_weight", "class_names", "evaluation")


class NpzReader(Reader):
    """An archive, whose arrays are known by their names; those with other names are left compressed."""

    labels: ClassVar[str] = "an array 'labels'"

    def read(self) -> RawPredictions:
        """The arrays by their role."""
        with self._on_disk() as path:
            arrays = read_arrays(path, _ARRAYS, self.max_bytes)
        proba = _only_one(arrays)
        if "weight" in arrays and "sample_weight" in arrays:
            raise ValueError("the archive has both 'weight' and 'sample_weight'; keep one")
        return RawPredictions(
            proba=arrays[proba],
            from_logits=proba == "logits",
            labels=arrays.get("labels"),
            sample_weight=arrays.get("weight", arrays.get("sample_weight")),
            class_names=_text("class_names", arrays.get("class_names")),
            evaluation=arrays.get("evaluation"),
        )

    @staticmethod
    def write(path: Path, raw: RawPredictions) -> None:
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

    def _extent(self, *, marked: bool) -> tuple[int, NDArray[Any] | None]:
        with self._on_disk() as path:
            shapes = array_shapes(path, self.max_bytes)
            marks = read_arrays(path, ["evaluation"], self.max_bytes) if marked else {}
        return next(iter(shapes[_only_one(shapes)]), 0), marks.get("evaluation")


class NpyReader(Reader):
    """An array on this machine; labels, weights and class names are in files beside it."""

    in_chunks: ClassVar[bool] = True
    labels: ClassVar[str] = "a file <name>.labels.npy beside it"

    def read(self) -> RawPredictions:
        """All of the array, and of the files beside it."""
        proba, *beside = self._open()
        check_claim(sum(f.path.stat().st_size for f in (proba, *beside) if f is not None), self.max_bytes)
        labels, weight = (_read_beside(file, None) for file in beside)
        return RawPredictions(proba.read(), False, labels, weight, self._class_names())

    @staticmethod
    def write(path: Path, raw: RawPredictions) -> None:
        """Write the files beside the array first, so that an array is never seen without them."""
        if raw.evaluation is not None:
            raise ValueError("an .npy file cannot mark the rows of the evaluation part; write .npz")
        labels, weight, names = _beside(path)
        contents = {labels: raw.labels, weight: raw.sample_weight, names: raw.class_names}
        for file, content in contents.items():
            if content is None and file.exists():
                # It may be the user's own, so it is not ours to delete.
                raise ValueError(
                    f"{file.name} would be read with the new array; remove it first, or give its content"
                )
        for file, content in contents.items():
            if content is not None:
                _write_beside(file, content)
        write_array(path, raw.proba)

    def classes(self) -> Classes | None:
        """Those of the columns."""
        proba, *_ = self._open()
        classes = classes_of(proba.shape, self._class_names())
        return classes if proba.shape[0] else None

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """Rows that are read from the files when they are needed."""
        proba, *beside = self._open()
        for name, file in zip(("y_true", "sample_weight"), beside, strict=True):
            if file is not None and file.shape[:1] != proba.shape[:1]:
                raise ValueError(
                    f"{name} has shape {file.shape} but y_proba has {proba.shape[0]} rows; give one entry per row."
                )
        names = self._class_names()
        for start in range(0, proba.shape[0], n_rows):
            yield start, partial(_read_rows, proba, beside, names, slice(start, start + n_rows))

    def _extent(self, *, marked: bool) -> tuple[int, NDArray[Any] | None]:  # noqa: ARG002 - there are no marks
        return self._open()[0].shape[0], None

    def _open(self) -> tuple[NpyFile, NpyFile | None, NpyFile | None]:
        """The array, the labels and the weights."""
        path = self._path()
        labels, weight, _ = _beside(path)
        proba = open_npy(path)
        classes_of(proba.shape, None)
        return proba, _open_beside(labels), _open_beside(weight)

    def _class_names(self) -> tuple[str, ...] | None:
        """The class names beside the array, if there are any."""
        file = _beside(self._path())[2]
        if not file.exists():
            return None
        with named(file.name):
            check_file(file)
            check_claim(file.stat().st_size, self.max_bytes)
            with readable("JSON"):
                names = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("must hold a list of class names, one text per class")
            return tuple(names)

    def _path(self) -> Path:
        if isinstance(self.path, Path):
            return self.path
        raise ValueError(".npy files must be on this machine, and this one is elsewhere; write Parquet")


def _read_rows(
    proba: NpyFile, beside: list[NpyFile | None], names: tuple[str, ...] | None, rows: slice
) -> RawPredictions:
    labels, weight = (_read_beside(file, rows) for file in beside)
    return RawPredictions(proba.rows(rows), False, labels, weight, names)


def _only_one(arrays: Any) -> str:
    """The name of the array of predictions."""
    found = [name for name in _PROBA if name in arrays]
    if len(found) == 1:
        return found[0]
    both = "both 'proba' and 'logits'" if found else "neither 'proba' nor 'logits'"
    raise ValueError(f"the archive has {both}; save exactly one of them, of shape (n, k)")


def _text(name: str, array: NDArray[Any] | None) -> tuple[str, ...] | None:
    """Turn a one-dimensional array of text into names."""
    if array is None:
        return None
    if array.dtype.kind != "U" or array.ndim != 1:
        raise ValueError(
            f"{name} must be one text per class; got dtype {array.dtype} and shape {array.shape}"
        )
    return tuple(array.tolist())


def _beside(path: Path) -> tuple[Path, Path, Path]:
    """Name the files beside an array: labels, weights, class names."""
    labels, weight, names = (f"{path.stem}.{end}" for end in ("labels.npy", "weight.npy", "class_names.json"))
    return path.with_name(labels), path.with_name(weight), path.with_name(names)


def _open_beside(path: Path) -> NpyFile | None:
    """A file beside the array, if there is one."""
    if not path.exists():
        return None
    with named(path.name):
        check_file(path)
        return open_npy(path)


def _read_beside(file: NpyFile | None, rows: slice | None) -> NDArray[Any] | None:
    if file is None:
        return None
    with named(file.path.name):
        return file.read() if rows is None else file.rows(rows)


def _write_beside(path: Path, content: NDArray[Any] | tuple[str, ...]) -> None:
    if isinstance(content, np.ndarray):
        return write_array(path, content)
    with replacing(path) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
    return None
