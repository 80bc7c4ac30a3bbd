"""What an audit asks of its rows, and the exact answers where all rows are held."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polycal._typing import Ints
from polycal.auditing.findings import Halves, find_all
from polycal.auditing.pictures import Picture, found_pictures, named_pictures
from polycal.auditing.questions import asked_ranks, class_errors, group_noises, judged_groups, named_errors
from polycal.auditing.result import Finding, MeasuredError, QuestionError
from polycal.families.auditor import Auditor
from polycal.families.notion import Notion
from polycal.families.questions import MOST_CLASSES
from polycal.inference.redraw import null_draws
from polycal.listed import ListedSample
from polycal.measures.scores import sample_scores
from polycal.sample import Sample, refuse_lists

# Redraws of the labels for the noise floor of a notion, within a budget of cells n k.
_FLOOR_DRAWS, _FLOOR_BUDGET = 20, 40_000_000
# Notions whose estimate is a few sorts; the others are searches.
_CHEAP = frozenset({"confidence", "top-label", "classwise", "canonical"})

_HIDDEN = (
    "The lists leave out {rest:.3g} of the probability on average. What that hides is given as an interval, "
    "certificates count each row with the least it can be worth, and sets of classes that are not wholly listed have "
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
    def errors(self) -> tuple[MeasuredError, ...]:
        """The notions' errors, on all rows."""

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

    def __init__(self, sample: Sample, halves: Halves, plan: Plan) -> None:
        self.sample, self.halves, self.plan = sample, halves, plan

    @property
    def approximations(self) -> tuple[str, ...]:
        """What lists hide."""
        return hidden_words(self.sample)

    def measure(self) -> Measured:
        """Scores, classes and groups."""
        sample, plan = self.sample, self.plan
        weight = sample.sample_weight
        confidence, ranks, groups = named_errors(sample, plan.groups, plan.alpha)
        noises = group_noises(sample, plan.groups, groups)
        return Measured(
            n_samples=sample.n_samples,
            n_searched=0 if self.halves is None else self.halves[0].size,
            n_judging=0 if self.halves is None else self.halves[1].size,
            weighted=weight is not None and bool((weight != 1.0).any()),
            scores=sample_scores(sample),
            classes=class_errors(sample, plan.n_jobs, plan.alpha),
            confidence=confidence,
            ranks=ranks,
            groups=judged_groups(
                groups, noises, len(plan.auditors), plan.alpha, plan.seed, plan.n_jobs, sample.n_samples
            ),
        )

    def find(self) -> tuple[Finding, ...]:
        """Search on one half, judge on the other."""
        plan = self.plan
        return find_all(
            plan.auditors, self.sample, self.halves, plan.alpha, plan.seed, plan.n_jobs, len(plan.groups)
        )

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
        ranks = asked_ranks(self.sample.n_classes, is_listed=self.sample.is_listed)
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
