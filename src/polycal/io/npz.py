"""NumPy's own files: ``.npz`` archives, and ``.npy`` arrays with small files beside them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._text import advice, listed_names
from polycal.io.features import FEATURE_NAMES, FEATURES, archive_columns
from polycal.io.layout import EVALUATION, Columns, Layout, Roles, sort_columns
from polycal.io.reader import Classes, RawPredictions, Reader, UnreadChunk, classes_of
from polycal.storage.archive import (
    NpyFile,
    array_names,
    array_shapes,
    open_npy,
    read_arrays,
    write_array,
    write_arrays,
)
from polycal.storage.atomic import replacing
from polycal.storage.damage import check_claim, check_file, named, readable

_PROBA = ("proba", "logits")
_LABELS = ("labels", "label")
_NAMES = ("class_names",)
# What others call them: taken where there is no other, and told.
_ALSO_PROBA = ("probs", "probabilities", "y_proba", "y_prob", "predictions")
_ALSO_LABELS = ("y", "y_true", "targets", "target")


class NpzReader(Reader):
    """An archive, whose arrays are known by their names; those with other names are left compressed."""

    labels: ClassVar[str] = "an array 'labels'"

    def read(self) -> RawPredictions:
        """The arrays by their role."""
        with self._on_disk() as path:
            names = array_names(path, self.max_bytes)
            wanted = set(self.layout.columns) - set(names)
            table = read_arrays(path, (FEATURES, FEATURE_NAMES) if wanted else (), self.max_bytes)
            beside = {name: one for name, one in archive_columns(table).items() if name in wanted}
            columns = self._columns(names, beside)
            arrays = read_arrays(path, (*columns.read, *_NAMES), self.max_bytes) | beside
        proba = columns.data[0]
        class_names = _text(_NAMES[0], arrays.get(_NAMES[0]))
        if self.layout.classes is not None and class_names is not None:
            raise ValueError(f"the archive names its classes itself, in {_NAMES[0]!r}; {_no_classes()}")
        return RawPredictions(
            proba=arrays[proba],
            from_logits=proba == "logits" or self.layout.from_logits,
            labels=_array(arrays, columns.label),
            sample_weight=_array(arrays, columns.weight),
            class_names=self.layout.class_names or class_names,
            evaluation=_array(arrays, columns.evaluation),
            columns={name: _one_per_row(name, arrays[name]) for name in self.layout.columns},
            roles=_roles(columns),
        )

    def _columns(self, names: tuple[str, ...], beside: Mapping[str, Any]) -> Columns:
        """The roles of the arrays; columns of the table of features are none of them."""
        proba = _only_one(names, self.layout)
        usual = replace(
            self.layout,
            classes=None,
            label=self.layout.label or _usual_labels(names, self.layout),
            columns=tuple(name for name in self.layout.columns if name not in beside),
        )
        known = {*_NAMES, *((FEATURES, FEATURE_NAMES) if beside else ())}
        columns = sort_columns([name for name in names if name not in known], usual, (proba,))
        guessed = proba in _ALSO_PROBA or (self.layout.label is None and columns.label in _ALSO_LABELS)
        return replace(columns, word="array", guessed=guessed)

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
            marks = read_arrays(path, [EVALUATION], self.max_bytes) if marked else {}
        return next(iter(shapes[_only_one(tuple(shapes), self.layout)]), 0), marks.get(EVALUATION)


class NpyReader(Reader):
    """An array on this machine; labels, weights and class names are in files beside it."""

    in_chunks: ClassVar[bool] = True
    labels: ClassVar[str] = "a file <name>.labels.npy beside it"

    def read(self) -> RawPredictions:
        """All of the array, and of the files beside it."""
        proba, beside = self._open()
        check_claim(sum(f.path.stat().st_size for f in (proba, *beside.values())), self.max_bytes)
        return self._raw(proba.read(), {name: _read_beside(file, None) for name, file in beside.items()})

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
        proba, _ = self._open()
        classes = classes_of(proba.shape, self._class_names())
        return classes if proba.shape[0] else None

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """Rows that are read from the files when they are needed."""
        proba, beside = self._open()
        for name, file in beside.items():
            if file.shape[:1] != proba.shape[:1]:
                known = {"labels": "y_true", "weight": "sample_weight"}.get(name, name)
                raise ValueError(
                    f"{known} has shape {file.shape} but y_proba has {proba.shape[0]} rows; give one entry per row."
                )
        for start in range(0, proba.shape[0], n_rows):
            yield start, partial(self._read_rows, proba, beside, slice(start, start + n_rows))

    def _extent(self, *, marked: bool) -> tuple[int, NDArray[Any] | None]:  # noqa: ARG002 - there are no marks
        return self._open()[0].shape[0], None

    def _open(self) -> tuple[NpyFile, dict[str, NpyFile]]:
        """The array, and the files beside it that have a role."""
        path = self._path()
        proba = open_npy(path)
        classes_of(proba.shape, None)
        return proba, dict(self._beside(path))

    def _beside(self, path: Path) -> Iterator[tuple[str, NpyFile]]:
        """The files beside the array: labels, weights, and what is asked for by name."""
        layout = self.layout
        roles = {"labels": layout.label, "weight": layout.weight} | {name: name for name in layout.columns}
        for role, named_file in roles.items():
            file = path.with_name(f"{path.stem}.{named_file or role}.npy")
            opened = _open_beside(file)
            if opened is not None:
                yield role, opened
            elif named_file is not None:
                raise ValueError(f"there is no file {file.name} beside it")

    def _read_rows(self, proba: NpyFile, beside: dict[str, NpyFile], rows: slice) -> RawPredictions:
        read = {name: _read_beside(file, rows) for name, file in beside.items()}
        return self._raw(proba.rows(rows), read)

    def _raw(self, proba: NDArray[Any], beside: dict[str, NDArray[Any]]) -> RawPredictions:
        return RawPredictions(
            proba,
            self.layout.from_logits,
            beside.get("labels"),
            beside.get("weight"),
            self._class_names(),
            columns={name: _one_per_row(name, beside[name]) for name in self.layout.columns},
        )

    def _class_names(self) -> tuple[str, ...] | None:
        """The class names beside the array, if there are any."""
        file = _beside(self._path())[2]
        if self.layout.classes is not None and file.exists():
            raise ValueError(f"{file.name} names the classes; {_no_classes()}")
        if not file.exists():
            return self.layout.class_names
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


def _only_one(names: tuple[str, ...], layout: Layout) -> str:
    """The name of the array of predictions."""
    found = [name for name in _PROBA if name in names and name not in layout.drop]
    found = found or [name for name in _ALSO_PROBA if name in names and name not in layout.drop]
    if len(found) == 1:
        return found[0]
    if found:
        both = " and ".join(map(repr, found[:2]))
        raise ValueError(f"the archive has both {both}; {advice('drop=', '--drop')} leaves one out")
    raise ValueError(
        f"the archive has neither 'proba' nor 'logits' but {listed_names(names)}; save one of them, of shape (n, k)"
    )


def _usual_labels(names: tuple[str, ...], layout: Layout) -> str | None:
    """What labels are called in archives: ``labels``, where tables say ``label``."""
    there = [name for name in (*_LABELS, *_ALSO_LABELS) if name in names]
    return next((name for name in there if name not in (*layout.drop, *layout.columns)), None)


def _roles(columns: Columns) -> Roles:
    """What is to be told of arrays: those that have other names than ours."""
    taken = tuple(name for name in (*columns.data, columns.label) if name in (*_ALSO_PROBA, *_ALSO_LABELS))
    return Roles("array", taken if columns.guessed else (), columns.unused, "predictions and labels")


def _no_classes() -> str:
    return advice("leave out classes=", "leave out --classes")


def _array(arrays: dict[str, NDArray[Any]], name: str | None) -> NDArray[Any] | None:
    return None if name is None else arrays[name]


def _one_per_row(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """An array that is read along: numbers or text, one for each row."""
    if array.ndim != 1:
        raise ValueError(f"array {name!r} has shape {array.shape}; give one value per row")
    return array.astype(object if array.dtype.kind == "U" else np.float64)


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


def _read_beside(file: NpyFile, rows: slice | None) -> NDArray[Any]:
    with named(file.path.name):
        return file.read() if rows is None else file.rows(rows)


def _write_beside(path: Path, content: NDArray[Any] | tuple[str, ...]) -> None:
    if isinstance(content, np.ndarray):
        return write_array(path, content)
    with replacing(path) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
    return None
