"""Which of some sets of classes to show, and with which weight function: each is judged by rows it has not seen."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.families._subset_tree import affordable_rows, size_limit, value_subsets
from polycal.families.questions import SubsetWitness
from polycal.measures.functions import LipschitzFunction
from polycal.measures.smooth import projected_curve, smooth_curve
from polycal.sample import Question, Sample, ask_subset, split_rows

# Each part of the rows judges what was found on the others.
N_FOLDS = 4
# The part of the time of an exact estimate in which an auditor tries every set, and rows enough to do so.
_EFFORT = 0.25
_ENOUGH_ROWS = 10_000


def largest_sets(sample: Sample, max_size: int | None, sizes: Sequence[int], seed: int) -> list[list[Ints]]:
    """Where every set can be tried: those of the largest error, and of the largest one beside their mean residual.

    They are of at most `max_size` classes, and for each of some sizes of at most so many; the former come last. The
    mean residual is most of the noise of a set's error. A set without one stays hidden behind it.
    """
    n_rows = min(sample.n_samples, affordable_rows(sample.n_classes, max_size, _EFFORT))
    if n_rows < min(sample.n_samples, _ENOUGH_ROWS):
        return [[] for _ in range(len(sizes) + 1)]
    if n_rows < sample.n_samples:
        sample = sample.take(split_rows(sample, (n_rows, sample.n_samples - n_rows), seed)[0])
    tree, value, _, centred = value_subsets(sample, max_size)
    n_members = tree.sizes()
    if size_limit(sample.n_classes, max_size) == sample.n_classes - 1:
        # A set stands for its complement too.
        n_members = np.minimum(n_members, sample.n_classes - n_members)
    # The first set is empty.
    allowed = [np.flatnonzero(n_members[1:] <= size) for size in (*sizes, sample.n_classes)]
    return [
        [tree.subset(1 + int(some[np.argmax(values[1 + some])])) for values in (value, centred)]
        for some in allowed
    ]


# The best weight function is preferred by so many standard errors.
_PREFERENCE = 0.5
# Standard errors between a correlation and what a certificate will say it is at least.
_CAUTION = 3.0


def correlations(seen: Sequence[Question], unseen: Sequence[Question]) -> Float64s:
    """What each row not seen adds to the correlation of each set with each of its weight functions."""
    terms = np.empty((len(seen), 2, unseen[0].hits.size))
    for place, (fit, question) in enumerate(zip(seen, unseen, strict=True)):
        weight = 1.0 if question.weight is None else question.weight
        residual = weight * (question.hits - question.predicted)
        for kind in range(2):
            terms[place, kind] = residual * _weight(fit, kind)(question.predicted)
    return terms


def question_rows(question: Question, rows: Ints) -> Question:
    """The question put to some rows."""
    weight = None if question.weight is None else question.weight[rows]
    return Question(question.predicted[rows], question.hits[rows], weight, question.text)


class Worth(NamedTuple):
    """How well candidates hold up: a lower bound of each correlation, or 0, and the correlation in standard errors."""

    bound: Float64s
    solidity: Float64s

    @property
    def most_solid(self) -> tuple[int, int]:
        """Place and kind of the candidate that stands out most from noise."""
        return _argmax(self.solidity)

    @property
    def largest(self) -> tuple[int, int]:
        """Place and kind of the candidate with the largest bound; the most solid one, if there is none."""
        return _argmax(self.bound) if self.bound.any() else self.most_solid

    def at(self, place: tuple[int, int]) -> tuple[float, float]:
        """Bound and solidity of one."""
        return float(self.bound[place]), float(self.solidity[place])


def worth(terms: Float64s) -> Worth:
    """How well candidates hold up on rows that they have not seen."""
    n = terms.shape[2]
    total, spread = terms.sum(axis=2), np.maximum(np.sqrt(n) * terms.std(axis=2), 1e-300)
    return Worth(np.maximum(total - _CAUTION * spread, 0.0) / n, total / spread + [_PREFERENCE, 0.0])


def _argmax(values: Float64s) -> tuple[int, int]:
    place, kind = np.unravel_index(np.argmax(values), values.shape)
    return int(place), int(kind)


def weighted_set(sample: Sample, members: Ints, kind: int) -> SubsetWitness:
    """A set with one of its weight functions."""
    phi = _weight(ask_subset(sample, members), kind)
    return SubsetWitness(members, phi.simplified(), sample.n_classes, sample.class_names)


def _weight(question: Question, kind: int) -> LipschitzFunction:
    """The best weight function of a question, or the best for residuals less their mean.

    The second is centred so that chance moves it least: it does not see the mean residual, nor its noise.
    """
    if kind == 0:
        return smooth_curve(question).phi
    mass = np.ones(question.hits.size) if question.weight is None else question.weight
    mass = mass / mass.sum()
    residual = mass * (question.hits - question.predicted)
    phi = projected_curve(question.predicted, residual - residual.sum() * mass).phi
    # Without weights the rows may stand in any order, and at the knots the function is known.
    at, height = (
        (phi.knots, phi.heights) if question.weight is None else (question.predicted, phi(question.predicted))
    )
    noise = mass * at * (1.0 - at)
    middle = float(noise @ height) / max(float(noise.sum()), 1e-300)
    return LipschitzFunction(phi.knots, phi.heights - middle)
