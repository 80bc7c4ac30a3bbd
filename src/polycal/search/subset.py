"""The subset of classes with the largest smooth calibration error, by climbing from many starts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from polycal._parallel import map_threads
from polycal._split import split_rows
from polycal._typing import Bools, Float64s, Ints
from polycal.sample import Sample
from polycal.search.found_subset import FoundSubset, found_subset, size_limit
from polycal.search.landscape import Climbable, Landscape, Point, plain_landscape

# A larger sample is searched on a random part of it. What is found is valued on the whole.
_MAX_CELLS = 1 << 25
# How many climbs are polished, times the cells of the sample.
_POLISHED_CELLS = 1 << 22
_MAX_ROUNDS = 100
# Eigenvectors at each end of the spectrum to start from.
_N_VECTORS = 2
# Smaller rises are rounding of single precision.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Climb:
    """The set where a climb ended, and how many sets it evaluated."""

    point: Point
    n_evaluated: int


def search_subsets(
    sample: Sample, max_size: int | None = None, n_starts: int = 16, seed: int = 0
) -> FoundSubset:
    """A subset of at most ``max_size`` classes (default: any) with a large smooth calibration error.

    From each start, flip the classes that gain most while the weight function is kept, and find the best
    weight function of the new set, in turn; then flip single classes as long as any flip gains.
    """
    limit = size_limit(sample.n_classes, max_size)
    part = search_part(sample, seed)
    landscape = plain_landscape(part)
    climbs = climb_all(landscape, start_sets(landscape, class_ranks(part), limit, n_starts, seed), limit)
    finalists = climbs[: max(1, _POLISHED_CELLS // part.proba.size)]
    polished = map_threads(lambda climb: _polish(landscape, climb, limit), finalists)
    best = max(polished, key=lambda climb: climb.point.value).point
    n_evaluated = sum(climb.n_evaluated for climb in climbs + polished)
    return found_subset(sample, np.flatnonzero(best.member), limit, n_evaluated)


def search_part(sample: Sample, seed: int) -> Sample:
    """The sample, or as many of its rows as a search looks at."""
    n_rows = max(1, _MAX_CELLS // sample.n_classes)
    if sample.n_samples <= n_rows:
        return sample
    return sample.take(split_rows(sample, (n_rows, sample.n_samples - n_rows), seed)[0])


def class_ranks(sample: Sample) -> Ints:
    """The place of each class in order of use: random choices made in this order follow a relabelling."""
    mean = sample.mass @ sample.proba
    frequency = np.bincount(sample.labels, weights=sample.mass, minlength=sample.n_classes)
    return np.argsort(np.lexsort((frequency, mean)))


def start_sets(landscape: Landscape, ranks: Ints, limit: int, n_random: int, seed: int) -> list[Bools]:
    """Sets to climb from: the classes seen too often, those seen too rarely, those whose residuals go with the
    predictions of one another, and ``n_random`` random sets.
    """
    mean = landscape.residual.sum(axis=0, dtype=np.float64)
    rng = np.random.default_rng(seed)
    random = (rng.uniform(-1.0, 1.0, ranks.size)[ranks] for _ in range(n_random))
    scores = [mean, -mean, *_joint_scores(landscape), *random]
    return [largest(score, limit) for score in scores]


def _joint_scores(landscape: Landscape) -> Iterator[Float64s]:
    """Scores of classes that are wrong together, though perhaps none is alone.

    A set a (0 or 1 for each class) has ``a' M a = E <a, z> <a, v>`` with ``M = E z v'``: how its residual grows with
    its prediction. Extreme eigenvectors of M's symmetric part are the extremes over all directions a; their signs are
    sets. A climb by single classes cannot find such a set where each class by itself is calibrated.
    """
    joint = (landscape.residual.T @ landscape.proba).astype(np.float64)
    _, vectors = np.linalg.eigh(joint + joint.T)
    n_each = min(_N_VECTORS, joint.shape[0])
    for vector in (*vectors.T[:n_each], *vectors.T[-n_each:]):
        # The sign of an eigenvector is arbitrary, and with a limit on the size the two halves differ.
        yield vector
        yield -vector


def climb_all(landscape: Climbable, starts: list[Bools], limit: int) -> list[Climb]:
    """Climb from every start by quick gains, on all cores; the highest first."""

    def climb(start: Bools) -> Climb:
        return _ascend(landscape, Climb(landscape.at(start), 1), landscape.quick_gains, 0, limit)

    return sorted(map_threads(climb, starts), key=lambda climb: -climb.point.value)


def _polish(landscape: Landscape, climb: Climb, limit: int) -> Climb:
    """Climb on by exact gains, until no single flip gains."""
    return _ascend(landscape, Climb(climb.point, 0), landscape.exact_gains, landscape.n_classes, limit)


def _ascend(
    landscape: Climbable, climb: Climb, gains: Callable[[Point], Float64s], cost: int, limit: int
) -> Climb:
    """Flip the most promising classes, half as many as long as the value does not rise."""
    point, n_evaluated = climb.point, climb.n_evaluated
    for _ in range(_MAX_ROUNDS):
        gain = gains(point)
        n_evaluated += cost
        n_flips = int((gain > 0).sum())
        while n_flips:
            trial = landscape.at(_flip(point.member, gain, n_flips, limit))
            n_evaluated += 1
            if trial.value > point.value + _TOLERANCE:
                break
            n_flips //= 2
        if n_flips == 0:
            break
        point = trial
    return Climb(point, n_evaluated)


def _flip(member: Bools, gain: Float64s, n_flips: int, limit: int) -> Bools:
    """Flip the classes with the largest gains; where that is too many classes, those least missed leave."""
    flipped = member.copy()
    flipped[np.argsort(-gain)[:n_flips]] ^= True
    worth = np.where(member, -gain, gain)
    return largest(np.where(flipped, worth - worth.min() + 1.0, 0.0), limit)


def largest(score: Float64s, limit: int) -> Bools:
    """The classes with a positive score, at most ``limit`` of them and at least one."""
    size = min(limit, max(1, int((score > 0).sum())))
    chosen = np.zeros(score.size, dtype=np.bool_)
    chosen[np.argsort(-score)[:size]] = True
    return chosen
