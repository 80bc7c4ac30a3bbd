"""Do jobs in this interpreter, one for each line of standard input. Needs NumPy and nothing else of the project.

A line is the path of a job: its task, its method, a file with the input arrays and where to put the result.
Imports, compilation and the first call of anything lazy happen in a warm-up on a tiny problem, before the clock
starts and before the memory's mark is set, for every method alike.
"""

import contextlib
import gc
import importlib
import json
import resource
import sys
import traceback
import warnings
from importlib import metadata
from pathlib import Path
from time import perf_counter

import numpy as np


def main(lines):
    """Do the jobs as they come."""
    warnings.filterwarnings("ignore")
    for number, line in enumerate(lines):
        job = json.loads(Path(line.strip()).read_text())
        # One process has one method.
        do({"warm_up": number == 0, **job})


def do(job):
    """Do a job and write its result, or the error that stopped it."""
    try:
        with np.load(job["input"], allow_pickle=False) as arrays:
            given = {name: arrays[name] for name in arrays.files}
        result = {"status": "ok", **TASKS[job["task"]](job, given)}
    except BaseException as error:  # whatever a peer raises is its result
        result = {"status": "failed", "error": describe(error)}
    # In one piece: who waits for it looks for the file.
    written = Path(job["result"]).with_suffix(".part")
    written.write_text(json.dumps(result))
    written.rename(job["result"])


def describe(error):
    """The error in one line, with where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}{place}"


def recalibrate(job, given):
    """Fit on the calibration part, predict the evaluation part, and write the predictions."""
    fit = find_recalibrator(job["method"])
    warm_up(lambda: fit(*tiny_problem())(tiny_problem()[0]), job)
    with watched_memory(job["memory_limit"]) as memory:
        start = perf_counter()
        predict = fit(given["proba"], given["labels"])
        middle = perf_counter()
        out = np.asarray(predict(given["new_proba"]), dtype=np.float64)
        end = perf_counter()
    np.save(job["output"], out)
    return {"fit_seconds": middle - start, "predict_seconds": end - middle, **memory, "version": version(job)}


def measure(job, given):
    """Time one measure of calibration on one input, the best of several runs."""
    function = find(job["method"], "measures", "MEASURES")
    warm_up(lambda: function(*(array[:100] for array in (given["proba"], given["labels"]))), job)
    seconds = []
    with watched_memory(job["memory_limit"]) as memory:
        for _ in range(job["repeats"]):
            start = perf_counter()
            value = function(given["proba"], given["labels"])
            seconds.append(perf_counter() - start)
    return {"seconds": min(seconds), "value": float(value), **memory, "version": version(job)}


def test(job, given):
    """p-values of one test on many samples, stacked along the first axis: as many as there is time for."""
    function = find(job["method"], "hypothesis_tests", "TESTS")
    warm_up(lambda: function(*tiny_problem()), job)
    p_values, start = [], perf_counter()
    for proba, labels in zip(given["proba"], given["labels"], strict=True):
        p_values.append(float(function(proba, labels)))
        if perf_counter() - start > job["seconds"]:
            break
    seconds = (perf_counter() - start) / len(p_values)
    return {"p_values": p_values, "seconds": seconds, "version": version(job)}


TASKS = {"recalibrate": recalibrate, "measure": measure, "test": test}


def find(method, module, table):
    """The call of a peer, from the tables beside this file."""
    return getattr(importlib.import_module(f"benchmarks.peers.{module}"), table)[method].call


def find_recalibrator(method):
    """``fit`` by its name in the table, or that of any class with fit and predict_proba, given as module:Class."""
    recalibrators = importlib.import_module("benchmarks.peers.recalibrators")
    if ":" not in method:
        return recalibrators.RECALIBRATORS[method].fit
    module, _, name = method.partition(":")
    made = getattr(importlib.import_module(module), name)
    return lambda proba, labels: recalibrators.fitted(made(), proba, labels)


def tiny_problem():
    """Forty predictions over four classes, each of which occurs."""
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(4), 40), np.arange(40) % 4


def warm_up(call, job):
    """Make the first call, whose failure on a tiny problem means nothing, and say that the clock may start."""
    if job["warm_up"]:
        with contextlib.suppress(Exception):
            call()
    Path(job["result"]).with_suffix(".warm").touch()


@contextlib.contextmanager
def watched_memory(limit):
    """Fill the yielded dictionary with the largest memory used inside, beyond what was used before."""
    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before, used = peak_memory(), {}
    restrict_memory(limit)
    try:
        yield used
    finally:
        restrict_memory(None)
    used["peak_bytes"] = max(0, peak_memory() - before)


def peak_memory():
    """The high-water mark of resident memory in bytes: since the mark was reset, where the system can do that."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * _field(status, "VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def restrict_memory(limit):
    """Let allocations beyond what is mapped now plus the limit fail; None lifts the limit."""
    status = Path("/proc/self/status")
    if status.exists():
        most = resource.RLIM_INFINITY if limit is None else 1024 * _field(status, "VmSize") + limit
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def _field(status, name):
    line = next(line for line in status.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1])


def version(job):
    """The version of the package the method comes from."""
    try:
        return metadata.version(job["package"])
    except metadata.PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    # The folders of the project come last, and this one not at all: they must not hide a peer's modules.
    sys.path[:] = [*sys.path[1:], str(Path(__file__).parents[2])]
    main(sys.stdin)
