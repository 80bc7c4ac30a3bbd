"""The kernel auditor against its floor, two raw matrix products, and its memory beyond the input."""

import subprocess
import sys

import numpy as np

from benchmarks.timing import best_times
from polycal.families.kernel import KernelAuditor
from polycal.kernels.kernels import Multinomial

N, K, DEGREE = 20_000, 1_000, 8

PEAK = """
import resource
from benchmarks.kernel import auditor, predictions
labels, proba = predictions({n}, {k})
auditor(amplify={amplify}).find_witness(labels[:50], proba[:50])  # compile before the first reading
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
auditor(amplify={amplify}).find_witness(labels, proba)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""


def predictions(n, k):
    """Labels and float32 predictions, peaked like a classifier's."""
    rng = np.random.default_rng(0)
    proba = rng.standard_exponential((n, k), dtype=np.float32)
    proba **= 8  # in place, so that the peak so far is the input itself
    proba /= proba.sum(axis=1, keepdims=True)
    return rng.integers(0, k, n), proba


def auditor(*, amplify):
    """The auditor measured."""
    return KernelAuditor(Multinomial(DEGREE), amplify=amplify, max_samples=None)


def raw_products(proba, residual):
    """The floor: the matrix of inner products, then its product with the residuals."""
    return (proba @ proba.T) @ residual


def peak_gib(n, k, *, amplify):
    """Memory beyond the input, in GiB, read off a process of its own."""
    code = PEAK.format(n=n, k=k, amplify=amplify)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main():
    """Print times (validation included) as multiples of the raw products, and peak memory."""
    labels, proba = predictions(N, K)
    residual = -proba
    residual[np.arange(N), labels] += 1
    auditor(amplify=True).find_witness(labels[:50], proba[:50])  # compile outside the clock
    raw, plain, amplified = best_times(
        [
            lambda: raw_products(proba, residual),
            lambda: auditor(amplify=False).find_witness(labels, proba),
            lambda: auditor(amplify=True).find_witness(labels, proba),
        ],
        repeats=3,
    )
    print(
        f"KernelAuditor, n = {N:,}, k = {K:,}, degree {DEGREE}, as multiples of P @ P.T and K @ Z in float32"
    )
    for name, seconds, amplify in (("Algorithm 2", plain, False), ("amplified", amplified, True)):
        print(
            f"  {name:<12} {seconds:6.2f} s   {seconds / raw:5.2f}x of {raw:.2f} s   "
            f"{peak_gib(N, K, amplify=amplify):.2f} GiB beyond the input"
        )


if __name__ == "__main__":
    main()
