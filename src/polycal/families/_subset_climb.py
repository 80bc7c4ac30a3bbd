"""Climbs over sets of classes: where they start, how they rise, and the highest sets of few classes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Bools, Float64s, Ints
from polycal.families._landscape import Landscape, Point
from polycal.sample import Sample, split_rows

# A larger sample is searched on a random part of it. What is found is valued on the whole.
_MAX_CELLS = 1 << 25
_MAX_ROUNDS = 100
# Smaller rises are rounding of single precision.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Climb:
    """The set where a climb ended, how many sets it evaluated, and the quick gains there, if they are known."""

    point: Point
    n_evaluated: int = 0
    gains: Float64s | None = None


def search_part(sample: Sample, seed: int) -> Sample:
    """The sample, or as many of its rows as a search looks at."""
    n_cells = sample.n_samples * sample.n_classes if not sample.is_listed else max(1, sample.proba.size)
    n_rows = max(1, _MAX_CELLS * sample.n_samples // n_cells)
    if sample.n_samples <= n_rows:
        return sample
    return sample.take(split_rows(sample, (n_rows, sample.n_samples - n_rows), seed)[0])


def class_ranks(sample: Sample) -> Ints:
    """The place of each class in order of use: random choices made in this order follow a relabelling."""
    return np.argsort(np.lexsort((sample.frequency(), sample.mean_proba())))


def start_scores(landscape: Landscape, ranks: Ints, n_random: int, seed: int) -> list[Float64s]:
    """Scores of classes, whose largest make sets to climb from: the classes seen too often, those seen too rarely,
    those whose residuals go with the predictions of one another, and ``n_random`` random sets.
    """
    totals = landscape.totals()
    rng = np.random.default_rng(seed)
    *random, start = (rng.uniform(-1.0, 1.0, ranks.size)[ranks] for _ in range(n_random + 1))
    return [totals, -totals, *_joint_scores(landscape, start), *random]


def _joint_scores(landscape: Landscape, start: Float64s) -> Iterator[Float64s]:
    """Scores of classes that are wrong together, though perhaps none is alone.

    A set a (0 or 1 for each class) has ``a' M a = E <a, z> <a, v>`` with ``M = E z v'``: how its residual grows with
    its prediction. Extreme eigenvectors of M's symmetric part are the extremes over all directions a; their signs are
    sets. A climb by single classes cannot find such a set where each class by itself is calibrated.
    """
    for vector in landscape.joint_vectors(start).T:
        # The sign of an eigenvector is arbitrary, and with a limit on the size the two halves differ.
        yield vector
        yield -vector


def climb_all(landscape: Landscape, scores: Sequence[Float64s], limit: int) -> list[Climb]:
    """Climb from the largest classes of every score by quick gains, on all cores; the highest first."""

    def climb(score: Float64s) -> Climb:
        return _climb(landscape, Climb(landscape.at(largest(score, limit)), 1), limit)

    return sorted(map_threads(climb, scores), key=lambda climb: -climb.point.value)


def _climb(landscape: Landscape, start: Climb, limit: int) -> Climb:
    """Climb by quick gains."""
    return _ascend(landscape, start, landscape.quick_gains, 0, limit)


def polish(landscape: Landscape, climb: Climb, limit: int) -> Climb:
    """Climb on by exact gains, until no single flip gains."""
    return _ascend(landscape, Climb(climb.point), landscape.exact_gains, landscape.n_classes, limit)


def _ascend(
    landscape: Landscape, climb: Climb, gains: Callable[[Point], Float64s], cost: int, limit: int
) -> Climb:
    """Flip the most promising classes, half as many as long as the value does not rise."""
    point, n_evaluated, known = climb.point, climb.n_evaluated, climb.gains
    for _ in range(_MAX_ROUNDS):
        gain = gains(point) if known is None else known
        n_evaluated += cost
        n_flips, trial = int((gain > 0).sum()), point
        while n_flips:
            member = _flip(point.member, gain, n_flips, limit)
            # With a limit, more flips often come to the same set.
            if not np.array_equal(member, trial.member):
                trial = landscape.at(member)
                n_evaluated += 1
            if trial.value > point.value + _TOLERANCE:
                break
            n_flips //= 2
        if n_flips == 0:
            return Climb(point, n_evaluated, gain)
        point, known = trial, None
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


# Single classes to try, of either kind: those of the largest total, and those whose residual goes with the prediction.
_N_SINGLE = 12
# Sets up to these sizes are climbed for from below as well, and from starts of their own.
_FEW_CLASSES, _VERY_FEW = 13, 5


def path_sizes(limit: int, n_classes: int) -> list[int]:
    """Below a limit: 1, 2, 3, 5, 8, 13, ..., each the sum of the two before; and the limit, where it is one."""
    below = limit if limit < n_classes - 1 else n_classes // 2
    sizes, following = [1], 2
    while following < below:
        sizes, following = [*sizes, following], following + sizes[-1]
    return [size for size in sizes if size < below]


def climb_path(
    landscape: Landscape, top: Climb, scores: Sequence[Float64s], sizes: Sequence[int]
) -> list[Point]:
    """The highest sets found of at most so many classes, for each of some increasing sizes.

    What was found for one size is where the climb for the next begins: down from the set of any size, and for few
    classes up from the best single one too; for very few, from a start of that size where that is better.
    """
    few = [size for size in sizes if size <= _FEW_CLASSES]
    chains = [
        lambda: list(_down(landscape, top, sizes[::-1]))[::-1],
        lambda: list(_up(landscape, scores, few)),
    ]
    down, up = map_threads(lambda chain: chain(), chains)
    path: list[Point] = []
    for found in zip_longest(down, up, fillvalue=down[0]):
        path.append(max([*path[-1:], *found], key=lambda point: point.value))
    return path


def _down(landscape: Landscape, climb: Climb, sizes: Sequence[int]) -> Iterator[Point]:
    if 2 * np.count_nonzero(climb.point.member) > landscape.n_classes:
        climb = Climb(landscape.at(~climb.point.member))
    for size in sizes:
        if np.count_nonzero(climb.point.member) > size:
            climb = _climb(landscape, Climb(_thinned(landscape, climb, size)), size)
        yield climb.point


def _up(landscape: Landscape, scores: Sequence[Float64s], sizes: Sequence[int]) -> Iterator[Point]:
    climb = Climb(_best_single(landscape))
    for size in sizes:
        # Single classes have been tried.
        others = scores if 1 < size <= _VERY_FEW else ()
        starts = [climb, *(Climb(landscape.at(largest(score, size))) for score in others)]
        climb = _climb(landscape, max(starts, key=lambda start: start.point.value), size)
        yield climb.point


def _thinned(landscape: Landscape, climb: Climb, size: int) -> Point:
    """The set without the classes that are least missed."""
    point, gains = climb.point, climb.gains
    missed = -(landscape.quick_gains(point) if gains is None else gains)
    return landscape.at(largest(np.where(point.member, missed - missed.min() + 1.0, 0.0), size))


def _best_single(landscape: Landscape) -> Point:
    """The class of the largest error, of those whose residual or its product with the prediction is largest."""
    empty = landscape.at(np.zeros(landscape.n_classes, dtype=np.bool_))
    slopes = landscape.gains_by(empty, np.linspace(0.0, 1.0, 2))
    order = [np.argsort(-np.abs(score), kind="stable")[:_N_SINGLE] for score in (landscape.totals(), slopes)]
    classes = np.unique(np.concatenate(order))
    return max((landscape.flipped(empty, int(c)) for c in classes), key=lambda point: point.value)
