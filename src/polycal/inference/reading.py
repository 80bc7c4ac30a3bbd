"""A witness in plain words: where the predictions say one thing and the outcomes another."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s
from polycal.question import Question, ask_confidence, ask_subset
from polycal.sample import Sample, row_blocks
from polycal.witness._base import Witness
from polycal.witness.question import SubsetWitness, TopWitness


@dataclass(frozen=True)
class Reading:
    """Where a question is answered worst: what was predicted there, and what happened.

    Attributes
    ----------
    question : str
        The yes/no question.
    low, high : float
        The range of predicted probabilities that was looked at (chosen on other rows than those averaged).
    predicted, observed : float
        Mean prediction and share of "yes" among the rows in that range; NaN if there are none.
    share : float
        Share of the rows in that range.
    """

    question: str
    low: float
    high: float
    predicted: float
    observed: float
    share: float

    def __str__(self) -> str:
        return f"{self.question} says {self.predicted:.3f}, is {self.observed:.3f} ({self.share:.0%} of the rows)"


def read_witness(witness: Witness, fit: Sample, judge: Sample) -> Reading:
    """Choose the worst range of the witness's main question on ``fit``, and read it off on ``judge``."""
    if isinstance(witness, TopWitness):
        return _read(ask_confidence(fit), ask_confidence(judge))
    if isinstance(witness, SubsetWitness):
        members = witness.members
    else:
        members = np.array([int(np.argmax(class_contributions(witness, fit)))])
    return _read(ask_subset(fit, members), ask_subset(judge, members))


def class_contributions(witness: Witness, sample: Sample) -> Float64s:
    """``E (y_l - v_l) w_l(v)`` of each class; they add up to the witness's correlation."""
    mass, total = sample.mass, np.zeros(sample.n_classes)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        weight = witness.evaluate(sample.proba[rows]) * mass[rows, None]
        total -= np.einsum("ij,ij->j", weight, sample.proba[rows])
        hit = np.take_along_axis(weight, sample.labels[rows, None], axis=1)[:, 0]
        total += np.bincount(sample.labels[rows], weights=hit, minlength=sample.n_classes)
    return total


def worst_range(question: Question) -> tuple[float, float]:
    """The range (low, high] of predictions whose residuals have the sum of largest absolute value."""
    order = np.argsort(question.predicted, kind="stable")
    u = question.predicted[order]
    residual = question.hits[order] - u
    if question.weight is not None:
        residual = residual * question.weight[order]
    # Cut only between different predictions; -1 stands before the first.
    last = np.flatnonzero(np.diff(u, append=np.inf) > 0)
    F = np.concatenate([[0.0], np.cumsum(residual)[last]])
    edges = np.concatenate([[-1.0], u[last]])
    first, second = sorted((int(np.argmin(F)), int(np.argmax(F))))
    return (float(edges[first]), float(edges[second])) if first < second else (-1.0, float(edges[-1]))


def _read(fit: Question, judge: Question) -> Reading:
    low, high = worst_range(fit)
    inside = (judge.predicted > low) & (judge.predicted <= high)
    weight = np.ones(inside.size) if judge.weight is None else judge.weight
    mass = float(weight[inside].sum())
    predicted = float(weight[inside] @ judge.predicted[inside] / mass) if mass > 0 else float("nan")
    observed = float(weight[inside] @ judge.hits[inside] / mass) if mass > 0 else float("nan")
    return Reading(judge.text, max(low, 0.0), high, predicted, observed, mass / float(weight.sum()))
