"""Measuring: seconds, memory and growth of each way to measure calibration, in one run on one machine.

Every call runs in a process of its own, ours too, so that memory can be told apart, and a call that is slow or
wants too much memory stopped. The calls take turns size by size, so that drift of the machine hits all alike.
"""

import numpy as np

from benchmarks import subset_search
from benchmarks.peers.environments import environment
from benchmarks.peers.measures import MEASURES
from benchmarks.peers.processes import Limits, run_job
from benchmarks.ranking import log_log_slope
from benchmarks.store import Store

KEY = ("curve", "n", "k", "method")
# Beside these the others are given as multiples.
REFERENCE = {"binary, growing n": "polycal smooth error", "vectors, growing n": "polycal kernel error"}
REFERENCE["vectors, growing k"] = REFERENCE["vectors, growing n"]


def main(options):
    """Measure everything anew, since ratios are of one run, and print times and slopes."""
    store = Store(options.results / "measuring.jsonl", KEY)
    store.clear()
    limits = Limits(options.time_limit or (30 if options.quick else 180))
    missing = {}
    for curve, kind, n, k in grid(options.quick):
        arrays = predictions(kind, n, k)
        for name, measure in MEASURES.items():
            if measure.kind != kind:
                continue
            place = environment(measure.environment, create=not options.no_install)
            if place.reason(measure.package) is not None:
                missing[name] = place.reason(measure.package)
                continue
            row = {"curve": curve, "n": n, "k": k, "method": name}
            row |= measured(place.python, name, measure, arrays, row, store, limits)
            store.add(row)
            print(describe(row), flush=True)
    store.compact()
    print_slopes(store.rows)
    subset_search.main(options)
    return missing


def grid(quick):
    """(curve, kind, n, k) of every input."""
    sizes = (10**3, 10**4, 10**5) if quick else (10**3, 10**4, 10**5, 10**6, 10**7)
    pairs = (1000, 2000, 4000) if quick else (1000, 2000, 5000, 10_000, 20_000)
    classes = (10, 100) if quick else (10, 30, 100, 300, 1000)
    return [
        *(("binary, growing n", "binary", n, 2) for n in sizes),
        *(("vectors, growing n", "kernel", n, 100) for n in pairs),
        *(("vectors, growing k", "kernel", 4000, k) for k in classes),
    ]


def predictions(kind, n, k):
    """Predictions that are a little too sure, with labels."""
    rng = np.random.default_rng(0)
    if kind == "binary":
        proba = rng.random(n)
        return {"proba": proba, "labels": (rng.random(n) < proba**1.3).astype(np.int64)}
    logits = rng.normal(size=(n, k)) * 2
    truth, proba = (softmax(logits * sharpness) for sharpness in (1.0, 1.3))
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return {"proba": proba, "labels": labels}


def softmax(logits):
    """Rows as probabilities."""
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


def measured(python, name, measure, arrays, row, store, limits):
    """The worker's result; an input larger than one that took too long is not tried."""
    for other in store.rows:
        same = other["curve"] == row["curve"] and other["method"] == name
        smaller = other["n"] <= row["n"] and other["k"] <= row["k"]
        if same and smaller and other["status"] == "time limit":
            return {"status": "time limit", "error": f"not tried, as {other['n']:,} rows took too long"}
    repeats = 5 if row["n"] * row["k"] <= 10**6 else 2
    job = {"task": "measure", "method": name, "package": measure.package, "repeats": repeats}
    return run_job(python, job, arrays, limits)


def describe(row):
    """One line of progress."""
    head = f"{row['curve']:<20} n {row['n']:>10,} k {row['k']:>4}  {row['method']:<26}"
    if row["status"] != "ok":
        return f"{head} {row['status']}: {row['error']}"
    return f"{head} {row['seconds']:10.4g} s  {row['peak_bytes'] / 2**20:8.1f} MiB  value {row['value']:.6f}"


def slopes(rows):
    """{(curve, method): exponent of its growth in n or k}."""
    times = {}
    for row in rows:
        if row["status"] == "ok":
            size = row["k"] if row["curve"].endswith("k") else row["n"]
            times.setdefault((row["curve"], row["method"]), []).append((size, row["seconds"]))
    return {
        key: log_log_slope(*zip(*points, strict=True)) for key, points in times.items() if len(points) > 1
    }


def print_slopes(rows):
    """How each method grows, over the larger half of its sizes."""
    print("growth: seconds ~ size^p")
    for (curve, method), slope in slopes(rows).items():
        print(f"  {curve:<20} {method:<26} p = {slope:.2f}")
