"""Yes/no questions about the label: what the predictions say, and what happened."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal.sample import Sample


@dataclass(frozen=True, eq=False)
class Question:
    """One yes/no question put to every row of a sample.

    Attributes
    ----------
    predicted : ndarray of float64, shape (n_samples,)
        The predicted probability of "yes", in [0, 1].
    hits : ndarray of bool, shape (n_samples,)
        Whether the answer was "yes".
    weight : ndarray of float64, shape (n_samples,), or None
        Weights of the rows; None means equal.
    text : str
        The question in words.
    """

    predicted: Float64s
    hits: Bools
    weight: Float64s | None
    text: str


def ask(sample: Sample, subset: Ints | None = None) -> Question:
    """The question "is the label in `subset`?"; by default class 1 of two, else confidence."""
    if subset is not None:
        return ask_subset(sample, subset)
    return ask_subset(sample, np.array([1])) if sample.n_classes == 2 else ask_confidence(sample)


def ask_subset(sample: Sample, subset: Ints) -> Question:
    """Is the label one of these classes?"""
    return Question(
        sample.subset_proba(subset),
        sample.subset_hits(subset),
        sample.sample_weight,
        subset_words(subset, sample.name),
    )


def ask_confidence(sample: Sample) -> Question:
    """Is the most likely class the right one? (The first of equals, as NumPy's argmax.)"""
    top, confidence = top_class(sample)
    return Question(confidence, top == sample.labels, sample.sample_weight, "is the most likely class right?")


def top_class(sample: Sample) -> tuple[Ints, Float64s]:
    """The most likely class of each row and its probability."""
    from polycal._compiled.rows import top_classes  # noqa: PLC0415 - imports numba

    top, confidence = top_classes(sample.proba)
    return top, confidence


def subset_words(subset: Ints, name: Callable[[int], str], limit: int = 4) -> str:
    """The subset question in words, with at most ``limit`` class names."""
    names = [name(int(c)) for c in subset[:limit]]
    if subset.size > limit:
        return f"is it one of {', '.join(names)} and {subset.size - limit} more?"
    if subset.size == 1:
        return f"is it {names[0]}?"
    return f"is it {', '.join(names[:-1])} or {names[-1]}?"
