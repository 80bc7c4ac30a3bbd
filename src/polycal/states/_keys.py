"""Random numbers of rows that depend on their place in the data, not on the chunk they came in."""

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Ints

Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_keys(rows: Ints, seed: int, purpose: int) -> Keys:
    """A number of 64 random bits for each place; draws for different purposes are independent.

    SplitMix64 [1]_ of the place, started where the seed and the purpose say.

    References
    ----------
    .. [1] Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators".
    """
    start = np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)
    keys: Keys = start + rows.astype(np.uint64) * _STEP
    for shift, factor in zip((30, 27), _MIX, strict=True):
        keys = (keys ^ (keys >> np.uint64(shift))) * factor
    return keys ^ (keys >> np.uint64(31))
