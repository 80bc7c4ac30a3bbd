"""What the audit of a stream is to measure and search, and with what."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._threads import thread_count
from polycal._typing import Ints
from polycal._validation import check_auditors, check_groups, check_kernel, check_level, check_seed
from polycal.families.auditor import Auditor
from polycal.families.defaults import DEFAULT_NOTIONS, default_auditors
from polycal.io.chunks import PredictionFiles
from polycal.kernels.kernels import Kernel
from polycal.sample import Sample

# Cells of the sketch: what the searches can work through in seconds; and their share of the memory.
_SKETCH_CELLS, _SKETCH_BYTES_PER_CELL = 1 << 23, 48
# What the states of one thread take, at most: tallies (of four findings, twice while they are joined), a group, and a
# sum of the kernel search.
_TALLY_BYTES, _GROUP_BYTES, _SUM_BYTES = 64 << 20, 1 << 20, 32
# What a row takes while a certificate is finished: two orders of three numbers, and what they are made of.
_PROOF_BYTES = 128


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """What to measure and search, and how."""

    n_classes: int
    class_names: tuple[str, ...] | None
    groups: dict[str, Ints]
    searches: Mapping[str, Auditor]
    kernel: Kernel | None
    alpha: float
    seed: int
    sketch_rows: int
    n_jobs: int | None

    @property
    def most_played(self) -> int:
        """Rows of a certificate that may be played one by one, in the memory that the searches had."""
        return max(1, self.sketch_rows * self.n_classes * _SKETCH_BYTES_PER_CELL // _PROOF_BYTES)

    def proof_threads(self, n_judge: int) -> int:
        """Threads that may finish certificates of so many rows, in the same memory."""
        return min(thread_count(self.n_jobs), max(1, self.most_played // max(1, n_judge)))


def make_plan(
    files: PredictionFiles,
    auditors: Mapping[str, Auditor] | None,
    groups: Any,
    kernel: Kernel,
    alpha: float,
    random_state: int,
    n_jobs: int | None,
) -> StreamPlan:
    """Check the options of an audit."""
    check_level(alpha, high=0.5)
    seed = check_seed(random_state)
    check_kernel(kernel)
    classes = Sample(np.empty((0, files.n_classes)), np.empty(0, dtype=np.int64), None, files.class_names)
    searches = default_auditors(DEFAULT_NOTIONS, seed)
    searches.pop("kernel")
    cells = min(_SKETCH_CELLS, files.free_memory // (2 * _SKETCH_BYTES_PER_CELL))
    return StreamPlan(
        n_classes=files.n_classes,
        class_names=files.class_names,
        groups=check_groups(groups, classes),
        searches=searches if auditors is None else check_auditors(auditors),
        kernel=kernel if auditors is None else None,
        alpha=float(alpha),
        seed=seed,
        sketch_rows=max(1, cells // files.n_classes),
        n_jobs=n_jobs,
    )


def pass_threads(plan: StreamPlan, files: PredictionFiles) -> int:
    """Threads of a pass: as many as asked for, if a quarter of the memory has room for the states of all but one.

    The rest is the sketch's and the chunks', and the interpreter leaves enough for the states of one thread.
    """
    # A landmark for each class, and some.
    n_sums = plan.n_classes * (plan.n_classes + 1000)
    room = _TALLY_BYTES + _GROUP_BYTES * len(plan.groups) + _SUM_BYTES * n_sums
    return min(thread_count(plan.n_jobs), 1 + files.free_memory // 4 // room)
