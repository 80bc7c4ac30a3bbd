"""Sums over the rows of many slices at once."""

import numpy as np

from polycal._compiled import compiled


@compiled
def bin_sums(codes, rows, stats, n_bins):
    """Sums of the statistics of some rows in each bin; a row whose code is -1 is in none."""
    n_stats = stats.shape[1]
    out = np.zeros((n_bins, n_stats))
    for i in rows:
        b = codes[i]
        if b >= 0:
            for s in range(n_stats):
                out[b, s] += stats[i, s]
    return out
