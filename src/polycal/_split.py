"""Parting the rows of a sample at random, by what they hold and not by where they stand.

Never by label: parts that share the noise of the label frequencies make calibrated predictions look wrong.
"""

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import Sample, row_blocks


def split_rows(sample: Sample, shares: tuple[float, ...], seed: int) -> list[Ints]:
    """Random parts of the rows with about these shares of them, each increasing.

    The parts depend on the seed and on the contents of the rows, not on the order of rows or classes, so that
    shuffled or relabelled data give the same result. (Among rows that no symmetric function tells apart, it
    is their order that decides.)
    """
    order = _canonical_order(sample)
    shuffled = order[np.random.default_rng(seed).permutation(order.size)]
    cuts = np.round(np.cumsum(shares) / np.sum(shares) * order.size).astype(np.int64)
    return [np.sort(part) for part in np.split(shuffled, cuts[:-1])]


def _canonical_order(sample: Sample) -> Ints:
    """The rows sorted by functions of their contents that do not change when classes are renamed."""
    frequency = np.bincount(sample.labels, weights=sample.mass, minlength=sample.n_classes).astype(np.float64)
    true_proba = np.take_along_axis(sample.proba, sample.labels[:, None], axis=1)[:, 0]
    weight = np.zeros(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    keys = [*_row_moments(sample, frequency), frequency[sample.labels], weight, true_proba]
    # Rounded: renaming classes changes the order of sums, hence their last digits.
    return np.lexsort([np.round(key, 9) for key in keys])


def _row_moments(sample: Sample, frequency: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Largest probability, sum of squares, and mean frequency of the predicted classes, of each row."""
    top, square, common = (np.empty(sample.n_samples) for _ in range(3))
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        block = sample.proba[rows].astype(np.float64)
        top[rows] = block.max(axis=1)
        square[rows] = np.einsum("ij,ij->i", block, block)
        common[rows] = block @ frequency
    return top, square, common
