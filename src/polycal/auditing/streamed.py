"""The answers of rows that go by, in three passes: within stated limits, which the result tells.

Three things are approximate: the errors of questions are computed in cells of the predicted probability, searches see a
random sample of the searched half (the sketch), and the kernel search compares rows with landmarks instead of with each
other. What is found is judged exactly, on all rows of the other half.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.auditing.findings import MIN_ROWS, Judged, findings_of, found_level, search_all
from polycal.auditing.passes import AnyPass, ChoosingPass, JudgingPass, MeasuringPass, SearchingPass
from polycal.auditing.pictures import Picture, found_pictures, named_pictures
from polycal.auditing.questions import (
    CONFIDENCE,
    Measure,
    NamedErrors,
    asked_ranks,
    judged_groups,
    named_of,
    ranked_classes,
)
from polycal.auditing.result import Finding, MeasuredError, QuestionError
from polycal.auditing.rows import Measured, Plan, Rows, hidden_words
from polycal.auditing.source import HELD_CELLS, Source, held_rows
from polycal.calibrators.base import Calibrator
from polycal.families.auditor import Auditor, NotionAuditor
from polycal.families.kernel import KernelAuditor
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.questions import (
    MOST_CLASSES,
    Classwise,
    Confidence,
    PerQuestion,
    SubsetWitness,
    TopWitness,
)
from polycal.families.witness import Witness
from polycal.inference.certificate import main_question, worst_range
from polycal.inference.question_bounds import Residuals
from polycal.inference.redraw import Noise
from polycal.sample import Sample, ask_members, likely_classes
from polycal.states.cells import QuestionSummary, Weights
from polycal.states.certificate import CertificateState, ReadingState
from polycal.states.kernel import KernelState, choose_landmarks
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import ScoreState

# Cells in which the errors of confidence and of groups are computed; of all classes together; and in which groups are
# tested, with thousands of draws.
_CELLS, _CLASS_CELLS, _TEST_CELLS = 1 << 16, 1 << 20, 1 << 10
# Rows of the pictures: more could not be seen.
_DRAWN_ROWS = 20_000
# Draws behind a noise floor.
_FLOOR_DRAWS = 20
_SMOOTH_CONFIDENCE, _SMOOTH_CLASSWISE = Confidence(smooth=True), Classwise(smooth=True)
# What a row takes while a certificate is finished.
_PROOF_BYTES = 128

_GONE_BY = (
    "There are more than {rows:,} rows of {classes:,} classes ({cells:,} probabilities), so not all are held."
)
_IN_CELLS = (
    "Errors are computed in cells of the predicted probability, {cells:,} for confidence and each group and "
    "{class_cells:,} for each class; what this can change is taken off the notions' errors."
)
_ON_A_SKETCH = (
    "Searches saw a random sample of at most {rows:,} rows of the searched half; the kernel search saw all of it, "
    "through landmarks. What they found was judged on every row of the other half."
)


@dataclass(eq=False)
class StreamedRows(Rows):
    """Rows that go by in passes."""

    source: Source
    plan: Plan
    calibrator: Calibrator | None = None
    _measured: MeasuringPass | None = field(default=None, init=False)
    _judged: JudgingPass | None = field(default=None, init=False)
    _notions: dict[int, ErrorEstimate] = field(default_factory=dict, init=False)
    _followed: Ints | None = field(default=None, init=False)

    def measure(self) -> Measured:
        """The first pass: scores, classes and groups over all rows, and random rows of both halves."""
        self._followed = self._choose_classes()
        passed = self._run(self._measuring())
        self._measured = passed
        scores = passed.scores
        if scores.total_weight == 0:
            raise ValueError("the weights of all rows are 0; at least one must be positive.")
        confidence, ranks, groups = self._named(passed)
        enough = min(passed.n_searched, passed.n_judging) >= MIN_ROWS
        return Measured(
            n_samples=scores.n_samples,
            n_searched=passed.n_searched if enough else 0,
            n_judging=passed.n_judging if enough else 0,
            weighted=scores.total_weight != scores.n_samples or passed.weights.square != passed.weights.total,
            scores=scores.finish(),
            classes=self._classes(passed),
            confidence=confidence,
            ranks=ranks,
            groups=self._groups(passed, groups),
        )

    def find(self) -> tuple[Finding, ...]:
        """Search the sketch, and with kernels all of the searched half; judge on all of the other half."""
        measured = self._first()
        if min(measured.n_searched, measured.n_judging) < MIN_ROWS:
            return ()
        sketch, plan = measured.sketch.finish(), self.plan
        found = self._searched(sketch)
        self._notions = self._searched_notions(sketch, found)
        self._judged = self._run(self._judging(found, sketch))
        threads = self.source.n_threads(_PROOF_BYTES * measured.n_judging, plan.n_jobs)
        certificates = map_threads(CertificateState.finish, self._judged.certificates.values(), threads)
        readings = [state.finish() for state in self._judged.readings.values()]
        judged = list(map(Judged, certificates, readings))
        noises = {name: partial(self._noise, auditor) for name, auditor in plan.auditors.items()}
        return findings_of(found, judged, noises, plan.alpha, plan.seed, len(plan.groups))

    def _noise(self, auditor: Auditor) -> Noise | None:
        """A test by all rows; the kernel has none, for half of so many rows shows nearly as much."""
        if auditor != NotionAuditor(_SMOOTH_CONFIDENCE) or self.source.is_listed:
            return None
        cells = self._first().ranks[CONFIDENCE].in_cells(_TEST_CELLS)
        return Noise(cells.error(), cells.draw)

    def errors(self) -> tuple[MeasuredError, ...]:
        """Each notion's error: of smooth questions in cells, of others by the witness that the searches found."""
        return tuple(self._error(number, notion) for number, notion in enumerate(self.plan.notions))

    def named_pictures(self, before: Rows | None) -> list[Picture]:
        """On a random sample of the rows that judge."""
        plan, ranks = self.plan, self._ranks()
        drawn = named_pictures(self._series(before), plan.groups, ranks, 1 - plan.alpha, plan.n_jobs)
        return [replace(picture, rows="sampled") for picture in drawn]

    def found_pictures(self, findings: Sequence[Finding], before: Rows | None) -> list[Picture]:
        """On the same sample."""
        drawn = found_pictures(self._series(before), findings, 1 - self.plan.alpha)
        return [replace(picture, rows="sampled") for picture in drawn]

    def _series(self, before: Rows | None) -> dict[str, Sample]:
        drawn = self._first().drawn.finish()
        if isinstance(before, StreamedRows):
            return {"before": before._first().drawn.finish(), "after": drawn}
        return {"as given": drawn}

    @property
    def approximations(self) -> tuple[str, ...]:
        """What is not exact, and from which size on."""
        k, width = self.source.n_classes, self._width
        return (
            _GONE_BY.format(rows=held_rows(width), classes=k, cells=HELD_CELLS),
            _IN_CELLS.format(cells=_CELLS, class_cells=_class_cells(width)),
            _ON_A_SKETCH.format(rows=_sketch_rows(width)),
            *(hidden_words(self._first().sketch.finish()) if self.source.is_listed else ()),
        )

    @property
    def _width(self) -> int:
        """By which cells and sketches are sized: the number of classes, of lists at most that of those measured."""
        return min(self.source.n_classes, MOST_CLASSES) if self.source.is_listed else self.source.n_classes

    def _choose_classes(self) -> Ints | None:
        """The classes to measure; None if all."""
        if self._width == self.source.n_classes:
            return None
        sketch = SketchState(_sketch_rows(self._width), random_state=self.plan.seed)
        return likely_classes(
            self._run(ChoosingPass(seed=self.plan.seed, sketch=sketch)).sketch.finish(), MOST_CLASSES
        )

    def _first(self) -> MeasuringPass:
        if self._measured is None:
            raise RuntimeError("rows are measured before anything else is asked of them.")
        return self._measured

    def _run(self, task: AnyPass) -> AnyPass:
        return self.source.run(task, self.plan.n_jobs)

    def _measuring(self) -> MeasuringPass:
        k, seed = self._width, self.plan.seed
        return MeasuringPass(
            seed=seed,
            calibrator=self.calibrator,
            scores=ScoreState(),
            classes=ClassesState(resolution=1 / _class_cells(k), classes=self._followed),
            ranks={name: QuestionState(top=m, resolution=1 / _CELLS) for name, m in self._ranks().items()},
            groups={
                name: QuestionState(members.tolist(), resolution=1 / _CELLS)
                for name, members in self.plan.groups.items()
            },
            sketch=SketchState(_sketch_rows(k), random_state=seed),
            drawn=SketchState(min(_DRAWN_ROWS, max(1, _sketch_rows(k) // 4)), random_state=seed),
        )

    def _ranks(self) -> dict[str, int]:
        return asked_ranks(self.source.n_classes, is_listed=self.source.is_listed)

    def _searched(self, sketch: Sample) -> dict[str, Witness]:
        """The witnesses: of kernels from all searched rows, of everything else from the sketch."""
        kernels = {name: one for name, one in self.plan.auditors.items() if isinstance(one, KernelAuditor)}
        others = {name: one for name, one in self.plan.auditors.items() if name not in kernels}
        found = dict(zip(others, search_all(others, sketch, self.plan.n_jobs), strict=True))
        if kernels:
            landmarks = choose_landmarks(sketch)
            states = {
                name: KernelState(landmarks, one.kernel, random_state=self.plan.seed)
                for name, one in kernels.items()
            }
            passed = self._run(SearchingPass(seed=self.plan.seed, calibrator=self.calibrator, kernels=states))
            found |= {name: state.finish() for name, state in passed.kernels.items()}
        return {name: found[name] for name in self.plan.auditors}

    def _searched_notions(self, sketch: Sample, found: Mapping[str, Witness]) -> dict[int, ErrorEstimate]:
        """What to measure on all rows for each notion that is not computed in cells: a witness, from the sketch."""
        estimates = {}
        for number, notion in enumerate(self.plan.notions):
            if notion in (_SMOOTH_CONFIDENCE, _SMOOTH_CLASSWISE):
                continue
            witness = found.get(notion.name)
            if isinstance(witness, SubsetWitness):
                estimates[number] = ErrorEstimate(0.0, "lower bound", notion, "", 1, 0, witness)
            else:
                estimates[number] = notion.estimate(sketch)
        return estimates

    def _judging(self, found: Mapping[str, Witness], sketch: Sample) -> JudgingPass:
        shown = {n: e.witness for n, e in self._notions.items() if _is_largest(e)}
        return JudgingPass(
            seed=self.plan.seed,
            calibrator=self.calibrator,
            certificates={name: self._certificate(witness) for name, witness in found.items()},
            readings={name: _reading(witness, sketch) for name, witness in found.items()},
            subsets={
                n: QuestionState(w.members.tolist(), resolution=1 / _CELLS)
                for n, w in shown.items()
                if isinstance(w, SubsetWitness)
            },
            witnesses={
                n: self._certificate(w)
                for n, w in shown.items()
                if w is not None and not isinstance(w, SubsetWitness)
            },
        )

    def _certificate(self, witness: Witness) -> CertificateState:
        level = found_level(self.plan.alpha, len(self.plan.auditors))
        return CertificateState(witness, alpha=level, random_state=self.plan.seed)

    def _error(self, number: int, notion: Notion) -> MeasuredError:
        measured, seed = self._first(), self.plan.seed
        n, k, names = measured.scores.n_samples, self.source.n_classes, self.source.class_names
        if notion == _SMOOTH_CONFIDENCE:
            summary = measured.ranks[CONFIDENCE].finish()
            witness: Witness = TopWitness((summary.curve.phi.simplified(),), k, names)
            floor = (
                None
                if self.source.is_listed
                else float(measured.ranks[CONFIDENCE].noise(_FLOOR_DRAWS, seed).mean())
            )
            return MeasuredError(_in_cells(summary, notion, n, witness), floor)
        if notion == _SMOOTH_CLASSWISE:
            summaries = measured.classes.finish()
            worst = int(np.argmax([summary.low for summary in summaries]))
            members = np.array([worst if self._followed is None else self._followed[worst]])
            witness = SubsetWitness(members, summaries[worst].curve.phi.simplified(), k, names)
            if self.source.is_listed:
                estimate = _in_cells(summaries[worst], notion, n, witness)
                return MeasuredError(replace(estimate, upper=max(s.high for s in summaries)), None)
            floor = float(measured.classes.noise(_FLOOR_DRAWS, seed).max(axis=0).mean())
            return MeasuredError(_in_cells(summaries[worst], notion, n, witness), floor)
        return MeasuredError(self._searched_error(number, notion, n), None)

    def _searched_error(self, number: int, notion: Notion, n_samples: int) -> ErrorEstimate:
        estimate = self._notions.get(number)
        if self._judged is None or estimate is None:
            return replace(notion.estimate(self._first().sketch.finish()), kind="heuristic")
        if number in self._judged.subsets:
            summary, found = self._judged.subsets[number].finish(), estimate.witness
            if not isinstance(found, SubsetWitness):
                raise TypeError("a set of classes was expected.")
            whole = replace(found, phi=summary.curve.phi.simplified())
            return _in_cells(summary, notion, n_samples, whole)
        if number in self._judged.witnesses:
            state = self._judged.witnesses[number]
            method = f"the witness found on {estimate.n_samples:,} rows, on all rows; {estimate.method}"
            return replace(
                estimate, value=state.estimate, kind="lower bound", method=method, n_samples=n_samples
            )
        method = f"on a random sample of {estimate.n_samples:,} rows; {estimate.method}"
        return replace(estimate, kind="heuristic", method=method)

    def _classes(self, passed: MeasuringPass) -> tuple[QuestionError, ...]:
        summaries = passed.classes.finish()
        classes = range(len(summaries)) if self._followed is None else self._followed.tolist()
        measures = [
            self._measure(
                passed,
                self._question(self._name(c), np.array([c]), summary),
                partial(passed.classes.residuals, number, summary.value),
            )
            for number, (c, summary) in enumerate(zip(classes, summaries, strict=True))
        ]
        return ranked_classes(measures, self.plan.alpha)

    def _named(self, passed: MeasuringPass) -> NamedErrors:
        """Confidence, ranks and groups."""
        nobody = np.empty(0, dtype=np.int64)
        measures = [
            self._measure(
                passed,
                self._question(name, self.plan.groups.get(name, nobody), state.finish()),
                state.residuals,
            )
            for name, state in (*passed.ranks.items(), *passed.groups.items())
        ]
        return named_of(measures, len(passed.ranks), self.plan.alpha)

    def _measure(
        self, passed: MeasuringPass, error: QuestionError, residuals: Callable[[Weights], Residuals | None]
    ) -> Measure:
        return error, None if error.smooth_error_high is not None else residuals(passed.weights)

    def _groups(self, passed: MeasuringPass, errors: Sequence[QuestionError]) -> tuple[QuestionError, ...]:
        plan = self.plan
        # The error seen and those drawn are of the same cells, so that the test is of the level it says.
        cells = [
            None if error.smooth_error_high is not None else passed.groups[name].in_cells(_TEST_CELLS)
            for name, error in zip(plan.groups, errors, strict=True)
        ]
        noises = [None if one is None else Noise(one.error(), one.draw) for one in cells]
        return judged_groups(errors, noises, len(plan.auditors), plan.alpha, plan.seed, plan.n_jobs, n_rows=1)

    def _question(self, name: str, members: Ints, summary: QuestionSummary) -> QuestionError:
        return QuestionError(
            name=name,
            classes=tuple(self._name(int(c)) for c in members),
            predicted=summary.predicted,
            frequency=summary.frequency,
            smooth_error=summary.low if summary.unknown else summary.value,
            smooth_error_high=summary.high if summary.unknown else None,
            chance=summary.chance,
        )

    def _name(self, class_index: int) -> str:
        names = self.source.class_names
        return str(class_index) if names is None else names[class_index]


def _class_cells(n_classes: int) -> int:
    """Cells of each class: a power of two, all classes together about a million."""
    return int(2 ** np.clip(np.floor(np.log2(_CLASS_CELLS / n_classes)), 10, 16))


def _sketch_rows(n_classes: int) -> int:
    """Rows that searches see: a third of those that would be held, which the least memory allowed has room for."""
    return max(1, held_rows(n_classes) // 3)


def _is_largest(estimate: ErrorEstimate) -> bool:
    """Whether the estimate is the correlation of its witness: no mean or sum of several, and no bound from above."""
    return not isinstance(estimate.notion, PerQuestion) and estimate.kind != "upper bound"


def _reading(witness: Witness, sketch: Sample) -> ReadingState:
    """What to read off of a witness: the range of its main question that is worst on the sketch."""
    members = main_question(witness, sketch)
    worst = worst_range(ask_members(sketch, members))
    return (
        ReadingState(None, *worst, top=members)
        if isinstance(members, int)
        else ReadingState(members.tolist(), *worst)
    )


def _in_cells(summary: QuestionSummary, notion: Notion, n_samples: int, witness: Witness) -> ErrorEstimate:
    method = f"cells of the predicted probability; the exact value is within {summary.bound:.1e} of {summary.value:.6f}"
    upper = summary.high if summary.unknown else None
    return ErrorEstimate(summary.low, "lower bound", notion, method, 1, n_samples, witness, upper=upper)
