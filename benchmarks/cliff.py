"""Time of an audit by the number of classes: no step up or down where one algorithm takes over from another.

Run with ``python -m benchmarks.cliff``.
"""

from functools import partial

import numpy as np

import polycal as pc
from benchmarks.timing import best_times

CLASSES = (10, 12, 14, 16, 18, 20, 26)
N_ROWS = 3000
# An audit may take so many times as long as one with some classes more or fewer.
LIMIT = 3.0


def case(n_classes, n_rows=N_ROWS):
    """Over-confident predictions."""
    rng = np.random.default_rng(n_classes)
    logits = rng.normal(size=(n_rows, n_classes)) * 1.5
    truth, proba = (np.exp(power * logits) for power in (1.0, 1.3))
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    return labels, proba / proba.sum(axis=1, keepdims=True)


def seconds(classes=CLASSES, repeats=3):
    """Of the fastest audit of each, by number of classes; they take turns."""
    audits = [partial(pc.audit, *case(k)) for k in classes]
    audits[0]()  # compile outside the clock
    return dict(zip(classes, best_times(audits, repeats), strict=True))


def steps(times):
    """By how much each time differs from the one before, as a factor of at least 1."""
    values = np.array(list(times.values()))
    return np.maximum(values[1:] / values[:-1], values[:-1] / values[1:])


def main():
    """One line for each number of classes."""
    times = seconds()
    for k, step in zip(CLASSES, [1.0, *steps(times)], strict=True):
        print(f"{k:>3} classes {times[k]:8.2f} s  {step:5.2f} times the one before or its inverse")
    print(f"largest step {steps(times).max():.2f}, allowed {LIMIT}")


if __name__ == "__main__":
    main()
