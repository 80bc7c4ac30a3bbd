"""Subsets of classes: trying all of them, searching, and how well what is found holds on unseen rows."""

from time import perf_counter

import numpy as np
from tests.reference_subset import random_case

from benchmarks.data import data_folder, prediction_sets
from polycal._validation import check_sample
from polycal.families.subset import SubsetAuditor, enumerate_subsets, search_subsets
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset

KINDS = ("noise", "calibrated", "confidence", "confusion")
N_RANDOM = 200
# With fewer classes, 200 random subsets are nearly all of them.
MANY_CLASSES = 21
ENOUGH_ROWS = 10


def case(n_classes, n_rows, kind, seed):
    """A random sample."""
    return check_sample(*random_case(np.random.default_rng(seed), n_classes, n_rows, kind))


def timed(function):
    """Seconds, and the result."""
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def print_times():
    """How long the searches take."""
    print("seconds")
    sample = case(14, 10_000, "confusion", 0)
    seconds, found = timed(lambda: enumerate_subsets(sample))
    print(f"  {'all subsets':<18} k =    14, n = 10,000  {seconds:6.2f}   {found.n_evaluated:,} subsets")
    for k, n in ((100, 5000), (1000, 5000)):
        sample = case(k, n, "confusion", 0)
        for name, search in (("SubsetAuditor", SubsetAuditor().find), ("search_subsets", search_subsets)):
            seconds, _ = timed(lambda search=search, sample=sample: search(sample))
            print(f"  {name:<18} k = {k:>5,}, n = {n:>6,}  {seconds:6.2f}")


def print_agreement(n_cases=200):
    """How often the search finds the largest error."""
    found = 0
    for seed in range(n_cases):
        sample = case(3 + seed % 10, (50, 200, 1000)[seed % 3], KINDS[seed % 4], seed)
        found += search_subsets(sample).value >= enumerate_subsets(sample).value - 1e-9
    print(f"search equals enumeration in {found} of {n_cases} random cases (3 to 12 classes)")


def unseen_errors(sample, seed):
    """What was found on one half of the rows, judged on the other half.

    Returns
    -------
    ours, random : float
        The error of the auditor's set, and that of the best of random sets.
    correlation : float
        What the auditor's whole witness attains, weight function included. Below 0 the halves err in opposite
        ways, as the class frequencies of balanced data do: nothing was found.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(sample.n_samples)
    seen, unseen = sample.take(order[::2]), sample.take(order[1::2])
    sets = [np.flatnonzero(draw) for draw in rng.random((N_RANDOM, sample.n_classes)) < 0.5 if draw.any()]
    chosen = max(sets, key=lambda members: smooth_error(ask_subset(seen, members)))
    witness = SubsetAuditor().find(seen)
    ours, random = (smooth_error(ask_subset(unseen, members)) for members in (witness.members, chosen))
    return ours, random, witness.correlation(unseen)


def unseen_rows(n_splits=8):
    """One row for each set of predictions: means over random halves, and of the ratios of each split."""
    for prediction_set in prediction_sets():
        sample = prediction_set.split().evaluation
        ours, random, correlation = np.transpose([unseen_errors(sample, seed) for seed in range(n_splits)])
        yield {
            "set": prediction_set.name,
            "n_classes": sample.n_classes,
            "rows_per_class": sample.n_samples / 2 / sample.n_classes,
            "ours": ours.mean(),
            "random": random.mean(),
            "ratio": (ours / random).mean(),
            "correlation": correlation.mean(),
        }


def print_unseen():
    """The found subset against the best of 200 random ones, on the half not searched."""
    print(
        f"smooth calibration error on unseen rows: SubsetAuditor against the best of {N_RANDOM} random subsets"
    )
    if data_folder() is None:
        print("  missing: set POLYCAL_DATA to a folder of predictions")
        return
    rows = []
    for row in unseen_rows():
        rows.append(row)
        print(
            f"  {row['set']:<26} k = {row['n_classes']:>5,}  {row['rows_per_class']:7.1f} rows a class  "
            f"{row['ours']:.4f} against {row['random']:.4f}  ratio {row['ratio']:5.2f}  "
            f"witness {row['correlation']:+.4f}"
        )
    many = [row for row in rows if row["n_classes"] >= MANY_CLASSES]
    enough = [row for row in many if row["rows_per_class"] >= ENOUGH_ROWS]
    for name, some in (
        ("all", rows),
        (f"{MANY_CLASSES} classes or more", many),
        (f"and {ENOUGH_ROWS} rows a class or more", enough),
    ):
        print(f"  mean ratio, {name}: {np.mean([row['ratio'] for row in some]):.2f}")


def main():
    """Print all tables."""
    enumerate_subsets(case(4, 20, "noise", 0))  # compile outside the clock
    search_subsets(case(4, 20, "noise", 0))
    SubsetAuditor().find(case(4, 20, "noise", 0))
    print_times()
    print_agreement()
    print_unseen()


if __name__ == "__main__":
    main()
