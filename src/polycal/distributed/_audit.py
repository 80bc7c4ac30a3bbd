"""The audit on Dask: the same source, passes and result as everywhere, with partitions for chunks."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any

from polycal._threads import thread_budget
from polycal._typing import Seed
from polycal.auditing.audit import audit_source, make_plan
from polycal.auditing.passes import AnyPass, Pass
from polycal.auditing.result import Audit
from polycal.auditing.slicing import column_plan
from polycal.auditing.source import Source, gathered, held_rows
from polycal.distributed._dask import Compute, computing, dask, merged_as_tree
from polycal.distributed._partitions import Partition, Partitions, partitions_of
from polycal.io.chunks import PredictionFiles
from polycal.io.layout import Layout
from polycal.io.memory import DEFAULT_MEMORY
from polycal.io.reader import Part
from polycal.kernels.kernels import Kernel
from polycal.sample import Remainder, Sample


def audit(
    data: Any,
    *,
    client: Any = None,
    notions: Any = None,
    auditors: Any = None,
    groups: Any = None,
    losses: Any = None,
    taxonomy: Any = None,
    calibrator: Any = None,
    kernel: Kernel | None = None,
    alpha: float = 0.05,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    slice_by: Sequence[str] = (),
    label: str | None = None,
    weight: str | None = None,
    classes: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    from_logits: bool = False,
    normalize: bool = False,
    format: str | None = None,
    remainder: Remainder = "unknown",
    class_names: Any = None,
    random_state: Seed = 0,
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
    notions, auditors, groups, losses, taxonomy, calibrator, kernel, alpha, part, slice_by, remainder, random_state
        As for `audit_stream`.
    label, weight, classes, drop, from_logits, normalize, format
        What the columns of files and data frames are and how to read them, as for `read_predictions`.
    memory : int or str, default "1GiB"
        What each worker may use for chunks of files. A partition of a data frame or array is one chunk.
    class_names : list of str, optional
        Names of the classes, for arrays; for a data frame, the columns that are classes, if there are others beside.
    n_jobs : int or None, default -1
        Threads of this process, for the searches on the sketch.

    Returns
    -------
    Audit
        That of `polycal.audit`, with the same numbers for the same rows.

    Notes
    -----
    Rows that are few enough to be held (see `polycal.audit`) travel to the client. Of others, each of the three passes
    is a graph: a task per partition updates a copy of the states, and a tree of merges adds them up; only finished
    sums and the sketch travel. Tasks are pure functions of their partition, so that those of a worker that dies are
    computed again elsewhere.

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
    layout = Layout(label, weight, classes, drop, slice_by, from_logits, normalize, format)
    parts = partitions_of(data, memory, part, class_names, remainder, layout)
    with thread_budget(n_jobs), computing(client) as compute:
        source = DaskSource(parts, compute)
        plan = make_plan(
            source,
            notions=notions,
            auditors=auditors,
            groups=groups,
            losses=losses,
            taxonomy=taxonomy,
            kernel=kernel,
            alpha=alpha,
            random_state=random_state,
            n_jobs=n_jobs,
            slices=column_plan(parts.files.sliced_by, is_listed=source.is_listed),
        )
        return audit_source(source, plan, calibrator)


@dataclass(eq=False)
class DaskSource(Source):
    """Rows in partitions that workers have or can read."""

    parts: Partitions
    compute: Compute

    def __post_init__(self) -> None:
        self.n_classes, self.class_names = self.parts.files.sample_classes
        self.is_listed = self.parts.files.is_listed
        self.free_memory = self.parts.files.free_memory
        self._counts: list[int] | None = None

    def gather(self) -> Sample | None:
        """The rows of all partitions, if there are few enough."""
        # Lists count by their entries, which are known when they have been read; they are few.
        if sum(self.counts()) > held_rows(1 if self.is_listed else self.n_classes):
            return None
        read = dask().delayed(_samples, pure=False)
        pieces = self.compute(dask().delayed([read(self.parts.files, part) for part in self.parts.delayed]))
        return gathered(sample for piece in pieces for sample in piece)

    def run(self, task: AnyPass, n_jobs: int | None) -> AnyPass:  # noqa: ARG002 - the cluster has workers of its own
        """A task per partition, and a tree of merges."""
        passed: AnyPass = self.compute(shown_to_all(task, self.parts, self.counts()))
        return passed

    def counts(self) -> list[int]:
        """Rows of each partition; their numbers go on from one to the next."""
        if self._counts is None:
            count = dask().delayed(_count, pure=False)
            self._counts = self.compute(
                dask().delayed([count(self.parts.files, part) for part in self.parts.delayed])
            )
        return self._counts


def shown_to_all(task: Pass, parts: Partitions, counts: Sequence[int]) -> Any:
    """The pass after it was shown all partitions, delayed."""
    # One node of the graph for all tasks: a pass may hold megabytes.
    template = dask().delayed(task, pure=False, traverse=False)
    show = dask().delayed(_shown, pure=False)
    firsts = accumulate(counts, initial=0)
    seen = [
        show(template, parts.files, part, first) for part, first in zip(parts.delayed, firsts, strict=False)
    ]
    return merged_as_tree(_merged, seen)


def _shown(template: Pass, files: PredictionFiles, part: Partition, first_row: int) -> Pass:
    """A copy of the pass that has seen one partition; tasks must leave their arguments as they are."""
    return reduce(lambda task, chunk: task.absorb(chunk), part.chunks(files, first_row), deepcopy(template))


def _merged(left: Pass, right: Pass) -> Pass:
    return deepcopy(left).merge(right)


def _count(files: PredictionFiles, part: Partition) -> int:
    return part.n_rows(files)


def _samples(files: PredictionFiles, part: Partition) -> list[Sample]:
    return [chunk.sample for chunk in part.chunks(files, 0)]
