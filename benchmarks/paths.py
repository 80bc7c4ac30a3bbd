"""Paths of sets: what the worst sets of all sizes cost beside the worst set alone, in seconds of one processor."""

import sys
from time import process_time

from benchmarks.data import prediction_sets
from polycal._threads import thread_budget
from polycal.families.subset import SubsetAuditor
from polycal.sample import split_rows

REPEATS = 3


def seconds(function, sample):
    """The least processor time of some runs."""
    times = []
    for _ in range(REPEATS):
        start = process_time()
        function(sample)
        times.append(process_time() - start)
    return min(times)


def main(names):
    """One line for each set of predictions: half of its evaluation part is searched."""
    auditor = SubsetAuditor()
    for prediction_set in prediction_sets(names or None):
        sample = prediction_set.split().evaluation
        searched = sample.take(split_rows(sample, (1, 1), 0)[0])
        with thread_budget(1):
            auditor.find_path(searched.take(slice(0, 200)))  # compile outside the clock
            alone, path = seconds(auditor.find, searched), seconds(auditor.find_path, searched)
        print(
            f"{prediction_set.name:<26} k = {sample.n_classes:>5,}  n = {searched.n_samples:>6,}  "
            f"one set {alone:6.3f} s  path {path:6.3f} s  ratio {path / alone:4.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
