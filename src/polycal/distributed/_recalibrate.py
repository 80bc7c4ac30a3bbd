"""Recalibration on Dask: fit on a sketch of all rows, apply where the rows are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.base import clone

from polycal import _typing
from polycal._audit.bundle import Bundle
from polycal._validation import check_integer, check_labels, check_proba
from polycal.calibrators._base import Calibrator
from polycal.distributed._audit import shown_to_all
from polycal.distributed._dask import computing, dask
from polycal.distributed._partitions import Partition, partitions_of
from polycal.io._arrow import append_parquet
from polycal.io._raw import RawPredictions
from polycal.io.chunks import DEFAULT_MEMORY, PredictionFiles
from polycal.io.predictions import Part
from polycal.states.sketch import SketchState


def fit_calibrator(
    calibrator: Calibrator,
    data: Any,
    *,
    client: Any = None,
    n_rows: int = 20_000,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    class_names: Any = None,
    random_state: int = 0,
) -> Calibrator:
    """Fit a calibrator on a random sample of rows gathered from all partitions.

    Parameters
    ----------
    calibrator : Calibrator
        What to fit. It is left as it is.
    data, client, memory, part, class_names
        As for `audit`.
    n_rows : int, default 20000
        Size of the sample.
    random_state : int, default 0
        Seed of the draw.

    Returns
    -------
    Calibrator
        The fitted calibrator.

    Examples
    --------
    >>> import dask.array as da
    >>> import polycal as pc
    >>> from polycal import distributed
    >>> example = pc.datasets.load_fashion("calibration")
    >>> arrays = (da.from_array(a, chunks=(4000,) + a.shape[1:]) for a in (example.labels, example.proba))
    >>> calibrator = distributed.fit_calibrator(pc.TemperatureScaling(), tuple(arrays), n_rows=2000)
    >>> calibrator.predict_proba(example.proba[:2]).shape
    (2, 10)
    """
    parts = partitions_of(data, memory, part, class_names)
    bundle = Bundle(random_state)
    bundle.add(
        "sketch",
        SketchState(check_integer(n_rows, "n_rows", minimum=1), random_state=random_state),
        "all",
    )
    with computing(client) as compute:
        sketch = compute(shown_to_all(bundle, parts)).finish("sketch")
    fresh: Calibrator = clone(calibrator)
    return fresh.fit(sketch.proba, sketch.labels, sketch.sample_weight, class_names=sketch.class_names)


def apply_calibrator(
    calibrator: Calibrator,
    data: Any,
    out: _typing.Path,
    *,
    client: Any = None,
    memory: int | str = DEFAULT_MEMORY,
    class_names: Any = None,
) -> list[Path]:
    """Apply a fitted calibrator to every partition, and write one Parquet file for each.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    data, client, memory, class_names
        As for `audit`; labels are kept where there are any.
    out : str or path
        A folder that every worker can write to; it is made if there is none. Files in it are replaced.

    Returns
    -------
    list of path
        The files, ``part-00000.parquet`` and so on, in the order of the partitions. Partitions without rows have none.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    parts = partitions_of(data, memory, "all", class_names)
    write = dask().delayed(_write, pure=False)
    tool = dask().delayed(calibrator, pure=False, traverse=False)
    names = [folder / f"part-{number:05d}.parquet" for number in range(len(parts.delayed))]
    tasks = [write(tool, parts.files, part, name) for part, name in zip(parts.delayed, names, strict=True)]
    with computing(client) as compute:
        counts: list[int] = compute(dask().delayed(list, pure=False)(tasks))
    return [name for name, count in zip(names, counts, strict=True) if count]


def _write(calibrator: Calibrator, files: PredictionFiles, part: Partition, out: Path) -> int:
    """Write the recalibrated rows of one partition; returns their number."""
    with part.naming():
        return append_parquet(out, _recalibrated(calibrator, files, part))


def _recalibrated(
    calibrator: Calibrator, files: PredictionFiles, part: Partition
) -> Iterator[RawPredictions]:
    for _, raw in part.raws(files):
        if raw.proba.shape[0]:
            proba, names = check_proba(raw.proba, class_names=files.class_names, from_logits=raw.from_logits)
            yield RawPredictions(
                calibrator.predict_proba(proba),
                labels=None if raw.labels is None else check_labels(raw.labels, proba.shape[1], names),
                sample_weight=raw.sample_weight,
                class_names=names,
                evaluation=raw.evaluation,
            )
