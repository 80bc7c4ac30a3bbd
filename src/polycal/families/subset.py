"""Sets of classes: the worst of them, by enumeration or by search, and the auditor that looks for it."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Bools, Ints, Seed
from polycal._validation import check_integer, keep_seed
from polycal.families._landscape import Landscape
from polycal.families._landscape_lists import least_hidden, plain_landscape, shrunken_landscape
from polycal.families._subset_choice import (
    N_FOLDS,
    correlations,
    largest_sets,
    question_rows,
    weighted_set,
    worth,
)
from polycal.families._subset_climb import (
    Climb,
    class_ranks,
    climb_all,
    climb_path,
    path_sizes,
    polish,
    search_part,
    start_scores,
)
from polycal.families._subset_tree import (
    FoundSubset,
    affordable,
    enumerate_subsets,
    found_subset,
    size_limit,
    smaller_side,
)
from polycal.families.auditor import Auditor, weighted_rows
from polycal.families.notion import ErrorEstimate, Kind, Notion
from polycal.families.questions import SubsetWitness
from polycal.listed import ListedSample
from polycal.sample import Sample, ask_subset, split_rows


@dataclass(frozen=True)
class SubsetSmooth(Notion):
    r"""Subset smooth calibration: can the probabilities of any set of classes be summed and trusted?

    Parameters
    ----------
    max_size : int, optional
        The largest number of classes in a set; by default any. With 0 there is only the empty set, whose error is 0.

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
    Lists that hide something are searched, and the value is the least that the error of the set found can be. Whatever
    the set, ``|y - u|`` is at most 1 less the probability of the true class: this gives the upper end.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration".

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> y_proba = np.tile([0.25, 0.25, 0.25, 0.25], (8, 1))
    >>> estimate = pc.estimate_error([0, 0, 0, 1, 2, 2, 2, 3], y_proba, pc.SubsetSmooth())
    >>> estimate.value, estimate.kind, estimate.witness.subset
    (0.25, 'exact', [0, 2])
    """

    max_size: int | None = None
    # The part of the usual time in which every set must have been tried.
    _effort: float = field(default=1.0, init=False, repr=False, compare=False)
    name: ClassVar[str] = "subset-smooth"
    reads_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=0)

    def repeated(self, times: int) -> Self:
        """The notion, for so many estimates."""
        hurried = replace(self)
        object.__setattr__(hurried, "_effort", self._effort / times)
        return hurried

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        kind: Kind
        if self.max_size == 0:
            return ErrorEstimate(0.0, "exact", self, "the empty set", 0, sample.n_samples)
        if affordable(sample, self.max_size, self._effort) and not sample.hides:
            found, kind = enumerate_subsets(sample, self.max_size), "exact"
            method = f"all {found.n_evaluated} subsets"
        else:
            found, kind = search_subsets(sample, self.max_size), "lower bound"
            method = f"search over {found.n_evaluated} subsets"
        if self.max_size is not None:
            method += f" of at most {self.max_size} classes"
        return ErrorEstimate(
            value=found.value,
            kind=kind,
            notion=self,
            method=method,
            n_steps=found.n_evaluated,
            n_samples=sample.n_samples,
            witness=found.witness(sample),
            upper=_largest_error(sample) if isinstance(sample, ListedSample) and sample.hides else None,
        )


def _largest_error(sample: ListedSample) -> float:
    """No set can have a larger error."""
    return float(sample.mass @ (1.0 - sample.true_range()[0]))


# Listed entries times classes, up to which climbs in lists are polished.
_MAX_LISTED = 1 << 25
# How many climbs are polished, times the cells of the sample.
_POLISHED_CELLS = 1 << 22


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
    climbs = climb_all(landscape, start_scores(landscape, class_ranks(part), n_starts, seed), limit)
    finalists = climbs[: max(1, _POLISHED_CELLS // (part.n_samples * part.n_classes))]
    if part.is_listed and part.n_classes * part.proba.size > _MAX_LISTED:
        finalists = []
    polished = map_threads(lambda climb: polish(landscape, climb, limit), finalists)
    n_evaluated = sum(climb.n_evaluated for climb in climbs + polished)
    highest = sorted(polished or climbs, key=lambda climb: -climb.point.value)
    member = _chosen(part, landscape, highest, limit)
    return found_subset(sample, np.flatnonzero(member), limit, n_evaluated)


def _nearly_full(sample: ListedSample) -> bool:
    """Whether lists hide nothing, and take at most twice the room when filled."""
    return not sample.hides and 2 * sample.proba.size >= sample.n_samples * sample.n_classes


# Where lists hide something, so many of the highest climbs are looked at.
_N_FINALISTS = 3


def _chosen(sample: Sample, landscape: Landscape, climbs: list[Climb], limit: int) -> Bools:
    """The set where the highest climb ended; where lists hide something, the one or a part of one that keeps most."""
    if not isinstance(sample, ListedSample) or not sample.hides:
        return climbs[0].point.member
    sides = [np.flatnonzero(climb.point.member) for climb in climbs[:_N_FINALISTS]]
    if limit == sample.n_classes - 1:
        sides = [smaller_side(sample, side) for side in sides]
    return least_hidden(sample, landscape, sides)


class SubsetPath(NamedTuple):
    """Sets of growing numbers of classes, each the worst found of at most so many.

    Attributes
    ----------
    witnesses : tuple of SubsetWitness
        All different; the last is the worst set of any number of classes that is allowed.
    strongest : int
        Which of them should show the largest error, judging by rows of the search that did not fit it.
    """

    witnesses: tuple[SubsetWitness, ...]
    strongest: int


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
    random_state : int, Generator or None, default 0
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

    Lists that hide nothing and list half of all probabilities are filled. Others are only searched, with the rest of
    each row shared equally, and come with the best :math:`\varphi`. A class that a row does not list changes it by the
    same amount as any other, so that a pass takes O(listed entries + n log n + k), and memory O(listed entries + k).
    If the rest is unknown, the sets found are thinned too, because the fewer classes, the less of the unknown can
    belong to them; that with the largest value is chosen, less what lists may hide of it, and comes with the weight
    function that keeps most whatever the rest may be.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration".

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> y_proba = np.full((100, 5), 0.2)
    >>> y_true = np.repeat(["cat", "car", "dog", "bus", "bike"], [28, 16, 28, 14, 14])
    >>> names = ["cat", "car", "dog", "bus", "bike"]
    >>> pc.SubsetAuditor().find_witness(y_true, y_proba, class_names=names).subset
    ['cat', 'dog']
    """

    max_size: int | None = None
    _: KW_ONLY
    n_starts: int = 4
    random_state: Seed = 0
    reads_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=1)
        check_integer(self.n_starts, "n_starts", minimum=0)
        keep_seed(self)

    def find(self, sample: Sample) -> SubsetWitness:
        """Look for a set of classes in a validated sample."""
        return self._path(sample, ())[0][-1]

    def find_path(self, sample: Sample) -> SubsetPath:
        """Look for the worst sets of at most 1, 2, 3, 5, 8, 13, ... classes, and for that of `find`.

        The work of the search is shared: each size begins at what was found for the next smaller and larger one. All
        together take less than twice the time of `find`.
        """
        limit = size_limit(sample.n_classes, self.max_size)
        witnesses, worths = self._path(sample, path_sizes(limit, sample.n_classes))
        distinct = {tuple(one.members.tolist()): place for place, one in reversed(list(enumerate(witnesses)))}
        places = sorted(distinct.values())
        strongest = max(range(len(places)), key=lambda number: worths[places[number]])
        return SubsetPath(tuple(witnesses[place] for place in places), strongest)

    def _path(
        self, sample: Sample, sizes: Sequence[int]
    ) -> tuple[list[SubsetWitness], list[tuple[float, float]]]:
        """The sets of each size, and that of any allowed size; and what each is worth on rows not seen.

        One set alone is chosen for what stands out from noise, those of a path for the largest error that can be shown.
        """
        sample = weighted_rows(sample)
        if isinstance(sample, ListedSample) and _nearly_full(sample):
            sample = sample.filled()
        if sample.is_listed or sample.n_samples < N_FOLDS:
            sets = self._search(sample, sizes)
            limits = [*sizes, size_limit(sample.n_classes, self.max_size)]
            alone = [found_subset(sample, *one, 0).witness(sample) for one in zip(sets, limits, strict=True)]
            return alone, [(0.0, float(number)) for number in range(len(alone))]
        candidates = self._candidates(sample, sizes)
        questions = [[ask_subset(sample, members) for members in sets] for sets in candidates]
        folds = []
        for unseen in split_rows(sample, (1,) * N_FOLDS, self.random_state):
            seen = np.delete(np.arange(sample.n_samples), unseen)
            asked = questions
            if len(candidates[0]) > 1:
                # A set found on all rows has seen the fold. To be compared with another, it must be found without it.
                found = self._candidates(sample.take(seen), sizes)
                asked = [[ask_subset(sample, members) for members in sets] for sets in found]
            folds.append(
                [
                    correlations(*([question_rows(q, r) for q in some] for r in (seen, unseen)))
                    for some in asked
                ]
            )
        witnesses, worths = [], []
        for sets, *terms in zip(candidates, *folds, strict=True):
            held_up = worth(np.concatenate(terms, axis=2))
            place, kind = held_up.largest if sizes else held_up.most_solid
            witnesses.append(weighted_set(sample, sets[place], kind))
            worths.append(held_up.at((place, kind)))
        return witnesses, worths

    def _candidates(self, sample: Sample, sizes: Sequence[int]) -> list[list[Ints]]:
        """For each size, sets that may be the worst: that of the search, and of all sets where these can be tried."""
        searched = self._search(sample, sizes)
        tried = largest_sets(sample, self.max_size, sizes, self.random_state)
        sets = [[one, *others] for one, others in zip(searched, tried, strict=True)]
        if size_limit(sample.n_classes, self.max_size) < sample.n_classes - 1:
            return sets
        return [[smaller_side(sample, members) for members in some] for some in sets]

    def _search(self, sample: Sample, sizes: Sequence[int]) -> list[Ints]:
        """The sets where the highest climbs end."""
        part, limit = search_part(sample, self.random_state), size_limit(sample.n_classes, self.max_size)
        landscape = shrunken_landscape(part)
        scores = start_scores(landscape, class_ranks(part), self.n_starts, self.random_state)
        climbs = climb_all(landscape, scores, limit)
        highest = _chosen(part, landscape, climbs, limit)
        # Those drawn at random are no better than any set.
        planned = scores[: len(scores) - self.n_starts]
        path = climb_path(landscape, climbs[0], planned, sizes) if sizes else []
        return [*(np.flatnonzero(point.member) for point in path), np.flatnonzero(highest)]
