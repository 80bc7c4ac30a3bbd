"""Our calibrators: the time of predicting as a multiple of a softmax of the same rows."""

import numpy as np
from sklearn.base import clone
from tests.calibrators.catalogue import OWN
from tests.calibrators.draws import tempered

from benchmarks.timing import best_times

N_FIT, N_ROWS, N_CLASSES = 1_000, 10_000, 100


def softmax(logits):
    """The floor: most calibrators end with one."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def main():
    """Print the multiples; none should be above 25."""
    proba, labels, _ = tempered(2.0, n=N_ROWS, k=N_CLASSES)
    logits = np.log(proba)
    print(f"predict_proba, as multiples of a softmax of the same {N_ROWS:,} rows of {N_CLASSES} classes")
    for calibrator in OWN:
        fitted = clone(calibrator).fit(proba[:N_FIT], labels[:N_FIT])
        floor, seconds = best_times(
            [lambda: softmax(logits), lambda fitted=fitted: fitted.predict_proba(proba)]
        )
        print(f"  {calibrator!r:<58}  softmax {floor * 1e3:5.1f} ms   {seconds / floor:5.1f}x")
