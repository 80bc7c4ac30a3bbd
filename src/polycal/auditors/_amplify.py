"""Amplification: a witness w that seldom comes near 1 may be replaced by ``clip(c w, -1, 1)``."""

import numpy as np

from polycal._typing import Float64s, Floats

# Amplifications 1, 2, 4, ..., up to this power of two; the last ones are the sign of the witness.
_OCTAVES = 20
AMPLIFICATIONS: Float64s = np.exp2(np.arange(_OCTAVES + 1, dtype=np.float64))


def amplified_gains(residual: Floats, values: Float64s, scale: Float64s) -> Float64s:
    """``sum_ij residual_ij clip(c values_ij scale_j, -1, 1)`` for every c of `AMPLIFICATIONS`, in one pass."""
    from polycal._compiled.kernels import octave_sums  # noqa: PLC0415 - imports numba

    inside, outside = octave_sums(residual, values, scale, _OCTAVES)
    within = np.cumsum(inside[::-1])[::-1]
    beyond = np.concatenate([[0.0], np.cumsum(outside)[:-1]])
    gains: Float64s = AMPLIFICATIONS * within + beyond
    return gains
