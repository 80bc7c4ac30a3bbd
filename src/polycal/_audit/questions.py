"""Classes and groups as yes/no questions: exact errors, and for groups their noise floor and test."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from polycal._audit.curves import chance_spread
from polycal._audit.result import QuestionError
from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.inference.certificate import holm
from polycal.measures.smooth import smooth_error
from polycal.sample import Question, Sample, ask_subset

# Redraws of the labels for each group: the first make its noise floor, and more are drawn while few of them reach the
# error that was seen. The budget is in rows redrawn.
_FEWEST_DRAWS, _MOST_DRAWS, _DRAW_BUDGET = 39, 199, 80_000_000
_ENOUGH = 10


def class_errors(sample: Sample, n_jobs: int | None) -> tuple[QuestionError, ...]:
    """Every class as a question, worst first."""

    def measure(class_index: int) -> QuestionError:
        return _measure(sample, sample.name(class_index), np.array([class_index]))

    errors = map_threads(measure, range(sample.n_classes), n_jobs)
    return tuple(sorted(errors, key=lambda q: -q.smooth_error))


def group_errors(
    sample: Sample, groups: dict[str, Ints], seed: int, n_jobs: int | None, alpha: float = 0.05
) -> tuple[QuestionError, ...]:
    """Every named group as a question, with noise floor and Holm-adjusted p-value."""
    n_draws = int(np.clip(_DRAW_BUDGET // sample.n_samples, _FEWEST_DRAWS, draws_wanted(len(groups), alpha)))
    seeds = np.random.SeedSequence(seed).spawn(len(groups))
    measured = [_measure(sample, name, subset) for name, subset in groups.items()]

    def test(task: tuple[QuestionError, Ints, np.random.SeedSequence]) -> tuple[float, float]:
        error, subset, own_seed = task
        return redraw_test(ask_subset(sample, subset), error.smooth_error, n_draws, own_seed)

    tests = map_threads(test, list(zip(measured, groups.values(), seeds, strict=True)), n_jobs)
    p_values = holm([p for _, p in tests])
    smallest = len(groups) / (1 + n_draws)
    return tuple(
        replace(error, noise_floor=floor, p_value=p, smallest_p_value=min(smallest, 1.0))
        for error, (floor, _), p in zip(measured, tests, p_values, strict=True)
    )


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
    return QuestionError(
        name=name,
        classes=tuple(sample.name(int(c)) for c in subset),
        predicted=float(np.average(question.predicted, weights=question.weight)),
        frequency=float(np.average(question.hits, weights=question.weight)),
        smooth_error=smooth_error(question),
        chance=chance_spread(question),
    )
