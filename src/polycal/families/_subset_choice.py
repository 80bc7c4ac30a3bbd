"""Which of some sets of classes to show, and with which weight function: each is judged by rows it has not seen."""

from collections.abc import Iterator

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.families._subset_tree import affordable_rows, value_subsets
from polycal.families.questions import SubsetWitness
from polycal.measures.functions import LipschitzFunction
from polycal.measures.smooth import projected_curve, smooth_curve
from polycal.sample import Question, Sample, ask_subset, split_rows

# Each part of the rows judges what was found on the others.
N_FOLDS = 4
# The part of the time of an exact estimate in which an auditor tries every set, and rows enough to do so.
_EFFORT = 0.25
_ENOUGH_ROWS = 10_000


def largest_sets(sample: Sample, max_size: int | None, seed: int) -> Iterator[Ints]:
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


# The best weight function is preferred by so many standard errors.
_PREFERENCE = 0.5


def correlations(seen: Sample, unseen: Sample, sets: list[Ints]) -> Float64s:
    """What each row not seen adds to the correlation of each set with each of its weight functions."""
    weight = np.ones(unseen.n_samples) if unseen.sample_weight is None else unseen.sample_weight
    terms = np.empty((len(sets), 2, unseen.n_samples))
    for place, members in enumerate(sets):
        question = ask_subset(unseen, members)
        for kind, phi in enumerate(_weights(ask_subset(seen, members))):
            terms[place, kind] = weight * (question.hits - question.predicted) * phi(question.predicted)
    return terms


def solidity(terms: Float64s) -> Float64s:
    """The correlation of each candidate, in standard errors."""
    spread = np.sqrt(terms.shape[2]) * terms.std(axis=2)
    in_errors: Float64s = terms.sum(axis=2) / np.maximum(spread, 1e-300) + [_PREFERENCE, 0.0]
    return in_errors


def weighted_set(sample: Sample, members: Ints, kind: int) -> SubsetWitness:
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
