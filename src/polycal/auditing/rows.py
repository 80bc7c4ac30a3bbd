"""What an audit asks of its rows, and the exact answers where all rows are held."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polycal._typing import Ints
from polycal.auditing.costs import Cost, held_costs
from polycal.auditing.findings import Halves, find_all, whole_weight
from polycal.auditing.named_slices import named_slices
from polycal.auditing.nodes import NodeError, Nodes, node_errors
from polycal.auditing.parts import Finding, MeasuredError, QuestionError
from polycal.auditing.pictures import Picture, found_pictures, named_pictures
from polycal.auditing.questions import asked_ranks, class_errors, group_noises, judged_groups, named_errors
from polycal.auditing.shares import EXTRA_SHARE, Extra, core_share
from polycal.auditing.slicing import NO_SLICES, SlicePlan, Slices, found_slices
from polycal.calibrators.base import Calibrator
from polycal.families.auditor import Auditor
from polycal.families.notion import Notion
from polycal.families.questions import MOST_CLASSES
from polycal.inference.redraw import null_draws
from polycal.listed import ListedSample
from polycal.measures.costs import Loss
from polycal.measures.scores import sample_scores
from polycal.sample import Sample, refuse_lists

# Redraws of the labels for the noise floor of a notion, within a budget of cells n k.
_FLOOR_DRAWS, _FLOOR_BUDGET = 20, 40_000_000
# Notions whose estimate is a few sorts; the others are searches.
_CHEAP = frozenset({"confidence", "top-label", "classwise", "canonical"})

_HIDDEN = (
    "The lists leave out {rest:.3g} of the probability on average. What that hides is given as an interval, "
    "certificates count each row with the least it can be worth, and questions about classes that are not listed have "
    "no picture and no test."
)
_SOME_CLASSES = (
    "Of {classes:,} classes, the {most:,} with the largest predictions and frequencies are measured."
)


@dataclass(frozen=True, eq=False)
class Plan:
    """What to measure and search, and how."""

    notions: Sequence[Notion]
    auditors: Mapping[str, Auditor]
    groups: Mapping[str, Ints]
    alpha: float
    seed: int
    n_jobs: int | None
    losses: tuple[Loss, ...] = ()
    nodes: Nodes | None = None
    slices: SlicePlan = NO_SLICES

    @property
    def extras(self) -> frozenset[Extra]:
        """What is asked for beside findings and named questions."""
        asked: dict[Extra, object] = {
            "costs": self.losses,
            "nodes": self.nodes,
            "slices": self.slices.asked,
        }
        return frozenset(extra for extra, given in asked.items() if given)

    @property
    def core(self) -> float:
        """The share of alpha that is left for findings and named questions."""
        return core_share(self.extras)

    @property
    def whole_weight(self) -> float | None:
        """How many groups the tests by all rows of the auditors count as, at most; None if nothing is searched."""
        return sum(map(whole_weight, self.auditors.values())) if self.auditors else None

    @property
    def core_alpha(self) -> float:
        """What findings and named questions may fail with."""
        return self.core * self.alpha

    @property
    def extra_alpha(self) -> float:
        """What each kind of extra may fail with."""
        return EXTRA_SHARE * self.alpha

    @property
    def slice_fdr(self) -> float:
        """The level of e-BH for slices: with their bounds, all are wrong with at most alpha if no prediction is."""
        return self.alpha - self.extra_alpha


class Measured(NamedTuple):
    """What is known of all rows before anything is searched."""

    n_samples: int
    n_searched: int
    n_judging: int
    weighted: bool
    scores: dict[str, float]
    classes: tuple[QuestionError, ...]
    confidence: QuestionError
    ranks: tuple[QuestionError, ...]
    groups: tuple[QuestionError, ...]
    nodes: tuple[NodeError, ...] = ()


class Rows(ABC):
    """The rows of an audit, in the order in which it asks: measure, find, errors, pictures."""

    @property
    @abstractmethod
    def approximations(self) -> tuple[str, ...]:
        """What is not exact, in sentences."""

    @abstractmethod
    def measure(self) -> Measured:
        """Scores, classes and groups, on all rows."""

    @abstractmethod
    def find(self) -> tuple[Finding, ...]:
        """What the auditors find on one half of the rows, judged on the other."""

    @abstractmethod
    def slices(self) -> Slices:
        """The slices that the search finds, and those that have names."""

    @abstractmethod
    def errors(self) -> tuple[MeasuredError, ...]:
        """The notions' errors, on all rows."""

    @abstractmethod
    def costs(self) -> tuple[Cost, ...]:
        """What acting on the predictions costs, for each loss."""

    def pictures(self, findings: Sequence[Finding], before: "Rows | None" = None) -> tuple[Picture, ...]:
        """Confidence, the questions found, and groups; beside the same rows before a calibrator, if these are given."""
        first, *others = self.named_pictures(before)
        return (first, *self.found_pictures(findings, before), *others)

    @abstractmethod
    def named_pictures(self, before: "Rows | None") -> list[Picture]:
        """Confidence, ranks and groups."""

    @abstractmethod
    def found_pictures(self, findings: Sequence[Finding], before: "Rows | None") -> list[Picture]:
        """The questions found."""


class HeldRows(Rows):
    """Rows in memory, exactly."""

    def __init__(self, sample: Sample, halves: Halves, plan: Plan, tried: Calibrator | None = None) -> None:
        self.sample, self.halves, self.plan, self.tried = sample, halves, plan, tried

    @property
    def approximations(self) -> tuple[str, ...]:
        """What lists hide."""
        return hidden_words(self.sample)

    def measure(self) -> Measured:
        """Scores, classes and groups."""
        sample, plan = self.sample, self.plan
        weight = sample.sample_weight
        confidence, ranks, groups = named_errors(sample, plan.groups, plan.core_alpha)
        noises = group_noises(sample, plan.groups, groups)
        return Measured(
            n_samples=sample.n_samples,
            n_searched=0 if self.halves is None else self.halves[0].size,
            n_judging=0 if self.halves is None else self.halves[1].size,
            weighted=weight is not None and bool((weight != 1.0).any()),
            scores=sample_scores(sample),
            classes=class_errors(sample, plan.n_jobs, plan.core_alpha),
            confidence=confidence,
            ranks=ranks,
            groups=judged_groups(
                groups, noises, plan.whole_weight, plan.core_alpha, plan.seed, plan.n_jobs, sample.n_samples
            ),
            nodes=node_errors(plan.nodes, sample, plan.extra_alpha, plan.n_jobs) if plan.nodes else (),
        )

    def find(self) -> tuple[Finding, ...]:
        """Search on one half, judge on the other."""
        plan = self.plan
        return find_all(
            plan.auditors, self.sample, self.halves, plan.core_alpha, plan.seed, plan.n_jobs, len(plan.groups)
        )

    def slices(self) -> Slices:
        """Search on one half, judge on the other; named slices on all rows."""
        plan, asked, sample = self.plan, self.plan.slices, self.sample
        alpha = asked.named_alpha(plan.extra_alpha)
        named = named_slices(sample, asked.named_in(sample), plan.groups, plan.losses, alpha, plan.seed)
        if not asked.search or self.halves is None:
            return Slices((), named)
        searched, judging = (sample.take(rows) for rows in self.halves)
        alpha = asked.found_alpha(plan.extra_alpha)
        found = found_slices(searched, judging, alpha, plan.slice_fdr, plan.seed, plan.n_jobs)
        return Slices(found, named)

    def costs(self) -> tuple[Cost, ...]:
        """The costs, and what a calibrator that is tried saves."""
        plan = self.plan
        return held_costs(self.sample, self.halves, plan.losses, self.tried, plan.extra_alpha, plan.seed)

    def errors(self) -> tuple[MeasuredError, ...]:
        """The plug-in error of each notion, and its noise floor where that is cheap."""
        return tuple(self._measured(notion) for notion in self.plan.notions)

    def _measured(self, notion: Notion) -> MeasuredError:
        if not notion.reads_lists:
            refuse_lists(self.sample, repr(notion))
        cost = self.sample.n_samples * self.sample.n_classes * (1 if notion.name in _CHEAP else 100)
        n_draws = 0 if self.sample.is_listed else min(_FLOOR_DRAWS, _FLOOR_BUDGET // cost)
        if n_draws < 2:
            return MeasuredError(notion.estimate(self.sample), None)
        # What chance alone reads must be found in the same way.
        repeated = notion.repeated(1 + n_draws)
        estimate = repeated.estimate(self.sample)
        draws = null_draws(
            self.sample,
            lambda redrawn: repeated.estimate(redrawn).value,
            n_draws,
            self.plan.seed,
        )
        return MeasuredError(estimate, float(draws.mean()))

    def named_pictures(self, before: Rows | None) -> list[Picture]:
        """On all rows: nobody searched for these questions."""
        ranks = asked_ranks(self.sample.n_classes)
        level, n_jobs = 1 - self.plan.alpha, self.plan.n_jobs
        return named_pictures(self._series(before), self.plan.groups, ranks, level, n_jobs)

    def found_pictures(self, findings: Sequence[Finding], before: Rows | None) -> list[Picture]:
        """On the rows that judged them."""
        if self.halves is None:
            return []
        judging = {name: sample.take(self.halves[1]) for name, sample in self._series(before).items()}
        return found_pictures(judging, findings, 1 - self.plan.alpha)

    def _series(self, before: Rows | None) -> dict[str, Sample]:
        return (
            {"before": before.sample, "after": self.sample}
            if isinstance(before, HeldRows)
            else {"as given": self.sample}
        )


def hidden_words(sample: Sample) -> tuple[str, ...]:
    """What lists hide, in sentences."""
    if not isinstance(sample, ListedSample):
        return ()
    rest = _HIDDEN.format(rest=float(sample.mass @ sample.rest))
    some = _SOME_CLASSES.format(classes=sample.n_classes, most=MOST_CLASSES)
    return (*((rest,) if sample.hides else ()), *((some,) if sample.n_classes > MOST_CLASSES else ()))
