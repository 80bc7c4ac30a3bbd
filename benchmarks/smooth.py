"""The exact smooth calibration error against its floor (a sort) and against the linear program."""

import numpy as np
from tests import reference

import polycal as pc
from benchmarks.timing import best_times


def predictions(n, kind, rng):
    """Predicted probabilities and outcomes: calibrated, over-confident, or concentrated near 0 and 1."""
    u = rng.beta(0.1, 0.1, n) if kind == "extreme" else rng.random(n)
    truth = u**1.3 if kind == "biased" else u
    return u, (rng.random(n) < truth).astype(np.int64)


def against_sort(n, kind):
    """Public call (validation included) and its curve form, as multiples of np.argsort of the same values."""
    u, y = predictions(n, kind, np.random.default_rng(0))
    sort, error, curve, weighted = best_times(
        [
            lambda: np.argsort(u),
            lambda: pc.smooth_calibration_error(y, u),
            lambda: pc.smooth_calibration_curve(y, u),
            lambda: pc.smooth_calibration_error(y, u, sample_weight=u),
        ],
        repeats=3 if n > 10**6 else 7,
    )
    print(
        f"  n = {n:>10,}  {kind:<10}  argsort {sort * 1e3:8.2f} ms   "
        f"error {error / sort:5.2f}x   curve {curve / sort:5.2f}x   weighted {weighted / sort:5.2f}x"
    )


def against_linear_program(n):
    """Times faster than HiGHS on the same instance, and the difference of the two values."""
    u, y = predictions(n, "biased", np.random.default_rng(1))
    residual = (y - u) / n
    values = []
    ours, highs = best_times(
        [
            lambda: values.append(pc.smooth_calibration_error(y, u)),
            lambda: values.append(reference.smooth_error_lp(u, residual, tolerance=1e-7)),  # HiGHS's default
        ],
        repeats=1 if n > 3000 else 3,
    )
    difference = abs(values[0] - values[1])
    print(
        f"  n = {n:>10,}  HiGHS {highs:6.2f} s   {highs / ours:8.0f} times faster   |difference| {difference:.1e}"
    )


def main():
    """Print both tables."""
    pc.smooth_calibration_error([0, 1], [0.2, 0.7], sample_weight=[1, 1])  # compile outside the clock
    pc.smooth_calibration_curve([0, 1], [0.2, 0.7])
    print("smooth_calibration_error, as multiples of np.argsort of the same values")
    for n in (10**3, 10**4, 10**5, 10**6, 10**7):
        for kind in ("calibrated", "biased", "extreme"):
            against_sort(n, kind)
    print("smooth_calibration_error against the linear program (SciPy's HiGHS)")
    for n in (10**3, 10**4):
        against_linear_program(n)
