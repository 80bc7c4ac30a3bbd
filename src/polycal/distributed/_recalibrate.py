"""Recalibration on Dask: fit on a sketch of all rows, apply where the rows are."""

from dataclasses import dataclass, field
from os import fspath
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from polycal import _typing
from polycal._typing import Seed
from polycal._validation import check_integer, check_seed
from polycal.answering import AnswerDepth
from polycal.auditing.passes import ALL, Pass
from polycal.calibrators.base import Calibrator
from polycal.distributed._audit import DaskSource
from polycal.distributed._dask import computing
from polycal.distributed._partitions import partitions_of
from polycal.distributed._writing import part_file, remove_others, written
from polycal.io.memory import DEFAULT_MEMORY
from polycal.io.reader import Part
from polycal.io.remote import hide_secrets, is_url
from polycal.states.depth import DepthState
from polycal.states.rows import SketchState


@dataclass(eq=False, kw_only=True)
class _Sketching(Pass):
    """A random sample of all rows."""

    sketch: SketchState = field(metadata=ALL)


@dataclass(eq=False, kw_only=True)
class _Counting(Pass):
    """How often answers are wrong."""

    depth: DepthState = field(metadata=ALL)


def fit_calibrator(
    calibrator: Calibrator,
    data: Any,
    *,
    client: Any = None,
    n_rows: int = 20_000,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    class_names: Any = None,
    random_state: Seed = 0,
) -> Calibrator:
    """Fit a calibrator on a random sample of rows gathered from all partitions.

    Parameters
    ----------
    calibrator : Calibrator
        What to fit. It is left as it is. Its ``from_logits`` is for its later use, and says nothing about the data.
    data, client, memory, part, class_names
        As for `audit`: logits in ``.npz`` files that hold these, else probabilities.
    n_rows : int, default 20000
        Size of the sample.
    random_state : int, Generator or None, default 0
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
    random_state = check_seed(random_state)
    sketch = SketchState(check_integer(n_rows, "n_rows", minimum=1), random_state=random_state)
    with computing(client) as compute:
        passed = DaskSource(parts, compute).run(_Sketching(seed=random_state, sketch=sketch), None)
    fresh: Calibrator = clone(calibrator)
    return fresh._fit_sample(passed.sketch.finish())


def fit_answers(
    model: AnswerDepth,
    data: Any,
    *,
    client: Any = None,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    class_names: Any = None,
) -> AnswerDepth:
    """Fit a model that answers at the right depth of a tree, on all rows: what is counted adds up over partitions.

    Parameters
    ----------
    model : AnswerDepth
        What to fit; it is the same as from memory.
    data, client, memory, part, class_names
        As for `audit`.

    Returns
    -------
    AnswerDepth
        The model given, fitted.

    Examples
    --------
    >>> import dask.array as da
    >>> import polycal as pc
    >>> from polycal import distributed
    >>> example = pc.datasets.load_fashion("calibration")
    >>> arrays = (da.from_array(a, chunks=(4000,) + a.shape[1:]) for a in (example.labels, example.proba))
    >>> tree = {"clothes": list("012346"), "footwear": list("579"), "8": None}
    >>> distributed.fit_answers(pc.AnswerDepth(tree), tuple(arrays)).certificate_.n_samples
    10000
    """
    parts = partitions_of(data, memory, part, class_names)
    with computing(client) as compute:
        passed = DaskSource(parts, compute).run(_Counting(seed=0, depth=model.state()), None)
    return model.fit_state(passed.depth)


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
        Fitted, on probabilities or logits.
    data, client, memory, class_names
        As for `audit`: logits in ``.npz`` files that hold these, else probabilities. Labels are kept where there are
        any, and so are all other columns of a data frame, and its index. Its classes are by default the columns that
        the calibrator was fitted on.
    out : str or path
        A folder that every worker can write to, and not one that the data are read from; it is made if there is none.
        Files of an earlier run in it are replaced; those for which there is no new one are removed in the end.

    Returns
    -------
    list of path
        The files, ``part-00000.parquet`` and so on, in the order of the partitions. Partitions without rows have none.

    Notes
    -----
    Data frames go through ``map_partitions``, arrays block by block, files in chunks that fit into the memory. A file
    appears under its name only when it is complete, so that a task which is run again, because a worker died, does no
    harm. That of a data frame names the classes in its metadata: `read_predictions` does not take other columns for
    such. Other files have no other columns.

    Examples
    --------
    >>> import tempfile
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import polycal as pc
    >>> from polycal import distributed
    >>> frame = pd.DataFrame({"id": [7, 8, 9], "cat": [0.9, 0.2, 0.6], "dog": [0.1, 0.8, 0.4], "label": ["cat"] * 3})
    >>> calibrator = pc.TemperatureScaling().fit(frame[["cat", "dog"]], [0, 1, 1], class_names=["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = distributed.apply_calibrator(calibrator, dd.from_pandas(frame, npartitions=1), folder)
    ...     pd.read_parquet(files[0]).columns.tolist(), pc.read_predictions(files[0]).class_names
    (['id', 'cat', 'dog', 'label'], ('cat', 'dog'))
    """
    text = fspath(out)
    if is_url(text):
        raise ValueError(f"out={hide_secrets(text)!r} must be a folder that workers can write to, not a URL.")
    folder = Path(text)
    folder.mkdir(parents=True, exist_ok=True)
    with computing(client) as compute:
        # Workers may run in other folders.
        pairs = np.asarray(compute(written(calibrator, data, folder.absolute(), memory, class_names)))
    files = [part_file(folder, number) for number, n_rows in sorted(pairs.tolist()) if n_rows]
    remove_others(folder, files)
    return files
