"""The worst questions, looked for in the background: on one half of the rows, judged on the other; and every node of
a tree of classes, which all rows judge.

A process of its own does it: it stands back for the page, and ends at once when the explorer ends.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Literal

from polycal._typing import Ints
from polycal.auditing.findings import corrected, find_all, shortened
from polycal.auditing.naming import named_finding
from polycal.auditing.nodes import Nodes, node_errors
from polycal.families.questions import SubsetWitness
from polycal.families.subset import SubsetAuditor
from polycal.report.tree import mark, node_words
from polycal.sample import Sample

ALPHA = 0.05

State = Literal["waiting", "searching", "done", "too few rows", "failed"]


class Search:
    """The search for the worst sets of classes, for each set of predictions.

    Attributes
    ----------
    state : str
        Whether it is "waiting" to be started, "searching", "done", or was impossible.
    found : list of dict
        What was found so far: findings as in `Audit.to_dict`, with the series and the indices of the classes.
    nodes : list of dict
        What is shown of the nodes of a tree in the first set of predictions: a mark and words for each, once they are
        known.
    """

    def __init__(
        self,
        samples: Mapping[str, Sample],
        halves: tuple[Ints, Ints] | None,
        seed: int,
        n_jobs: int | None = -1,
        groups: Mapping[str, Ints] | None = None,
        nodes: Nodes | None = None,
    ) -> None:
        self.state: State = "too few rows" if halves is None else "waiting"
        self.found: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self._work: Any = None if halves is None else (dict(samples), nodes, halves, seed, n_jobs, groups)
        self._process: Any = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = threading.Lock()
        self._stopped = False

    def start(self) -> None:
        """Begin, if there are enough rows; returns at once."""
        if self.state == "waiting":
            self.state = "searching"
            self._thread.start()

    def stop(self) -> None:
        """End the search, wherever it is."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=search_all, args=(there,), daemon=True)
        with self._lock:
            if self._stopped:
                return
            _start_shielded(process)
            self._process = process
        there.close()
        try:
            here.send(self._work)
            self._work = None
            while (one := here.recv()) is not None:
                found, nodes = one
                self.found = [*self.found, *found]
                self.nodes = self.nodes or nodes
            self.state = "done"
        except (EOFError, OSError):
            self.state = "failed"
        process.join()


def _start_shielded(process: Any) -> None:
    """Start a process that Ctrl-C, which a terminal sends to every process of a command, does not reach.

    It inherits from this thread that the signal is held back. Starting the resource tracker would let it through
    again, so that comes first.
    """
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    process.start()


def search_all(connection: "Connection[Any, Any]") -> None:
    """Receive predictions and how to search; send what is found in each set of predictions, nodes, then None."""
    if hasattr(os, "nice"):
        os.nice(10)
    samples, nodes, *options = connection.recv()
    for series, sample in samples.items():
        connection.send((worst_found(series, sample, *options), []))
    if nodes:
        connection.send(([], node_marks(nodes, next(iter(samples.values())))))
    connection.send(None)


def worst_found(
    series: str,
    sample: Sample,
    halves: tuple[Ints, Ints],
    seed: int,
    n_jobs: int | None = -1,
    groups: Mapping[str, Ints] | None = None,
) -> list[dict[str, Any]]:
    """The worst sets of few and of more classes, judged on rows not searched: the one to show, then by size."""
    auditors = {"sets of classes": SubsetAuditor(random_state=seed)}
    found, _ = corrected(find_all(auditors, sample, halves, ALPHA, seed, n_jobs), (), ALPHA)
    (first,), path = shortened([named_finding(one, groups or {}) for one in found], *auditors)
    return [
        one.to_dict() | {"classes": one.witness.members.tolist(), "series": series}
        for one in (first, *(other for other in path if other is not first))
        if isinstance(one.witness, SubsetWitness)
    ]


def node_marks(nodes: Nodes, sample: Sample) -> list[dict[str, str]]:
    """What all rows show of each node: bounds of all of them hold together."""
    found = (node.to_dict() for node in node_errors(nodes, sample, ALPHA, 1))
    return [{"mark": mark(node), "words": node_words(node)} for node in found]
