"""The worst questions, looked for in the background: on one half of the rows, judged on the other.

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
from polycal.auditing.findings import corrected, find_all
from polycal.families.questions import SubsetWitness
from polycal.families.subset import SubsetAuditor
from polycal.sample import Sample

ALPHA = 0.05
# Sets that a person can name; among few classes they are no different question.
_FEW = 3
_MANY_CLASSES = 8

State = Literal["waiting", "searching", "done", "too few rows", "failed"]


class Search:
    """The search for the worst sets of classes, for each set of predictions.

    Attributes
    ----------
    state : str
        Whether it is "waiting" to be started, "searching", "done", or was impossible.
    found : list of dict
        What was found so far: findings as in `Audit.to_dict`, with the series and the indices of the classes.
    """

    def __init__(
        self,
        samples: Mapping[str, Sample],
        halves: tuple[Ints, Ints] | None,
        seed: int,
        n_jobs: int | None = -1,
    ) -> None:
        self.state: State = "too few rows" if halves is None else "waiting"
        self.found: list[dict[str, Any]] = []
        self._work: Any = None if halves is None else (dict(samples), halves, seed, n_jobs)
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
                self.found = [*self.found, *one]
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
    """Receive predictions, halves, seed and n_jobs; send what is found in each set of predictions, then None."""
    if hasattr(os, "nice"):
        os.nice(10)
    samples, halves, seed, n_jobs = connection.recv()
    for series, sample in samples.items():
        connection.send(worst_found(series, sample, halves, seed, n_jobs))
    connection.send(None)


def worst_found(
    series: str, sample: Sample, halves: tuple[Ints, Ints], seed: int, n_jobs: int | None = -1
) -> list[dict[str, Any]]:
    """The worst set of classes and the worst small one, judged on rows that were not searched."""
    auditors = {"any number of classes": SubsetAuditor(random_state=seed)}
    if sample.n_classes >= _MANY_CLASSES:
        auditors[f"at most {_FEW} classes"] = SubsetAuditor(_FEW, random_state=seed)
    findings: dict[tuple[int, ...], dict[str, Any]] = {}
    found, _ = corrected(find_all(auditors, sample, halves, ALPHA, seed, n_jobs), (), ALPHA)
    for finding in found:
        if isinstance(finding.witness, SubsetWitness):
            members = finding.witness.members.tolist()
            findings.setdefault(tuple(members), finding.to_dict() | {"classes": members, "series": series})
    return list(findings.values())
