"""Classes and groups as yes/no questions: exact errors, and for groups their noise floor and test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.auditing.pictures import chance_spread
from polycal.auditing.result import QuestionError
from polycal.families.questions import MOST_CLASSES
from polycal.inference.certificate import holm
from polycal.measures.smooth import smooth_error, smooth_interval
from polycal.sample import Question, Sample, ask_subset, likely_classes

# Redraws of the labels for each group: the first make its noise floor, and more are drawn while few of them reach the
# error that was seen. The budget is in rows redrawn.
_FEWEST_DRAWS, _MOST_DRAWS, _DRAW_BUDGET = 39, 199, 80_000_000
_ENOUGH = 10


def class_errors(sample: Sample, n_jobs: int | None) -> tuple[QuestionError, ...]:
    """Every class as a question, worst first; of lists those that matter most."""

    def measure(class_index: int) -> QuestionError:
        return _measure(sample, sample.name(class_index), np.array([class_index]))

    classes = likely_classes(sample, MOST_CLASSES if sample.is_listed else sample.n_classes)
    errors = map_threads(measure, classes.tolist(), n_jobs)
    return tuple(sorted(errors, key=lambda q: -q.smooth_error))


def group_errors(
    sample: Sample, groups: Mapping[str, Ints], seed: int, n_jobs: int | None, alpha: float = 0.05
) -> tuple[QuestionError, ...]:
    """Every named group as a question, with noise floor and Holm-adjusted p-value."""
    n_draws = int(np.clip(_DRAW_BUDGET // sample.n_samples, _FEWEST_DRAWS, draws_wanted(len(groups), alpha)))
    errors = [_measure(sample, name, subset) for name, subset in groups.items()]
    noises = [
        Noise(error.smooth_error, partial(_redrawn_error, ask_subset(sample, subset)))
        for error, subset in zip(errors, groups.values(), strict=True)
        if error.smooth_error_high is None
    ]
    return tested_groups(errors, noises, n_draws, seed, n_jobs)


class Noise(NamedTuple):
    """The error of a question, and errors that it would have if the predictions were calibrated."""

    error: float
    draw: Callable[[np.random.Generator], float]


def tested_groups(
    errors: Sequence[QuestionError], noises: Sequence[Noise], n_draws: int, seed: int, n_jobs: int | None
) -> tuple[QuestionError, ...]:
    """The groups with their noise floors and Holm-adjusted p-values, from at most so many draws each.

    Those of which lists hide something are left as they are, and have no noise.
    """
    seeds = np.random.SeedSequence(seed).spawn(len(noises))

    def test(task: tuple[Noise, np.random.SeedSequence]) -> tuple[float, float]:
        (error, draw), own_seed = task
        return noise_test(draw, error, n_draws, own_seed)

    tests = map_threads(test, list(zip(noises, seeds, strict=True)), n_jobs)
    p_values = holm([p for _, p in tests])
    smallest = min(len(noises) / (1 + n_draws), 1.0)
    known = iter(zip(tests, p_values, strict=True))

    def tested(error: QuestionError) -> QuestionError:
        if error.smooth_error_high is not None:
            return error
        (floor, _), p = next(known)
        return replace(error, noise_floor=floor, p_value=p, smallest_p_value=smallest)

    return tuple(map(tested, errors))


def draws_wanted(n_groups: int, alpha: float) -> int:
    """Draws for each group: twice what the smallest p-value needs to stand Holm's correction."""
    return max(_MOST_DRAWS, int(np.ceil(2 * n_groups / alpha)))


def redraw_test(
    question: Question, error: float, n_draws: int, seed: np.random.SeedSequence
) -> tuple[float, float]:
    """The noise floor, and the p-value of an error, from at most ``n_draws`` redraws of the outcomes."""
    return noise_test(partial(_redrawn_error, question), error, n_draws, seed)


def noise_test(
    draw: Callable[[np.random.Generator], float], error: float, n_draws: int, seed: np.random.SeedSequence
) -> tuple[float, float]:
    """The noise floor, and the p-value of an error, from at most ``n_draws`` errors drawn from the noise.

    Drawing stops when `_ENOUGH` errors have reached the one seen; the p-value is then their share (Besag and
    Clifford 1991), which is as valid as that of a fixed number, and spends the time on the groups that need it.
    """
    rng = np.random.default_rng(seed)
    drawn: list[float] = []
    reached: list[int] = []
    while len(drawn) < _FEWEST_DRAWS or (len(drawn) < n_draws and len(reached) < _ENOUGH):
        drawn.append(draw(rng))
        if drawn[-1] >= error - 1e-12:
            reached.append(len(drawn))
    floor = float(np.mean(drawn[:_FEWEST_DRAWS]))
    if len(reached) >= _ENOUGH:
        return floor, _ENOUGH / reached[_ENOUGH - 1]
    return floor, (1 + len(reached)) / (1 + len(drawn))


def _redrawn_error(question: Question, rng: np.random.Generator) -> float:
    """The smooth error after redrawing each outcome with its predicted probability."""
    hits = rng.random(question.predicted.size) < question.predicted
    return smooth_error(Question(question.predicted, hits, question.weight, question.text))


def _measure(sample: Sample, name: str, subset: Ints) -> QuestionError:
    question = ask_subset(sample, subset)
    interval = smooth_interval(question)[0] if question.low is not None else None
    return QuestionError(
        name=name,
        classes=tuple(sample.name(int(c)) for c in subset),
        predicted=float(np.average(question.predicted, weights=question.weight)),
        frequency=float(np.average(question.hits, weights=question.weight)),
        smooth_error=smooth_error(question) if interval is None else interval.low,
        smooth_error_high=None if interval is None else interval.high,
        chance=chance_spread(question),
    )
