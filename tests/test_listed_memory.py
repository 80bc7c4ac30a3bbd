"""Lists stay lists: 20,000 rows of 100,000 classes take what their entries take, not 15 GiB."""

import subprocess
import sys
from textwrap import dedent

import pytest

SCRIPT = """
import resource

import numpy as np
from scipy.sparse import csr_array

from polycal import sparse
from polycal.states.lists import TruncatedQuestionState
from polycal.states.lists import TruncatedKernelState


def lists(n, k, m, seed):
    rng = np.random.default_rng(seed)
    # Distinct by construction: one class of each of m equal parts.
    ids = np.arange(m) * (k // m) + ((k // m) * rng.random((n, m)) ** 4).astype(np.int64)
    proba = np.sort(rng.dirichlet(np.full(m, 2.0), n), axis=1)[:, ::-1] * 0.95
    labels = ids[np.arange(n), (rng.random(n)[:, None] > np.cumsum(proba, axis=1)).sum(axis=1).clip(0, m - 1)]
    return labels, csr_array((proba.ravel(), ids.ravel(), np.arange(0, n * m + 1, m)), shape=(n, k))


def work(labels, top, n_landmarks):
    for remainder in ("spread", "anywhere", "class"):
        witness = sparse.find_subset(labels[::2], top[::2], remainder=remainder, n_starts=1)
        sparse.certify(witness, labels[1::2], top[1::2], remainder=remainder)
        sparse.smooth_calibration_error(labels, top, subset=witness.members, remainder=remainder)
    TruncatedQuestionState(np.arange(500), remainder="anywhere").update(labels, top).finish()
    found = TruncatedKernelState(top[:n_landmarks]).update(labels[::2], top[::2]).finish()
    sparse.certify(found, labels[1::2], top[1::2], remainder="anywhere")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


work(*lists(200, 1000, 20, 0), 8)
labels, top = lists(20_000, 100_000, 20, 1)
before = peak()
work(labels, top, 32)
print(before, peak() - before)
"""


@pytest.mark.slow
def test_many_classes_stay_sparse():
    result = subprocess.run(
        [sys.executable, "-c", dedent(SCRIPT)], capture_output=True, text=True, check=True, timeout=300
    )
    beyond = float(result.stdout.split()[1])
    # 6 MiB of entries; the kernel state has 32 numbers for each class, 25 MiB, and its witness half of that.
    assert beyond < 160
