"""Classes and groups as yes/no questions: exact errors, and for groups their noise floor and test."""

import numpy as np

from polycal._audit.result import QuestionError
from polycal._parallel import map_threads
from polycal._typing import Float64s, Ints
from polycal.inference.multiplicity import holm
from polycal.question import Question, ask_subset
from polycal.sample import Sample
from polycal.smooth import smooth_error

# Enough for a p-value of 0.005; fewer when the rows are many, whose noise is small anyway.
_MOST_DRAWS, _FEWEST_DRAWS, _DRAW_BUDGET = 199, 39, 20_000_000


def class_errors(sample: Sample, n_jobs: int | None) -> tuple[QuestionError, ...]:
    """Every class as a question, worst first."""

    def measure(class_index: int) -> QuestionError:
        return _measure(sample, sample.name(class_index), np.array([class_index]))

    errors = map_threads(measure, range(sample.n_classes), n_jobs)
    return tuple(sorted(errors, key=lambda q: -q.smooth_error))


def group_errors(
    sample: Sample, groups: dict[str, Ints], seed: int, n_jobs: int | None
) -> tuple[QuestionError, ...]:
    """Every named group as a question, with noise floor and Holm-adjusted p-value."""
    n_draws = int(np.clip(_DRAW_BUDGET // sample.n_samples, _FEWEST_DRAWS, _MOST_DRAWS))
    seeds = np.random.SeedSequence(seed).spawn(len(groups))
    tasks = [(name, subset, seed) for (name, subset), seed in zip(groups.items(), seeds, strict=True)]

    def draws_of(task: tuple[str, Ints, np.random.SeedSequence]) -> Float64s:
        return redrawn_errors(ask_subset(sample, task[1]), n_draws, task[2])

    drawn = map_threads(draws_of, tasks, n_jobs)
    measured = [_measure(sample, name, subset) for name, subset in groups.items()]
    p_values = holm(
        [
            (1 + np.sum(d >= q.smooth_error - 1e-12)) / (1 + n_draws)
            for q, d in zip(measured, drawn, strict=True)
        ]
    )
    return tuple(
        QuestionError(q.name, q.classes, q.predicted, q.frequency, q.smooth_error, float(d.mean()), p)
        for q, d, p in zip(measured, drawn, p_values, strict=True)
    )


def redrawn_errors(question: Question, n_draws: int, seed: np.random.SeedSequence) -> Float64s:
    """The smooth errors of the question after redrawing each outcome with its predicted probability."""
    rng = np.random.default_rng(seed)
    errors = np.empty(n_draws)
    for i in range(n_draws):
        hits = rng.random(question.predicted.size) < question.predicted
        errors[i] = smooth_error(Question(question.predicted, hits, question.weight, question.text))
    return errors


def _measure(sample: Sample, name: str, subset: Ints) -> QuestionError:
    question = ask_subset(sample, subset)
    return QuestionError(
        name=name,
        classes=tuple(sample.name(int(c)) for c in subset),
        predicted=float(np.average(question.predicted, weights=question.weight)),
        frequency=float(np.average(question.hits, weights=question.weight)),
        smooth_error=smooth_error(question),
    )
