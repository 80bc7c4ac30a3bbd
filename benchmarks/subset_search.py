"""Subset search: the worst subset of the classes as found by us, by trying every one, and by random trials.

Each searches one half of a set's evaluation part; what it found is measured there and on the other half.
"""

from time import perf_counter

import numpy as np

import polycal as pc
from benchmarks.data import prediction_sets
from benchmarks.store import Store
from polycal.families.subset import SubsetAuditor, affordable, enumerate_subsets, search_subsets
from polycal.inference.redraw import draw_labels

KEY = ("set", "method")
SETS = ("fashion_mlp", "letter_forest", "cifar100_densenet121", "magika_files", "imagenet5k_effnet_lite0")
QUICK_SETS = SETS[:2]
# Redraws of the labels for what calibrated predictions would read.
DRAWS = 20


def main(options):
    """Search every set anew, since times are of one run."""
    store = Store(options.results / "subset_search.jsonl", KEY)
    store.clear()
    there = {s.name for s in prediction_sets()}
    wanted = QUICK_SETS if options.quick else SETS
    for prediction_set in prediction_sets([name for name in wanted if name in there]):
        for row in compare(prediction_set.split().evaluation):
            store.add({"set": prediction_set.name, **row})
            print(describe(prediction_set.name, row), flush=True)
    store.compact()


def compare(sample, seed=0):
    """One row for each way to search."""
    order = np.random.default_rng([seed, 1]).permutation(sample.n_samples)
    fit, held_out = (sample.take(np.sort(half)) for half in np.array_split(order, 2))
    searches = {
        "polycal search": lambda: search_subsets(fit, seed=seed).members,
        "polycal auditor": lambda: (
            SubsetAuditor(random_state=seed).find_witness(fit.labels, fit.proba).members
        ),
    }
    if affordable(fit):
        searches["every subset"] = lambda: enumerate_subsets(fit).members
    searches["polycal search"]()  # compile outside the clock
    budget = 0.0
    for method, search in searches.items():
        row = judged(method, search, fit, held_out)
        budget = budget or row["seconds"]
        yield row
    yield judged(
        "random subsets, as long as polycal search", lambda: random_search(fit, budget, seed), fit, held_out
    )


def judged(method, search, fit, held_out):
    """Seconds, and the smooth calibration error of what was found on both halves."""
    start = perf_counter()
    members = search()
    seconds = perf_counter() - start
    return {
        "method": method,
        "k": fit.n_classes,
        "n": fit.n_samples,
        "seconds": seconds,
        "size": int(members.size),
        "seen": pc.smooth_calibration_error(fit.labels, fit.proba, subset=members),
        "held_out": pc.smooth_calibration_error(held_out.labels, held_out.proba, subset=members),
        "noise_floor": noise_floor(held_out, members),
    }


def random_search(sample, seconds, seed):
    """The best of random subsets, for this long."""
    rng = np.random.default_rng(seed)
    best, found, stop = -1.0, np.array([0]), perf_counter() + seconds
    while perf_counter() < stop or best < 0:
        members = np.flatnonzero(rng.random(sample.n_classes) < rng.random())
        if 0 < members.size < sample.n_classes:
            value = pc.smooth_calibration_error(sample.labels, sample.proba, subset=members)
            if value > best:
                best, found = value, members
    return found


def noise_floor(sample, members, seed=0):
    """What the subset's error would read on this many rows if predictions were calibrated."""
    rng = np.random.default_rng(seed)
    drawn = (draw_labels(sample.proba, rng) for _ in range(DRAWS))
    return float(np.mean([pc.smooth_calibration_error(y, sample.proba, subset=members) for y in drawn]))


def describe(name, row):
    """One line of progress."""
    return (
        f"{name:<24} {row['method']:<42} {row['seconds']:8.2f} s  {row['size']:>4} of {row['k']} classes  "
        f"seen {row['seen']:.4f}  held out {row['held_out']:.4f}  floor {row['noise_floor']:.4f}"
    )
