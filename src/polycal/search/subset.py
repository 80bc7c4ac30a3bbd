"""The subset of classes with the largest smooth calibration error, by climbing from many starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polycal._parallel import map_threads
from polycal._split import split_rows
from polycal._typing import Bools, Float64s, Ints
from polycal.question import ask_subset
from polycal.sample import Sample
from polycal.search._landscape import Landscape, Point, plain_landscape
from polycal.search.subset_enumeration import FoundSubset, size_limit, smaller_side
from polycal.smooth import smooth_curve

# A larger sample is searched on a random part of it. What is found is valued on the whole.
_MAX_CELLS = 1 << 25
_MAX_ROUNDS = 100
# Smaller rises are rounding of single precision.
_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Climb:
    """Where a climb ended, and how many sets it evaluated."""

    point: Point
    n_evaluated: int


def search_subsets(
    sample: Sample, max_size: int | None = None, n_starts: int = 16, seed: int = 0
) -> FoundSubset:
    """A subset of at most ``max_size`` classes (default: any) with a large smooth calibration error.

    From each start, flip the classes that gain most while the weight function is kept, and find the best
    weight function of the new set, in turn; then flip single classes as long as any flip gains.
    """
    landscape = plain_landscape(search_part(sample, seed))
    limit = size_limit(sample.n_classes, max_size)
    starts = start_sets(landscape, class_ranks(sample), limit, n_starts, seed)
    climbs = climb_all(landscape, starts, limit)
    best = max(climbs, key=lambda climb: climb.point.value).point
    members = np.flatnonzero(best.member)
    if limit == sample.n_classes - 1:
        members = smaller_side(sample, members)
    curve = smooth_curve(ask_subset(sample, members))
    return FoundSubset(members, curve, sum(climb.n_evaluated for climb in climbs))


def search_part(sample: Sample, seed: int) -> Sample:
    """The sample, or as many of its rows as a search looks at."""
    n_rows = max(1, _MAX_CELLS // sample.n_classes)
    if sample.n_samples <= n_rows:
        return sample
    return sample.take(split_rows(sample, (n_rows, sample.n_samples - n_rows), seed)[0])


def class_ranks(sample: Sample) -> Ints:
    """The place of each class when ordered by use: random choices made in this order follow a relabelling."""
    mean = sample.mass @ sample.proba
    frequency = np.bincount(sample.labels, weights=sample.mass, minlength=sample.n_classes)
    return np.argsort(np.lexsort((frequency, mean)))


def start_sets(landscape: Landscape, ranks: Ints, limit: int, n_random: int, seed: int) -> list[Bools]:
    """Sets to climb from: the classes seen too often, those seen too rarely, and ``n_random`` random sets."""
    mean = landscape.residual.sum(axis=0, dtype=np.float64)
    rng = np.random.default_rng(seed)
    scores = [mean, -mean, *(rng.uniform(-1.0, 1.0, ranks.size)[ranks] for _ in range(n_random))]
    return [_largest(score, limit) for score in scores]


def climb_all(landscape: Landscape, starts: Sequence[Bools], limit: int) -> list[Climb]:
    """Climb from every start, on all cores."""
    return map_threads(lambda start: climb(landscape, start, limit), starts)


def climb(landscape: Landscape, start: Bools, limit: int) -> Climb:
    """Flip classes, many at first and one at a time in the end, while the value rises."""
    quick = _ascend(landscape, Climb(landscape.at(start), 1), landscape.quick_gains, limit)
    return _ascend(landscape, quick, landscape.exact_gains, limit)


def _ascend(landscape: Landscape, climb: Climb, gains: Callable[[Point], Float64s], limit: int) -> Climb:
    """Flip the most promising classes, half as many as long as the value does not rise."""
    point, n_evaluated = climb.point, climb.n_evaluated
    for _ in range(_MAX_ROUNDS):
        gain = gains(point)
        size = int((gain > 0).sum())
        while size:
            trial = landscape.at(_flip(point.member, gain, size, limit))
            n_evaluated += 1
            if trial.value > point.value + _TOLERANCE:
                break
            size //= 2
        if not size:
            break
        point = trial
    return Climb(point, n_evaluated)


def _flip(member: Bools, gain: Float64s, size: int, limit: int) -> Bools:
    """Flip the classes with the ``size`` largest gains; beyond the limit, those least missed leave."""
    flipped = member.copy()
    flipped[np.argsort(-gain)[:size]] ^= True
    worth = np.where(member, -gain, gain)
    return _largest(np.where(flipped, worth - worth.min() + 1.0, 0.0), limit)


def _largest(score: Float64s, limit: int) -> Bools:
    """The classes with a positive score, at most ``limit`` of them."""
    chosen = np.zeros(score.size, dtype=np.bool_)
    chosen[np.argsort(-score)[:limit]] = True
    return chosen & (score > 0)
