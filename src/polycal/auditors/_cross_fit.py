"""How far to trust a search: each half of the rows judges what was found on the other half."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from polycal._split import split_rows
from polycal._typing import Bools, Float64s
from polycal.sample import Sample
from polycal.search.verdict import coordinate_contributions
from polycal.witness._base import Witness

# From a sample to witnesses of growing freedom, always the same number of them.
Levels = Callable[[Sample], Sequence[Witness]]


class Verdict(NamedTuple):
    """The level of freedom that holds up, and the classes whose contribution does."""

    level: int
    kept: Bools


def cross_fit(sample: Sample, levels: Levels, seed: int) -> Verdict:
    """Choose the level with the largest correlation on rows that it has not seen, and the classes to keep."""
    first, second = split_rows(sample, (1, 1), seed)
    if first.size == 0 or second.size == 0:
        return Verdict(0, np.ones(sample.n_classes, dtype=np.bool_))
    halves = sample.take(first), sample.take(second)
    judged = [
        [coordinate_contributions(witness, unseen) for witness in levels(seen)]
        for seen, unseen in (halves, halves[::-1])
    ]
    gains, errors = np.moveaxis(np.array(judged), 2, 0)
    level = int(np.argmax(gains.sum(axis=(0, 2))))
    error = np.sqrt((errors[:, level] ** 2).sum(axis=0)) / 2
    return Verdict(level, worth_keeping(gains[:, level].mean(axis=0), error))


def worth_keeping(gains: Float64s, errors: Float64s) -> Bools:
    """Which gains stay positive when shrunk towards their mean, as far as their errors explain how they differ.

    The gain of one class among many is mostly noise: to drop all that came out negative loses much where all
    classes are off a little, and to keep all adds noise where few are.
    """
    live = errors > 0
    if not live.any():
        return live
    precision = np.where(live, 1.0, 0.0) / np.where(live, errors, 1.0) ** 2
    centre = float(precision @ gains / precision.sum())
    excess = (precision * (gains - centre) ** 2).sum() - (live.sum() - 1)
    variance = max(0.0, float(excess / precision.sum()))
    kept: Bools = live & (variance * gains + errors**2 * centre > 0)
    return kept
