"""The monitor on Dask: a shard for each partition, each betting on its own past, merged as a tree."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from polycal.distributed._dask import computing, dask, merged_as_tree
from polycal.distributed._partitions import Partition, partitions_of
from polycal.io.chunks import PredictionFiles
from polycal.io.layout import Layout
from polycal.io.memory import DEFAULT_MEMORY
from polycal.io.reader import Part
from polycal.monitoring.ledger import check_all_classes, take_in
from polycal.monitoring.monitor import Monitor


def update_monitor(
    monitor: Monitor,
    data: Any,
    *,
    client: Any = None,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    class_names: Any = None,
    slice_by: Sequence[str] = (),
) -> Monitor:
    """Take in rows where they are: each partition is watched on its own, and the evidence adds up.

    Parameters
    ----------
    monitor : Monitor
        What is watched for, and what was seen so far. It is left as it is.
    data, client, memory, part, class_names
        As for `audit`. Rows of a partition must be in the order in which they came; the partitions need not be.
    slice_by : sequence of str
        Columns of files or of a data frame whose values are watched on their own.

    Returns
    -------
    Monitor
        The monitor given, merged with a monitor of each partition.

    Notes
    -----
    Logarithms of e-values add up, since the shards bet on rows of their own. A shard learns from its own rows alone, so
    that many small ones find less than one stream: take partitions of a day or of a site, not of a thousand rows.

    Examples
    --------
    >>> import dask.array as da
    >>> import polycal as pc
    >>> from polycal import distributed
    >>> example = pc.datasets.load_fashion("evaluation").take(slice(0, 2000))
    >>> arrays = (da.from_array(a, chunks=(1000,) + a.shape[1:]) for a in (example.labels, example.proba))
    >>> distributed.update_monitor(pc.Monitor(tolerance=0.01), tuple(arrays)).n_rows
    2000
    """
    parts = partitions_of(data, memory, part, class_names, layout=Layout(columns=slice_by))
    check_all_classes(parts.files)
    watch = dask().delayed(_watched, pure=False)
    fresh = dask().delayed(monitor.anew(), pure=False, traverse=False)
    shards = [watch(fresh, parts.files, partition) for partition in parts.delayed]
    with computing(client) as compute:
        return _merged(monitor, compute(merged_as_tree(_merged, shards)))


def _watched(monitor: Monitor, files: PredictionFiles, partition: Partition) -> Monitor:
    """A copy of a monitor that has seen one partition; tasks must leave their arguments as they are."""
    shard = deepcopy(monitor)
    take_in(shard, partition.chunks(files, 0))
    return shard


def _merged(left: Monitor, right: Monitor) -> Monitor:
    return deepcopy(left).merge(right)
