"""Weights that are counts."""

from dataclasses import replace

import numpy as np

from polycal.families.auditor import weighted_rows
from polycal.sample import Sample

# Larger weights, on average, are not counts of rows.
_MOST_COPIES = 10


def counted_rows(sample: Sample) -> Sample:
    """The sample with each row as often as its weight says, if all weights are whole and not large.

    Such weights are counts: the copies are different observations, which may be in different folds. Other weights say
    how much a row matters; it is one observation, and must not be in two folds.
    """
    weight = sample.sample_weight
    if weight is None:
        return sample
    if (weight == np.round(weight)).all() and weight.sum() <= _MOST_COPIES * sample.n_samples:
        rows = np.repeat(np.arange(sample.n_samples), weight.astype(np.int64))
        return replace(sample.take(rows), sample_weight=None)
    return weighted_rows(sample)
