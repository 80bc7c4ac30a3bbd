"""Sets of classes: the worst of them, by enumeration or by search, and the auditor that looks for it."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Bools, Float64s, Ints
from polycal._validation import check_integer
from polycal.families._landscape import Climbable, Landscape, Point, plain_landscape, shrunken_landscape
from polycal.families._subset_tree import (
    FoundSubset,
    affordable,
    affordable_rows,
    enumerate_subsets,
    found_subset,
    size_limit,
    smaller_side,
    value_subsets,
)
from polycal.families.auditor import Auditor, weighted_rows
from polycal.families.notion import ErrorEstimate, Kind, Notion
from polycal.families.questions import SubsetWitness
from polycal.measures.smooth import LipschitzFunction, projected_curve, smooth_curve
from polycal.sample import Question, Sample, ask_subset, split_rows


@dataclass(frozen=True)
class SubsetSmooth(Notion):
    r"""Subset smooth calibration: can the probabilities of any set of classes be summed and trusted?

    Parameters
    ----------
    max_size : int, optional
        The largest number of classes in a set; by default any.

    See Also
    --------
    SubsetAuditor : A set that is also wrong on other rows, for many classes.

    Notes
    -----
    Definition: the weights are :math:`1_T\,\varphi(\langle 1_T, v\rangle)` for each set T of at most `max_size`
    classes and each 1-Lipschitz :math:`\varphi` into [-1, 1], so the error is the largest `smooth_calibration_error`
    of a set [1]_. A set and its complement have the same error; the witness names the smaller one.
    Estimator: every set is tried while that takes less than about a second (any set of 17 classes for 10,000
    rows, any pair of 410), which is exact; else a search from many starts, which is a lower bound. Where the estimate
    is repeated, as for the noise floor of an audit, this holds for all repetitions together. Cost: one pass over the
    rows for each set. Bias: upwards, and strongly for many classes, because the largest of many sets also picks noise.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration".

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> from polycal.families.subset import SubsetSmooth
    >>> y_proba = np.tile([0.25, 0.25, 0.25, 0.25], (8, 1))
    >>> estimate = pc.estimate_error([0, 0, 0, 1, 2, 2, 2, 3], y_proba, SubsetSmooth())
    >>> estimate.value, estimate.kind, estimate.witness.subset
    (0.25, 'exact', [0, 2])
    """

    max_size: int | None = None
    # The part of the usual time in which every set must have been tried.
    _effort: float = field(default=1.0, init=False, repr=False, compare=False)
    name: ClassVar[str] = "subset-smooth"

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=1)

    def repeated(self, times: int) -> Self:
        """The notion, for so many estimates."""
        hurried = replace(self)
        object.__setattr__(hurried, "_effort", self._effort / times)
        return hurried

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        kind: Kind
        if affordable(sample, self.max_size, self._effort):
            found, kind = enumerate_subsets(sample, self.max_size), "exact"
            method = f"all {found.n_evaluated} subsets"
        else:
            found, kind = search_subsets(sample, self.max_size), "lower bound"
            method = f"search over {found.n_evaluated} subsets"
        if self.max_size is not None:
            method += f" of at most {self.max_size} classes"
        return ErrorEstimate(
            value=found.curve.value,
            kind=kind,
            notion=self,
            method=method,
            n_steps=found.n_evaluated,
            n_samples=sample.n_samples,
            witness=found.witness(sample),
        )


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


@dataclass(frozen=True)
class SubsetAuditor(Auditor):
    r"""Look for the set of classes whose summed probability is most wrong.

    Parameters
    ----------
    max_size : int, optional
        The largest number of classes in the set; by default any.
    n_starts : int, default 4
        Random sets to start from, beside the classes seen too often, those seen too rarely, and the sets whose
        residuals go with their predictions most.
    random_state : int, default 0
        Seed of the random starts.

    See Also
    --------
    SubsetSmooth : The largest error over all sets, on the same rows.

    Notes
    -----
    The witness is one of `SubsetSmooth`: :math:`1_T\,\varphi(\langle 1_T, v\rangle)`. Its ``subset`` lists the classes
    of T.

    Choice: up to three sets reach the final, the one found by the search below and, where every set can be tried in a
    quarter of a second (15 classes, or a few more with few rows), the two of the largest error, with and without their
    mean residual. Each comes with two :math:`\varphi`: the best on the rows given, and the best for residuals less
    their mean, around a level that adds least noise. Where a set is right on average, most of the noise of the first
    is that of the average. Each quarter of the rows judges what was found and fitted on the others; what stands out
    most there, in standard errors, is returned as found on all rows.

    Search: from each start, flip the classes that gain most while :math:`\varphi` is kept, and find the best
    :math:`\varphi` of the new set, in turn. A set and its complement are one question; the smaller is returned.

    Regularisation: k yes/no choices fit the noise of a few rows a class. So the search does not look at the
    residuals themselves but at their expectation under :math:`p_j \propto v_j^a \pi_j^b`, a recalibration by two
    numbers (:math:`\pi` is the mean prediction), plus a share of what this leaves over. The share is the
    James-Stein factor of the class totals, which noise pulls to 0 and n to 1, and at least a quarter; the totals
    themselves, which such a search overfits most, are shrunk without that limit.

    Cost: a few dozen passes over the predictions, O(nk) each.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration".

    Examples
    --------
    >>> import numpy as np
    >>> from polycal.families.subset import SubsetAuditor
    >>> y_proba = np.full((100, 5), 0.2)
    >>> y_true = np.repeat(["cat", "car", "dog", "bus", "bike"], [28, 16, 28, 14, 14])
    >>> names = ["cat", "car", "dog", "bus", "bike"]
    >>> SubsetAuditor().find_witness(y_true, y_proba, class_names=names).subset
    ['cat', 'dog']
    """

    max_size: int | None = None
    _: KW_ONLY
    n_starts: int = 4
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=1)
        check_integer(self.n_starts, "n_starts", minimum=0)
        check_integer(self.random_state, "random_state", minimum=0)

    def find(self, sample: Sample) -> SubsetWitness:
        """Look for a set of classes in a validated sample."""
        sample = weighted_rows(sample)
        sets = self._candidates(sample)
        if sample.n_samples < _N_FOLDS:
            return _weighted_set(sample, sets[0], 0)
        folds = []
        for rows in split_rows(sample, (1,) * _N_FOLDS, self.random_state):
            seen, unseen = sample.take(np.delete(np.arange(sample.n_samples), rows)), sample.take(rows)
            # A set found on all rows has seen the fold. To be compared with another, it must be found without it.
            found = self._candidates(seen) if len(sets) > 1 else sets
            folds.append(_terms(seen, unseen, found))
        solidity = _solidity(np.concatenate(folds, axis=2))
        place, kind = np.unravel_index(np.argmax(solidity), solidity.shape)
        return _weighted_set(sample, sets[place], int(kind))

    def _candidates(self, sample: Sample) -> list[Ints]:
        """Sets that may be the worst one: that of the search, and of all sets where these can be tried."""
        limit = size_limit(sample.n_classes, self.max_size)
        part = search_part(sample, self.random_state)
        landscape = shrunken_landscape(part)
        starts = start_sets(landscape, class_ranks(part), limit, self.n_starts, self.random_state)
        climbed = np.flatnonzero(climb_all(landscape, starts, limit)[0].point.member)
        sets = [climbed, *_largest_sets(sample, self.max_size, self.random_state)]
        return [smaller_side(sample, members) for members in sets] if limit == sample.n_classes - 1 else sets


# The part of the time of an exact estimate in which an auditor tries every set, and rows enough to do so.
_EFFORT = 0.25
_ENOUGH_ROWS = 10_000


def _largest_sets(sample: Sample, max_size: int | None, seed: int) -> Iterator[Ints]:
    """Where every set can be tried: that of the largest error, and that of the largest one beside its mean residual.

    The mean residual is most of the noise of a set's error. A set without one stays hidden behind it.
    """
    n_rows = min(sample.n_samples, affordable_rows(sample.n_classes, max_size, _EFFORT))
    if n_rows < min(sample.n_samples, _ENOUGH_ROWS):
        return
    if n_rows < sample.n_samples:
        sample = sample.take(split_rows(sample, (n_rows, sample.n_samples - n_rows), seed)[0])
    tree, value, _, centred = value_subsets(sample, max_size)
    for values in (value, centred):
        # The first set is empty.
        yield tree.subset(1 + int(np.argmax(values[1:])))


_N_FOLDS = 4
# The best weight function is preferred by so many standard errors.
_PREFERENCE = 0.5


def _terms(seen: Sample, unseen: Sample, sets: list[Ints]) -> Float64s:
    """What each row not seen adds to the correlation of each set with each of its weight functions."""
    weight = np.ones(unseen.n_samples) if unseen.sample_weight is None else unseen.sample_weight
    terms = np.empty((len(sets), 2, unseen.n_samples))
    for place, members in enumerate(sets):
        question = ask_subset(unseen, members)
        for kind, phi in enumerate(_weights(ask_subset(seen, members))):
            terms[place, kind] = weight * (question.hits - question.predicted) * phi(question.predicted)
    return terms


def _solidity(terms: Float64s) -> Float64s:
    """The correlation of each candidate, in standard errors."""
    spread = np.sqrt(terms.shape[2]) * terms.std(axis=2)
    solidity: Float64s = terms.sum(axis=2) / np.maximum(spread, 1e-300) + [_PREFERENCE, 0.0]
    return solidity


def _weighted_set(sample: Sample, members: Ints, kind: int) -> SubsetWitness:
    """A set with one of its weight functions."""
    phi = _weights(ask_subset(sample, members))[kind]
    return SubsetWitness(members, phi.simplified(), sample.n_classes, sample.class_names)


def _weights(question: Question) -> tuple[LipschitzFunction, LipschitzFunction]:
    """The best weight function of a question, and the best for residuals less their mean.

    The second is centred so that chance moves it least: it does not see the mean residual, nor its noise.
    """
    mass = np.ones(question.hits.size) if question.weight is None else question.weight
    mass = mass / mass.sum()
    residual = mass * (question.hits - question.predicted)
    phi = projected_curve(question.predicted, residual - residual.sum() * mass).phi
    noise = mass * question.predicted * (1.0 - question.predicted)
    middle = float(noise @ phi(question.predicted)) / max(float(noise.sum()), 1e-300)
    return smooth_curve(question).phi, LipschitzFunction(phi.knots, phi.heights - middle)
