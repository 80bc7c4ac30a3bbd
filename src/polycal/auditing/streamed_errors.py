"""The errors of notions over rows that go by: of smooth questions in cells, of others by a witness from the sketch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polycal._typing import Ints
from polycal.auditing.findings import Found
from polycal.auditing.parts import MeasuredError
from polycal.auditing.passes import JudgingPass, MeasuringPass
from polycal.auditing.questions import CONFIDENCE
from polycal.auditing.rows import Plan
from polycal.auditing.source import Source
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.questions import Classwise, Confidence, PerQuestion, SubsetWitness, TopWitness
from polycal.families.witness import Witness
from polycal.sample import Sample
from polycal.states.cells import QuestionSummary

SMOOTH_CONFIDENCE, SMOOTH_CLASSWISE = Confidence(smooth=True), Classwise(smooth=True)
_FLOOR_DRAWS = 20  # behind a noise floor


def searched_notions(
    notions: Sequence[Notion], sketch: Sample, found: Sequence[Found]
) -> dict[int, ErrorEstimate]:
    """What to measure on all rows for each notion that is not computed in cells: a witness, from the sketch."""
    estimates = {}
    # Of a path of sets, the last is the worst of all.
    found_by = {one.source: one.witness for one in found}
    for number, notion in enumerate(notions):
        if notion in (SMOOTH_CONFIDENCE, SMOOTH_CLASSWISE):
            continue
        witness = found_by.get(notion.name)
        if isinstance(witness, SubsetWitness):
            estimates[number] = ErrorEstimate(0.0, "lower bound", notion, "", 1, 0, witness)
        else:
            estimates[number] = notion.estimate(sketch)
    return estimates


def is_largest(estimate: ErrorEstimate) -> bool:
    """Whether the estimate is the correlation of its witness: no mean or sum of several, and no bound from above."""
    return not isinstance(estimate.notion, PerQuestion) and estimate.kind != "upper bound"


def notion_errors(
    plan: Plan,
    source: Source,
    followed: Ints | None,
    first: MeasuringPass,
    judged: JudgingPass | None,
    searched: Mapping[int, ErrorEstimate],
) -> tuple[MeasuredError, ...]:
    """The error of each notion, from the passes over all rows; of the classes that are followed, None for all."""
    errors = _Errors(plan.seed, source, followed, first, judged, searched)
    return tuple(errors.measured(number, notion) for number, notion in enumerate(plan.notions))


@dataclass(frozen=True)
class _Errors:
    seed: int
    source: Source
    followed: Ints | None
    first: MeasuringPass
    judged: JudgingPass | None
    searched: Mapping[int, ErrorEstimate]

    def measured(self, number: int, notion: Notion) -> MeasuredError:
        if notion == SMOOTH_CONFIDENCE:
            return self._confidence(notion)
        if notion == SMOOTH_CLASSWISE:
            return self._classwise(notion)
        return MeasuredError(self._searched(number, notion), None)

    @property
    def n_samples(self) -> int:
        return self.first.scores.n_samples

    def _confidence(self, notion: Notion) -> MeasuredError:
        state = self.first.ranks[CONFIDENCE]
        summary = state.finish()
        phi = summary.curve.phi.simplified()
        witness = TopWitness((phi,), self.source.n_classes, self.source.class_names)
        floor = None if self.source.is_listed else float(state.noise(_FLOOR_DRAWS, self.seed).mean())
        return MeasuredError(_in_cells(summary, notion, self.n_samples, witness), floor)

    def _classwise(self, notion: Notion) -> MeasuredError:
        summaries = self.first.classes.finish()
        worst = int(np.argmax([summary.low for summary in summaries]))
        members = np.array([worst if self.followed is None else self.followed[worst]])
        phi = summaries[worst].curve.phi.simplified()
        witness = SubsetWitness(members, phi, self.source.n_classes, self.source.class_names)
        estimate = _in_cells(summaries[worst], notion, self.n_samples, witness)
        if self.source.is_listed:
            return MeasuredError(replace(estimate, upper=max(s.high for s in summaries)), None)
        floor = float(self.first.classes.noise(_FLOOR_DRAWS, self.seed).max(axis=0).mean())
        return MeasuredError(estimate, floor)

    def _searched(self, number: int, notion: Notion) -> ErrorEstimate:
        estimate = self.searched.get(number)
        if self.judged is None or estimate is None:
            return replace(notion.estimate(self.first.sketch.finish()), kind="heuristic")
        if number in self.judged.subsets:
            summary, found = self.judged.subsets[number].finish(), estimate.witness
            if not isinstance(found, SubsetWitness):
                raise TypeError("a set of classes was expected.")
            whole = replace(found, phi=summary.curve.phi.simplified())
            return _in_cells(summary, notion, self.n_samples, whole)
        if number in self.judged.witnesses:
            state = self.judged.witnesses[number]
            method = f"the witness found on {estimate.n_samples:,} rows, on all rows; {estimate.method}"
            return replace(
                estimate, value=state.estimate, kind="lower bound", method=method, n_samples=self.n_samples
            )
        method = f"on a random sample of {estimate.n_samples:,} rows; {estimate.method}"
        return replace(estimate, kind="heuristic", method=method)


def _in_cells(summary: QuestionSummary, notion: Notion, n_samples: int, witness: Witness) -> ErrorEstimate:
    method = f"cells of the predicted probability; the exact value is within {summary.bound:.1e} of {summary.value:.6f}"
    upper = summary.high if summary.unknown else None
    return ErrorEstimate(summary.low, "lower bound", notion, method, 1, n_samples, witness, upper=upper)
