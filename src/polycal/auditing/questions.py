"""Classes, groups and confidence as yes/no questions: exact errors, and what all rows together show of them.

Nobody searched for these questions, so that every row may judge them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.auditing.parts import QuestionError
from polycal.auditing.pictures import chance_spread
from polycal.auditing.shares import CLASS_SHARES, NAMED_SHARES, RANK_SHARES, WHOLE_SHARE
from polycal.families.questions import MOST_CLASSES
from polycal.families.top_set import RANKS
from polycal.inference.question_bounds import Residuals, discoveries, e_value, error_bounds
from polycal.inference.redraw import FEWEST_DRAWS, Noise, draws_wanted, noise_test, question_noise
from polycal.measures.smooth import smooth_error, smooth_interval
from polycal.sample import Question, Sample, ask_subset, ask_top_set, likely_classes

CONFIDENCE = "confidence"
# Rows redrawn for each group, at most.
_DRAW_BUDGET = 80_000_000

Measure = tuple[QuestionError, Residuals | None]


def class_errors(sample: Sample, n_jobs: int | None, alpha: float = 0.05) -> tuple[QuestionError, ...]:
    """Every class as a question, worst first; of lists those that matter most."""

    def measure(class_index: int) -> Measure:
        members = np.array([class_index])
        return measured(ask_subset(sample, members), sample.name(class_index), [sample.name(class_index)])

    classes = likely_classes(sample, MOST_CLASSES if sample.is_listed else sample.n_classes)
    return ranked_classes(map_threads(measure, classes.tolist(), n_jobs), alpha)


def ranked_classes(classes: Sequence[Measure], alpha: float) -> tuple[QuestionError, ...]:
    """The classes with their bounds, worst first."""
    return tuple(sorted(bounded(classes, alpha, CLASS_SHARES), key=lambda q: -q.smooth_error))


class NamedErrors(NamedTuple):
    """The questions that have names: confidence, ranks, groups."""

    confidence: QuestionError
    ranks: tuple[QuestionError, ...]
    groups: tuple[QuestionError, ...]


def named_errors(sample: Sample, groups: Mapping[str, Ints], alpha: float = 0.05) -> NamedErrors:
    """Confidence, ranks, and every named group."""
    ranks = asked_ranks(sample.n_classes)
    tops = [measured(ask_top_set(sample, m), name, []) for name, m in ranks.items()]
    others = [
        measured(ask_subset(sample, members), name, [sample.name(int(c)) for c in members])
        for name, members in groups.items()
    ]
    return named_of([*tops, *others], len(ranks), alpha)


def asked_ranks(n_classes: int) -> dict[str, int]:
    """How many most likely classes each question about ranks is about, by name; confidence is the first."""
    return {rank_name(m): m for m in (1, *RANKS) if m == 1 or m < n_classes}


def rank_name(m: int) -> str:
    """The name of "is it among the m most likely?"."""
    return CONFIDENCE if m == 1 else f"top {m}"


def named_of(measures: Sequence[Measure], n_ranks: int, alpha: float) -> NamedErrors:
    """The questions that have names, with bounds that hold together: of confidence, other ranks, and groups."""
    first, *ranks = measures[:n_ranks]
    confidence, *groups = bounded([first, *measures[n_ranks:]], alpha, NAMED_SHARES)
    return NamedErrors(confidence, tuple(bounded(ranks, alpha, RANK_SHARES)), tuple(groups))


def bounded(measures: Sequence[Measure], alpha: float, shares: tuple[float, float]) -> list[QuestionError]:
    """The questions with bounds of their errors that hold together, and what e-BH finds among them.

    Where lists hide something there are no bounds.
    """
    known = [residuals for _, residuals in measures if residuals is not None]
    # Of two classes, one question is the other's opposite.
    n_questions = 1 if len(known) == 2 and shares is CLASS_SHARES else max(len(known), 1)
    low, high = (share * alpha / n_questions for share in shares)
    bounds = error_bounds(known, low, high).T.tolist()
    evidence = [e_value(residuals, alpha / n_questions) for residuals in known]
    found = discoveries(evidence, alpha)
    shown = iter(zip(bounds, evidence, found, strict=True))

    def with_bounds(measure: Measure) -> QuestionError:
        error, residuals = measure
        if residuals is None:
            return error
        (at_least, at_most), e, is_found = next(shown)
        return replace(error, at_least=at_least, at_most=at_most, e_value=e, discovered=is_found)

    return [with_bounds(measure) for measure in measures]


def group_noises(
    sample: Sample, groups: Mapping[str, Ints], errors: Sequence[QuestionError]
) -> list[Noise | None]:
    """What redrawn labels would read for each group; None where lists hide something of it."""
    return [
        None
        if error.smooth_error_high is not None
        else question_noise(ask_subset(sample, members), error.smooth_error)
        for members, error in zip(groups.values(), errors, strict=True)
    ]


def judged_groups(
    errors: Sequence[QuestionError],
    noises: Sequence[Noise | None],
    others: float | None,
    alpha: float,
    seed: int,
    n_jobs: int | None,
    n_rows: int,
) -> tuple[QuestionError, ...]:
    """The groups with their noise floors and p-values, the latter before any correction.

    They are corrected for one another, and for the tests of the auditors, which count as `others` groups (None if there
    is no auditor): the smallest p-value that draws can give must stand that.
    """
    known = [noise for noise in noises if noise is not None]
    n_tests, level = (others or 0.0) + len(known), alpha if others is None else WHOLE_SHARE * alpha
    n_draws = int(np.clip(_DRAW_BUDGET // n_rows, FEWEST_DRAWS, draws_wanted(n_tests, level)))
    seeds = np.random.SeedSequence(seed).spawn(len(known))
    tests = map_threads(
        lambda task: noise_test(task[0], n_draws, task[1]), list(zip(known, seeds, strict=True)), n_jobs
    )
    results = iter(tests)

    def tested(error: QuestionError, noise: Noise | None) -> QuestionError:
        if noise is None:
            return error
        floor, p_value = next(results)
        smallest = min(n_tests / (1 + n_draws) * alpha / level, 1.0)
        return replace(error, noise_floor=floor, p_value=p_value, smallest_p_value=smallest)

    return tuple(tested(error, noise) for error, noise in zip(errors, noises, strict=True))


def measured(question: Question, name: str, classes: Sequence[str]) -> Measure:
    """A question's error, and what its bounds need: None where lists hide something of it."""
    interval = smooth_interval(question)[0] if question.low is not None else None
    error = smooth_error(question) if interval is None else interval.low
    measure = QuestionError(
        name=name,
        classes=tuple(classes),
        predicted=float(np.average(question.predicted, weights=question.weight)),
        frequency=float(np.average(question.answers, weights=question.weight)),
        smooth_error=error,
        smooth_error_high=None if interval is None else interval.high,
        chance=chance_spread(question),
    )
    return measure, None if interval is not None else Residuals.of_question(question, error)
