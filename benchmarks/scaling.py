"""``python -m benchmarks.scaling [--quick]``: the cost model of docs/scaling.md against measurements."""

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

import polycal as pc
from polycal.auditing.audit import audit_source, audit_stream, make_plan
from polycal.auditing.passes import show
from polycal.auditing.source import FileSource
from polycal.families.kernel import KernelAuditor
from polycal.io.chunks import open_predictions
from polycal.sample import Sample
from polycal.states.kernel import KernelState, choose_landmarks
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.sums import BinnedState, ScoreState

BLOCK = 5_000


def draw(n_rows, n_classes, seed):
    """Predictions that are too sure of themselves, and confuse some classes in a fixed way."""
    rng, structure = np.random.default_rng(seed), np.random.default_rng(1)
    confused = np.zeros((n_classes, n_classes), dtype=np.float32)
    for row in confused:
        row[structure.choice(n_classes, 3, replace=False)] = structure.normal(0, 1.5, 3)
    centres = structure.normal(0, 1, (n_classes, n_classes)).astype(np.float32)
    centres[np.diag_indices(n_classes)] += 2 + np.log(n_classes)
    proba, labels = np.empty((n_rows, n_classes), dtype=np.float32), np.empty(n_rows, dtype=np.int64)
    for start in range(0, n_rows, BLOCK):
        rows = slice(start, min(start + BLOCK, n_rows))
        size = rows.stop - start
        logits = centres[rng.integers(0, n_classes, size)]
        logits = logits + 2 * rng.standard_normal((size, n_classes), dtype=np.float32)
        proba[rows] = softmax(logits)
        truth = softmax(logits / 1.3 + proba[rows] @ confused)
        labels[rows] = (truth.cumsum(axis=1) < rng.random((size, 1))).sum(axis=1).clip(0, n_classes - 1)
    return Sample(proba, labels)


def softmax(logits):
    """Row-wise."""
    out = np.exp(logits - logits.max(axis=1, keepdims=True))
    return out / out.sum(axis=1, keepdims=True)


def seconds(function):
    """One run's time and result."""
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def fill(state, sample):
    """Show a sample to a state in chunks."""
    for start in range(0, sample.n_samples, 10_000):
        rows = np.arange(start, min(start + 10_000, sample.n_samples))
        state.absorb(sample.take(slice(rows[0], rows[-1] + 1)), rows)
    return state


def sketched_against_exact(n_rows, n_classes):
    """Held-out correlation and time of the two kernel searches."""
    fit, fresh = draw(n_rows, n_classes, 0), draw(10_000, n_classes, 1)
    exact_time, exact = seconds(lambda: KernelAuditor(max_samples=None).find(fit))
    state_time, sketched = seconds(
        lambda: fill(KernelState(choose_landmarks(fit.take(slice(0, 8_000)))), fit).finish()
    )
    kept = sketched.correlation(fresh) / exact.correlation(fresh)
    n_landmarks = sketched.points.shape[0]
    print(
        f"kernel, n = {n_rows:,}, k = {n_classes}: exact {exact_time:.1f} s, {n_landmarks} landmarks "
        f"{state_time:.2f} s ({exact_time / state_time:.0f} times faster), keeps {kept:.1%}"
    )


def best_pair(one, two, least=0.05, repeats=7):
    """The best times of two functions, run in turn; short ones several times over."""
    for function in (one, two):
        function()
    loops = max(1, round(least / seconds(one)[0]))

    def per_loop(function):
        return seconds(lambda: [function() for _ in range(loops)])[0] / loops

    times = [(per_loop(one), per_loop(two)) for _ in range(repeats)]
    return tuple(map(min, zip(*times, strict=True)))


def rates_of_states(sample):
    """Nanoseconds per cell of each state on one core, and the gain of a second one."""
    cells = sample.proba.size
    makers = {
        "scores": ScoreState,
        "binned": BinnedState,
        "classes": ClassesState,
        "question, exact": lambda: QuestionState([0, 1, 2]),
        "question, cells": lambda: QuestionState([0, 1, 2], resolution=2.0**-16),
        "confidence, cells": lambda: QuestionState(resolution=2.0**-16),
        "kernel": lambda: KernelState(choose_landmarks(sample.take(slice(0, 4_000)))),
    }
    half = sample.n_samples // 2
    parts = sample.take(slice(0, half)), sample.take(slice(half, 2 * half))
    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        for name, make in makers.items():
            # Not timed: making them.
            states = make(), make()

            def alone(states=states):
                return [fill(deepcopy(s), p) for s, p in zip(states, parts, strict=True)]

            def together(states=states):
                return list(pool.map(lambda s, p: fill(deepcopy(s), p), states, parts))

            one, two = best_pair(alone, together)
            print(
                f"{name}: {one / cells * 1e9:.2f} ns a cell on one core; two cores {one / two:.2f} times faster"
            )


def write_npy(folder, n_rows, n_classes, seed=2):
    """Predictions in a folder."""
    sample = draw(n_rows, n_classes, seed)
    np.save(Path(folder, "a.npy"), sample.proba)
    np.save(Path(folder, "a.labels.npy"), sample.labels)


@cache
def prepared(folder):
    """The files of a folder, and what each of the three passes over them starts with."""
    files, tasks = open_predictions(folder), []

    class Recorded(FileSource):
        """Keeps what each pass starts with."""

        def run(self, task, n_jobs):
            tasks.append(deepcopy(task))
            return super().run(task, n_jobs)

    source = Recorded(files)
    audit_source(source, make_plan(source, None, None, None, None, 0.05, 0, -1))
    return files, tasks


def shown(task, files, n_threads):
    """A copy of a pass after all rows."""
    return show(deepcopy(task), files.unread_chunks(n_threads), n_threads)


def passes(n_rows, n_classes):
    """The three passes over a mapped array on one and on two threads; the searches between them are left out."""
    with tempfile.TemporaryDirectory() as folder:
        write_npy(folder, n_rows, n_classes)
        files, tasks = prepared(folder)
        with threadpool_limits(1):
            pairs = [
                best_pair(
                    lambda task=task: shown(task, files, 1),
                    lambda task=task: shown(task, files, 2),
                    repeats=5,
                )
                for task in tasks
            ]
    pairs.append(tuple(map(sum, zip(*pairs, strict=True))))
    for name, (one, two) in zip(("pass 1", "pass 2", "pass 3", "all passes"), pairs, strict=True):
        print(
            f"{name}, n = {n_rows:,}, k = {n_classes}: {one:.2f} s on one core, {two:.2f} s on two: "
            f"{one / two:.2f} times faster"
        )


def seconds_of_passes(folder):
    """The three passes on one thread, without the searches; the first call in a process prepares."""
    files, tasks = prepared(folder)
    with threadpool_limits(1):
        return seconds(lambda: [shown(task, files, 1) for task in tasks])[0]


def processes(n_rows, n_classes):
    """The same passes over two halves, in two processes that share nothing: what a second core can give."""
    with tempfile.TemporaryDirectory() as folder:
        halves = [str(Path(folder, name)) for name in "ab"]
        for half in halves:
            Path(half).mkdir()
            write_npy(half, n_rows // 2, n_classes)
        with (
            ProcessPoolExecutor(1, get_context("spawn")) as first,
            ProcessPoolExecutor(1, get_context("spawn")) as second,
        ):
            pools = list(zip((first, second), halves, strict=True))
            for pool, half in pools:
                pool.submit(seconds_of_passes, half).result()
            alone = min(first.submit(seconds_of_passes, halves[0]).result() for _ in range(5))
            together = []
            for _ in range(5):
                tasks = [pool.submit(seconds_of_passes, half) for pool, half in pools]
                together.append(max(task.result() for task in tasks))
    print(
        f"all passes, n = {n_rows:,}, k = {n_classes}, in two processes: {min(together):.2f} s, "
        f"{2 * alone / min(together):.2f} times faster than one after the other"
    )


def streams(sizes, n_classes):
    """Rows a second of a whole audit of Parquet files, after a warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        part = draw(min(sizes), n_classes, 2)
        for number in range(max(sizes) // part.n_samples):
            pc.write_predictions(Path(folder, f"{number:03}.parquet"), part.labels, part.proba)
        times = {}
        files = sorted(Path(folder).iterdir())
        audit_stream(files[:1])
        for n_rows in sizes:
            times[n_rows], _ = seconds(lambda n=n_rows: audit_stream(files[: n // part.n_samples]))
            print(
                f"audit_stream, n = {n_rows:,}, k = {n_classes}: {times[n_rows]:.1f} s, "
                f"{n_rows / times[n_rows]:,.0f} rows a second"
            )
        print(f"ten times the rows: {times[max(sizes)] / times[min(sizes)]:.1f} times the time")


def main(arguments=None):
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute")
    quick = parser.parse_args(arguments).quick
    rates_of_states(draw(20_000 if quick else 100_000, 100, 0))
    passes(50_000 if quick else 300_000, 100)
    processes(50_000 if quick else 300_000, 100)
    streams((10_000, 100_000) if quick else (100_000, 1_000_000), 100)
    for n_classes in (100,) if quick else (100, 1_000):
        sketched_against_exact(10_000 if quick else 50_000, n_classes)


if __name__ == "__main__":
    main()
