"""Slices that have names: every named question among the rows of each, exactly, or by states where rows go by."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from polycal._typing import Ints
from polycal.auditing.costs import Cost, costs_of
from polycal.auditing.parts import QuestionError
from polycal.auditing.questions import Measure, asked_ranks, bounded, measured
from polycal.auditing.shares import (
    SLICE_CLASS_SHARES,
    SLICE_COST_SHARE,
    SLICE_NAMED_SHARES,
    SLICE_RANK_SHARES,
)
from polycal.auditing.slices import NamedSlice, SliceRows
from polycal.families.slices import Condition, slice_rows
from polycal.measures.costs import Loss
from polycal.sample import Sample, ask_subset, ask_top_set
from polycal.states.cells import QuestionSummary
from polycal.states.costs import CostState
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.slices import SliceState

Conditions = tuple[Condition, ...]
# From a name, the classes and the summary of a question to what is said of it.
MakeError = Callable[[str, Ints, QuestionSummary], QuestionError]


class NamedLevels(NamedTuple):
    """What the bounds of all questions may fail with, and the intervals of each cost in each slice."""

    questions: float
    cost: float

    @classmethod
    def of(cls, alpha: float, n_slices: int, n_losses: int) -> "NamedLevels":
        """Of the alpha of all named slices."""
        costs = SLICE_COST_SHARE * alpha if n_losses else 0.0
        return cls(alpha - costs, costs / max(n_slices * n_losses, 1))


class SliceMeasures(NamedTuple):
    """What is measured in one slice: named questions without bounds, and costs."""

    rows: SliceRows
    named: list[Measure]
    ranks: list[Measure]
    classes: list[Measure]
    costs: tuple[Cost, ...]


def named_slices(
    sample: Sample,
    slices: Mapping[str, Conditions],
    groups: Mapping[str, Ints],
    losses: Sequence[Loss],
    alpha: float,
    seed: int,
) -> tuple[NamedSlice, ...]:
    """Every named slice of rows that are held, with every question that has a name, and every loss."""
    levels = NamedLevels.of(alpha, len(slices), len(losses))
    measures = {name: _held(sample, one, groups, losses, levels, seed) for name, one in slices.items()}
    return _together(measures, levels)


def _held(
    sample: Sample,
    conditions: Conditions,
    groups: Mapping[str, Ints],
    losses: Sequence[Loss],
    levels: NamedLevels,
    seed: int,
) -> SliceMeasures | None:
    """None for a slice without rows."""
    part = sample.take(slice_rows(conditions, sample.features))
    weight = float(part.n_samples if part.sample_weight is None else part.sample_weight.sum())
    if weight == 0:
        return None
    whole = float(sample.n_samples if sample.sample_weight is None else sample.sample_weight.sum())
    ranks = asked_ranks(part.n_classes)
    tops = [measured(ask_top_set(part, m), name, []) for name, m in ranks.items()]
    sets = [
        measured(ask_subset(part, members), name, [part.name(int(c)) for c in members])
        for name, members in groups.items()
    ]
    classes = [
        measured(ask_subset(part, np.array([c])), part.name(c), [part.name(c)]) for c in range(part.n_classes)
    ]
    costs = {loss.name: CostState(loss, alpha=levels.cost, random_state=seed) for loss in losses}
    for state in costs.values():
        state.absorb(part, np.arange(part.n_samples))
    rows = SliceRows(conditions, part.n_samples, weight / whole)
    return SliceMeasures(rows, [tops[0], *sets], tops[1:], classes, costs_of(costs, {}, {}))


def slice_states(
    slices: Mapping[str, Conditions],
    groups: Mapping[str, Ints],
    ranks: Mapping[str, int],
    losses: Sequence[Loss],
    alpha: float,
    cells: tuple[int, int],
    seed: int,
) -> dict[str, SliceState]:
    """The same for rows that go by, in cells: so many of each question, and so many of each class."""
    levels, width = NamedLevels.of(alpha, len(slices), len(losses)), 1.0 / cells[0]
    return {
        name: SliceState(
            conditions,
            (
                *(QuestionState(top=m, resolution=width) for m in ranks.values()),
                *(QuestionState(members.tolist(), resolution=width) for members in groups.values()),
                ClassesState(resolution=1.0 / cells[1]),
                *(CostState(loss, alpha=levels.cost, random_state=seed) for loss in losses),
            ),
        )
        for name, conditions in slices.items()
    }


def finished_slices(
    states: Mapping[str, SliceState],
    groups: Mapping[str, Ints],
    ranks: Mapping[str, int],
    losses: Sequence[Loss],
    alpha: float,
    make: MakeError,
    names: Sequence[str],
) -> tuple[NamedSlice, ...]:
    """What the states say, with bounds that hold together."""
    levels = NamedLevels.of(alpha, len(states), len(losses))
    measures = {name: _streamed(state, groups, ranks, losses, make, names) for name, state in states.items()}
    return _together(measures, levels)


def _streamed(
    state: SliceState,
    groups: Mapping[str, Ints],
    ranks: Mapping[str, int],
    losses: Sequence[Loss],
    make: MakeError,
    names: Sequence[str],
) -> SliceMeasures | None:
    weights = state.weights
    if weights.total <= 0:
        return None
    nobody, own = np.empty(0, dtype=np.int64), list(state.states)
    asked = [*((name, nobody) for name in ranks), *groups.items()]
    named = [
        (make(name, members, one.finish()), one.residuals(weights))
        for (name, members), one in zip(asked, own, strict=False)
        if isinstance(one, QuestionState)
    ]
    every = own[len(asked)]
    if not isinstance(every, ClassesState):
        raise TypeError("the classes were expected after the questions.")
    classes = [
        (make(names[c], np.array([c]), summary), every.residuals(c, summary.value, weights))
        for c, summary in enumerate(every.finish())
    ]
    costs = {loss.name: one for loss, one in zip(losses, own[len(asked) + 1 :], strict=True)}
    rows = SliceRows(state.conditions, weights.n_rows, weights.total / state.total_weight)
    n_ranks = len(ranks)
    kept = {name: one for name, one in costs.items() if isinstance(one, CostState)}
    return SliceMeasures(
        rows, [named[0], *named[n_ranks:]], named[1:n_ranks], classes, costs_of(kept, {}, {})
    )


def _together(measures: Mapping[str, SliceMeasures | None], levels: NamedLevels) -> tuple[NamedSlice, ...]:
    """The named slices that have rows, with bounds that hold together over all of them."""
    known = {name: one for name, one in measures.items() if one is not None}
    shares = {"named": SLICE_NAMED_SHARES, "ranks": SLICE_RANK_SHARES, "classes": SLICE_CLASS_SHARES}
    parts = []
    for kind, share in shares.items():
        lists: list[list[Measure]] = [getattr(one, kind) for one in known.values()]
        flat = iter(bounded([measure for several in lists for measure in several], levels.questions, share))
        parts.append([[next(flat) for _ in several] for several in lists])
    return tuple(
        NamedSlice(name, one.rows, named[0], tuple(ranks), tuple(named[1:]), tuple(classes), one.costs)
        for (name, one), named, ranks, classes in zip(known.items(), *parts, strict=True)
    )
