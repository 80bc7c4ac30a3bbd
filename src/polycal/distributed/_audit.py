"""The audit on Dask."""

from collections.abc import Mapping
from copy import deepcopy
from functools import reduce
from typing import Any

from polycal._audit.bundle import Bundle
from polycal._audit.plan import make_plan
from polycal._audit.result import Audit
from polycal._audit.streamed import KERNEL, run_passes
from polycal._threads import thread_budget
from polycal.distributed._dask import computing, dask, merged_as_tree
from polycal.distributed._partitions import Partition, Partitions, partitions_of
from polycal.families.auditor import Auditor
from polycal.io.chunks import DEFAULT_MEMORY, PredictionFiles
from polycal.io.predictions import Part
from polycal.kernels.kernels import Kernel


def audit(
    data: Any,
    *,
    client: Any = None,
    auditors: Mapping[str, Auditor] | None = None,
    groups: Any = None,
    kernel: Kernel = KERNEL,
    alpha: float = 0.05,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    class_names: Any = None,
    random_state: int = 0,
    n_jobs: int | None = -1,
) -> Audit:
    """Audit predictions where they are: on the workers of a Dask cluster.

    Parameters
    ----------
    data : path, list of paths, Dask data frame, or tuple of Dask arrays
        Files, folders, patterns and URLs as for `open_predictions`, which every worker must be able to read; a Dask
        data frame with a column ``label``, optionally ``weight`` and ``evaluation``, and one column per class; or
        arrays ``(y_true, y_proba)`` or ``(y_true, y_proba, sample_weight)``, cut along the rows.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default threads of this process.
    auditors, groups, kernel, alpha, part, random_state
        As for `audit_stream`.
    memory : int or str, default "1GiB"
        What each worker may use for chunks of files. A partition of a data frame or array is one chunk.
    class_names : list of str, optional
        Names of the classes, for arrays; for a data frame, the columns that are classes, if there are others beside.
    n_jobs : int or None, default -1
        Threads of this process, for the searches on the sketch.

    Returns
    -------
    Audit
        That of `audit_stream`, with the same numbers for the same files.

    Notes
    -----
    Each of the three passes of `audit_stream` is a graph: a task per partition updates a copy of the states, and a
    tree of merges adds them up. Only finished sums and the sketch travel to the client. Tasks are pure functions of
    their partition, so that those of a worker that dies are computed again elsewhere.

    Examples
    --------
    >>> import dask.array as da
    >>> import polycal as pc
    >>> from polycal import distributed
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> arrays = (da.from_array(a, chunks=(4000,) + a.shape[1:]) for a in (example.labels, example.proba))
    >>> distributed.audit(tuple(arrays)).n_samples
    10000
    """
    parts = partitions_of(data, memory, part, class_names)
    plan = make_plan(parts.files, auditors, groups, kernel, alpha, random_state, n_jobs)
    with thread_budget(n_jobs), computing(client) as compute:
        return run_passes(plan, lambda bundle: compute(shown_to_all(bundle, parts)))


def shown_to_all(bundle: Bundle, parts: Partitions) -> Any:
    """The bundle after it was shown all partitions, delayed."""
    # One node of the graph for all tasks: a bundle may hold megabytes.
    template = dask().delayed(bundle, pure=False, traverse=False)
    show = dask().delayed(_shown, pure=False)
    seen = [show(template, parts.files, part, number) for number, part in enumerate(parts.delayed)]
    return merged_as_tree(_merged, seen)


def _shown(template: Bundle, files: PredictionFiles, part: Partition, number: int) -> Bundle:
    """A copy of the bundle that has seen one partition; tasks must leave their arguments as they are."""
    return reduce(Bundle.absorb, part.chunks(files, number), deepcopy(template))


def _merged(left: Bundle, right: Bundle) -> Bundle:
    return deepcopy(left).merge(right)
