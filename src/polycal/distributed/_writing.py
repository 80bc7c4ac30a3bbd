"""Recalibrated partitions, written where they are: one Parquet file for each, in one piece."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polycal._typing import Ints
from polycal._validation import check_labels, check_proba
from polycal.calibrators.base import Calibrator
from polycal.distributed._dask import dask
from polycal.distributed._partitions import (
    Partition,
    aligned_arrays,
    array_partition,
    frame_columns,
    is_arrays,
    is_frame,
    partitions_of,
)
from polycal.io.chunks import PredictionFiles
from polycal.io.layout import Columns, numbered
from polycal.io.parquet import append_parquet, write_frame
from polycal.io.paths import FilePath
from polycal.io.reader import RawPredictions
from polycal.storage.damage import named

_PART_FILE = re.compile(r"part-\d{5,}\.parquet")


def part_file(folder: Path, number: int) -> Path:
    """Where a partition goes."""
    return folder / f"part-{number:05d}.parquet"


def remove_others(folder: Path, kept: Collection[Path]) -> None:
    """Remove the partitions in a folder that are not these: an earlier run may have had more."""
    for file in folder.iterdir():
        if _PART_FILE.fullmatch(file.name) and file.is_file() and file not in kept:
            file.unlink(missing_ok=True)


def written(calibrator: Calibrator, data: Any, folder: Path, memory: int | str, class_names: Any) -> Any:
    """A Dask value whose computing writes the files: pairs (number of the partition, its rows)."""
    tool = dask().delayed(calibrator, pure=False, traverse=False)
    if is_frame(data):
        if class_names is None:
            class_names = _classes_among(data.columns, calibrator)
        columns = frame_columns(data, class_names)
        calibrator.check_class_names(columns.class_names)
        return data.map_partitions(
            _write_frame,
            tool,
            columns,
            folder,
            meta={"number": "int64", "n_rows": "int64"},
            enforce_metadata=False,
        )
    parts = partitions_of(data, memory, "all", class_names)
    calibrator.check_class_names(parts.files.class_names)
    _refuse_input(parts.files.paths, folder)
    if is_arrays(data):
        return _arrays_written(tool, data, folder, parts.files)
    write = dask().delayed(_write, pure=False)
    tasks = [write(tool, parts.files, part, folder, number) for number, part in enumerate(parts.delayed)]
    return dask().delayed(list, pure=False)(tasks)


def _refuse_input(paths: Sequence[FilePath], folder: Path) -> None:
    """Refuse files that would be replaced or removed before or after they are read."""
    for path in paths:
        if (
            isinstance(path, Path)
            and _PART_FILE.fullmatch(path.name)
            and path.parent.resolve() == folder.resolve()
        ):
            raise ValueError(f"{path} is to be read, and to be replaced; let out be another folder.")


def _classes_among(columns: Any, calibrator: Calibrator) -> Sequence[str] | None:
    """The columns that the calibrator was fitted on, if they are there; others are kept as they are."""
    names = calibrator.class_names_ or numbered(calibrator.n_classes_)
    return names if set(names) <= set(map(str, columns)) else None


def _arrays_written(tool: Any, arrays: tuple[Any, ...], folder: Path, files: PredictionFiles) -> Any:
    """Block by block of rows; every block is told its number."""
    proba, sides = aligned_arrays(arrays)
    numbers = dask("array").arange(proba.numblocks[0], chunks=1)
    pairs = [item for side in sides for item in (side, "i")]
    return dask("array").blockwise(
        _write_block,
        "ij",
        numbers,
        "i",
        proba,
        "ij",
        *pairs,
        calibrator=tool,
        files=files,
        folder=folder,
        adjust_chunks={"i": 1, "j": 2},
        align_arrays=False,
        dtype=np.int64,
        meta=np.empty((0, 0), dtype=np.int64),
    )


def _write_block(
    numbers: Ints, *arrays: Any, calibrator: Calibrator, files: PredictionFiles, folder: Path
) -> Ints:
    number = int(numbers[0])
    pair = _write(calibrator, files, array_partition(number, *arrays), folder, number)
    return np.array([pair])


def _write(
    calibrator: Calibrator, files: PredictionFiles, part: Partition, folder: Path, number: int
) -> tuple[int, int]:
    """Write the recalibrated rows of one partition."""
    with part.naming():
        return number, append_parquet(part_file(folder, number), _recalibrated(calibrator, files, part))


def _recalibrated(
    calibrator: Calibrator, files: PredictionFiles, part: Partition
) -> Iterator[RawPredictions]:
    for start, read in part.unread(files):
        with part.naming_rows(start):
            raw = read()
            if raw.proba.shape[0]:
                yield _recalibrated_rows(calibrator, raw, files.class_names)


def _recalibrated_rows(
    calibrator: Calibrator, raw: RawPredictions, class_names: tuple[str, ...] | None
) -> RawPredictions:
    proba, names = check_proba(raw.proba, class_names=class_names, from_logits=raw.from_logits)
    return RawPredictions(
        # From the logits, where there are any: their softmax is taken more accurately there.
        calibrator._taking(from_logits=raw.from_logits).predict_proba(raw.proba),
        labels=None if raw.labels is None else check_labels(raw.labels, proba.shape[1], names),
        sample_weight=raw.sample_weight,
        class_names=names,
        evaluation=raw.evaluation,
    )


def _write_frame(
    frame: Any, calibrator: Calibrator, columns: Columns, folder: Path, partition_info: Any = None
) -> Any:
    """Write a pandas data frame with recalibrated classes; all other columns, and the index, stay."""
    number = int(partition_info["number"])
    with named(f"partition {number}"):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        if len(frame):
            write_frame(
                part_file(folder, number), _recalibrated_frame(frame, calibrator, columns), columns.classes
            )
    return type(frame)({"number": [number], "n_rows": [len(frame)]})


def _recalibrated_frame(frame: Any, calibrator: Calibrator, columns: Columns) -> Any:
    classes = list(columns.classes)
    proba, names = check_proba(frame[classes].to_numpy(), class_names=columns.class_names)
    fixed = frame.copy()
    fixed[classes] = calibrator._taking(from_logits=False).predict_proba(proba)
    if columns.label is not None:
        labels = check_labels(frame[columns.label].to_numpy(), len(classes), names)
        fixed[columns.label] = labels if names is None else np.array(names)[labels]
    return fixed
