"""Slices: is one ever shown that is not there, are planted ones found, and what does the search cost?

``python -m benchmarks.slices null|alike|planted|pair|cost [--runs N] [--columns N] [--classes N]``: one line of JSON
with counts. What is counted is what a user is told: any finding in `Audit.slices`. Predictions of ``null`` are right,
those of ``alike`` are too confident in all rows. ``marketing`` tells what is left to find in real predictions (of
``POLYCAL_DATA``) after `KernelCalibrator`, which sees no features.
"""

import argparse
import json
import resource
import time
from functools import partial

import numpy as np

import polycal as pc
from benchmarks.multicalibration import HIDDEN, marketing
from polycal._validation import check_features, check_proba
from polycal.inference.redraw import draw_labels
from polycal.sample import Sample

ALPHA = 0.05


def random_columns(n, n_columns, rng):
    """Columns of every kind that have nothing to do with the labels; some values are missing."""
    columns = {}
    for i in range(n_columns):
        number = rng.standard_normal(n)
        made = (
            number,
            rng.integers(0, 6, n),
            np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
            rng.random(n) < 0.2,
            np.datetime64("2024-01-01", "h") + rng.integers(0, 8760, n).astype("timedelta64[h]"),
            np.where(rng.random(n) < 0.1, np.nan, number),
            rng.integers(0, 300, n).astype(str),
        )[i % 7]
        columns[f"noise {i}"] = made
    return columns


def audited(sample, features):
    """What a user is told of slices, without the other searches of an audit: the level of slices is the same."""
    return pc.audit(
        sample.labels, sample.proba, features=features, notions=[], auditors={}, alpha=ALPHA, n_jobs=1
    ).slices


def null(seed, n_columns, n=2_000, n_classes=10, temperature=1.0):
    """Labels that follow the predictions, or with one temperature for all rows: every slice is false."""
    rng = np.random.default_rng([seed, 1])
    logits = 2.0 * rng.standard_normal((n, n_classes))
    (truth, _), (proba, _) = (check_proba(z, from_logits=True) for z in (logits, logits / temperature))
    sample = Sample(proba, draw_labels(truth, rng))
    found = audited(sample, random_columns(n, n_columns, rng))
    return {"any": bool(found), "bound": any(f.significant for f in found)}


def planted(seed, n_columns, n=10_000, pair=False):
    """One slice that is off, among others and random columns."""
    sample = pc.datasets.make_slices(n, pair=pair, random_state=seed)
    others = check_features(random_columns(n, n_columns - 4, np.random.default_rng([seed, 2])), n)
    found = audited(sample, sample.features.with_columns(others))
    right = {"device", "region"} if pair else {"device"}
    proven = [f for f in found if f.significant and not f.is_learnt]
    return {
        "first": bool(proven) and set(proven[0].rows) == right,
        "any": any(set(f.rows) == right for f in proven),
        "nothing": not found,
    }


def cost(n_columns, n=100_000, n_jobs=2):
    """Seconds and memory of a whole audit with features."""
    sample = pc.datasets.make_slices(n, random_state=0)
    others = check_features(random_columns(n, n_columns - 4, np.random.default_rng(0)), n)
    features = sample.features.with_columns(others)
    # Compiled before it is timed.
    pc.audit(sample.labels[:2000], sample.proba[:2000], features=features.take(slice(0, 2000)))
    times = {}
    for name, options in {
        "whole audit": {},
        "slices alone": {"notions": [], "auditors": {}},
        "without features": {"features": None},
    }.items():
        start, used = time.perf_counter(), time.process_time()
        pc.audit(sample.labels, sample.proba, **({"features": features, "n_jobs": n_jobs} | options))
        times[name] = [round(time.perf_counter() - start, 1), round(time.process_time() - used, 1)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"n": n, "columns": n_columns, "seconds and CPU seconds": times, "peak MiB": peak}


def left_over():
    """What is told of the marketing set, by the columns its model was not shown and by all, after each calibrator."""
    fit, fresh = marketing(0)
    hidden = [_columns(part, HIDDEN) for part in (fit, fresh)]
    multi = pc.MulticalibratedCalibrator().fit(fit.proba, fit.labels, features=hidden[0])
    made = {
        "KernelCalibrator": pc.KernelCalibrator().fit(fit.proba, fit.labels).predict_proba(fresh.proba),
        "MulticalibratedCalibrator": multi.predict_proba(fresh.proba, features=hidden[1]),
    }
    for method, proba in made.items():
        for names in (HIDDEN, fresh.features.names):
            found = audited(Sample(proba, fresh.labels), _columns(fresh, names))
            print(f"after {method}, by {len(names)} columns:", *(found or ["nothing"]), sep="\n  ")


def _columns(part, names):
    return {name: part.features.column(name)[1].astype(int) for name in names}


PARTS = {
    "null": null,
    "alike": partial(null, temperature=0.4),
    "planted": planted,
    "pair": partial(planted, pair=True),
}


def main(arguments=None):
    """Run one part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slices", description=__doc__)
    parser.add_argument("part", choices=(*PARTS, "cost", "marketing"))
    parser.add_argument("--runs", type=int, default=None)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--columns", type=int, default=None)
    parser.add_argument("--classes", type=int, default=10, help="where no slice is planted")
    options = parser.parse_args(arguments)
    if options.part == "cost":
        print(json.dumps(cost(options.columns or 30)))
        return
    if options.part == "marketing":
        left_over()
        return
    runs = options.runs or {"null": 300}.get(options.part, 100)
    classes = {"n_classes": options.classes} if options.part in {"null", "alike"} else {}
    n_columns = options.columns or 20
    counts = {}
    for seed in range(options.first, options.first + runs):
        made = PARTS[options.part](seed, n_columns, **classes)
        for name, is_so in made.items():
            counts[name] = counts.get(name, 0) + int(is_so)
        print(seed, counts, flush=True)
    print(json.dumps({"part": options.part, "runs": runs, "columns": n_columns, **counts}))


if __name__ == "__main__":
    main()
