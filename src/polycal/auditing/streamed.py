"""The answers of rows that go by, in three passes: within stated limits, which the result tells.

Errors of questions are computed in cells of the predicted probability, searches see a random sample (the sketch), the
kernel search uses landmarks. What is found is judged exactly, on all rows of the other half.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from polycal._threads import map_threads, thread_budget
from polycal._typing import Ints
from polycal.auditing.costs import (
    Cost,
    CostLevels,
    cost_states,
    costs_of,
    recalibration_states,
    saving_states,
    swap_states,
)
from polycal.auditing.findings import (
    MIN_ROWS,
    Found,
    Judged,
    WholeTest,
    findings_of,
    reading_state,
    search_all,
    whole_weight,
)
from polycal.auditing.nodes import NodeError, judged_nodes, node_states
from polycal.auditing.parts import Finding, MeasuredError, QuestionError
from polycal.auditing.passes import (
    GONE_BY,
    IN_CELLS,
    ON_A_SKETCH,
    AnyPass,
    ChoosingPass,
    JudgingPass,
    MeasuringPass,
    SearchingPass,
)
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
from polycal.auditing.rows import Measured, Plan, Rows, hidden_words
from polycal.auditing.shares import found_level
from polycal.auditing.slicing import NO_FOUND, FoundSlices, Slices
from polycal.auditing.source import HELD_CELLS, Source, held_rows, sketch_rows
from polycal.auditing.streamed_errors import (
    SMOOTH_CONFIDENCE,
    is_largest,
    notion_errors,
    searched_notions,
)
from polycal.auditing.streamed_slices import finish_states, make_states
from polycal.calibrators.base import Calibrator
from polycal.families.auditor import Auditor, NotionAuditor
from polycal.families.kernel import KernelAuditor
from polycal.families.notion import ErrorEstimate
from polycal.families.questions import (
    MOST_CLASSES,
    SubsetWitness,
)
from polycal.families.witness import Witness
from polycal.inference.question_bounds import Residuals
from polycal.inference.redraw import Noise
from polycal.sample import Sample, likely_classes
from polycal.states.cells import QuestionSummary, Weights
from polycal.states.certificate import CertificateState
from polycal.states.kernel import KernelState, choose_landmarks
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import ScoreState

# Cells in which the errors of confidence and of groups are computed; of all classes together; and in which groups are
# tested, with thousands of draws.
_CELLS, _CLASS_CELLS, _TEST_CELLS = 1 << 16, 1 << 20, 1 << 10
# Rows of the pictures: more could not be seen.
_DRAWN_ROWS = 20_000
# What a row takes while a certificate is finished, and what a thread takes for each probability of the sketch.
_PROOF_BYTES, _SKETCH_BYTES = 128, 32


@dataclass(eq=False)
class StreamedRows(Rows):
    """Rows that go by in passes."""

    source: Source
    plan: Plan
    calibrator: Calibrator | None = None
    # Whose effect on costs is measured beside, row by row.
    tried: Calibrator | None = None
    _measured: MeasuringPass | None = field(default=None, init=False)
    _judged: JudgingPass | None = field(default=None, init=False)
    _notions: dict[int, ErrorEstimate] = field(default_factory=dict, init=False)
    _followed: Ints | None = field(default=None, init=False)
    _found: FoundSlices = field(default=NO_FOUND, init=False)

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
            nodes=self._nodes(passed),
        )

    def find(self) -> tuple[Finding, ...]:
        """Search the sketch, and with kernels all of the searched half; judge on all of the other half."""
        measured = self._first()
        if min(measured.n_searched, measured.n_judging) < MIN_ROWS:
            return ()
        sketch, plan = measured.sketch.finish(), self.plan
        found = self._searched(sketch)
        with thread_budget(self._sketch_jobs):
            self._notions = searched_notions(self.plan.notions, sketch, found)
            judging = self._judging(found, sketch)
        self._judged = self._run(judging)
        threads = self.source.n_threads(_PROOF_BYTES * measured.n_judging, plan.n_jobs)
        certificates = map_threads(CertificateState.finish, self._judged.certificates.values(), threads)
        readings = [state.finish() for state in self._judged.readings.values()]
        judged = list(map(Judged, certificates, readings))
        tests = {name: self._whole_test(auditor) for name, auditor in plan.auditors.items()}
        return findings_of(found, judged, tests, plan.core_alpha, plan.seed, len(plan.groups))

    def _whole_test(self, auditor: Auditor) -> WholeTest | None:
        """A test by all rows; the kernel has none, for half of so many rows shows nearly as much."""
        if auditor != NotionAuditor(SMOOTH_CONFIDENCE) or self.source.is_listed:
            return None
        return WholeTest(whole_weight(auditor), self._confidence_noise)

    def _confidence_noise(self) -> Noise:
        cells = self._first().ranks[CONFIDENCE].in_cells(_TEST_CELLS)
        return Noise(cells.error(), cells.draw)

    def slices(self) -> Slices:
        """Cut and searched for on the sketch; judged on the other half, and named slices measured, by the last pass."""
        if not self.plan.slices.asked or self._judged is None:
            return Slices((), ())
        return finish_states(self.plan, self._found, self._first(), self._judged, self._question)

    def errors(self) -> tuple[MeasuredError, ...]:
        """Each notion's error: of smooth questions in cells, of others by the witness that the searches found."""
        return notion_errors(
            self.plan, self.source, self._followed, self._first(), self._judged, self._notions
        )

    def costs(self) -> tuple[Cost, ...]:
        """By all rows; swaps by those of either half."""
        savings = {} if self._judged is None else self._judged.savings
        return costs_of(self._first().costs, savings, self._first().recalibrations)

    @property
    def _cost_levels(self) -> CostLevels:
        return CostLevels.of(self.plan.extra_alpha, len(self.plan.losses), tried=self.tried is not None)

    def named_pictures(self, before: Rows | None) -> list[Picture]:
        """On a random sample of the rows that judge."""
        plan, ranks = self.plan, self._ranks()
        drawn = named_pictures(self._series(before), plan.groups, ranks, 1 - plan.alpha, self._sketch_jobs)
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
            GONE_BY.format(rows=held_rows(width), classes=k, cells=HELD_CELLS),
            IN_CELLS.format(cells=_CELLS, class_cells=_class_cells(width)),
            ON_A_SKETCH.format(rows=sketch_rows(width)),
            *self.plan.slices.words(),
            *(hidden_words(self._first().sketch.finish()) if self.source.is_listed else ()),
        )

    @property
    def _width(self) -> int:
        """By which cells and sketches are sized: the number of classes, of lists at most that of those measured."""
        return min(self.source.n_classes, MOST_CLASSES) if self.source.is_listed else self.source.n_classes

    @property
    def _sketch_jobs(self) -> int:
        """Threads that work on the sketch: each has some arrays of its size, which the memory must have room for."""
        cells = sketch_rows(self._width) * self._width
        return self.source.n_threads(_SKETCH_BYTES * cells, self.plan.n_jobs)

    def _choose_classes(self) -> Ints | None:
        """The classes to measure; None if all."""
        if self._width == self.source.n_classes:
            return None
        sketch = SketchState(sketch_rows(self._width), random_state=self.plan.seed)
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
        k, seed, losses, levels = self._width, self.plan.seed, self.plan.losses, self._cost_levels
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
            nodes=node_states(self.plan.nodes),
            sketch=SketchState(sketch_rows(k), random_state=seed),
            drawn=SketchState(min(_DRAWN_ROWS, max(1, sketch_rows(k) // 4)), random_state=seed),
            costs=cost_states(losses, levels, seed),
            recalibrations=recalibration_states(losses, self.tried, levels, seed),
            swaps=swap_states(losses),
        )

    def _ranks(self) -> dict[str, int]:
        return asked_ranks(self.source.n_classes)

    def _searched(self, sketch: Sample) -> list[Found]:
        """The witnesses: of kernels from all searched rows, of everything else from the sketch."""
        kernels = {name: one for name, one in self.plan.auditors.items() if isinstance(one, KernelAuditor)}
        others = {name: one for name, one in self.plan.auditors.items() if name not in kernels}
        found = search_all(others, sketch, self._sketch_jobs)
        if kernels:
            landmarks = choose_landmarks(sketch)
            states = {
                name: KernelState(landmarks, one.kernel, random_state=self.plan.seed)
                for name, one in kernels.items()
            }
            passed = self._run(SearchingPass(seed=self.plan.seed, calibrator=self.calibrator, kernels=states))
            found += [Found(name, state.finish()) for name, state in passed.kernels.items()]
        order = list(self.plan.auditors)
        return sorted(found, key=lambda one: order.index(one.source))

    def _judging(self, found: Sequence[Found], sketch: Sample) -> JudgingPass:
        shown = {n: e.witness for n, e in self._notions.items() if is_largest(e)}
        self._found, slices, parts = make_states(self.plan, sketch)
        return JudgingPass(
            seed=self.plan.seed,
            calibrator=self.calibrator,
            certificates={
                number: self._certificate(one.witness, one.share) for number, one in enumerate(found)
            },
            readings={number: reading_state(one.witness, sketch) for number, one in enumerate(found)},
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
            savings=saving_states(self._first().swaps, self._cost_levels, self.plan.seed),
            slices=slices,
            parts=parts,
        )

    def _certificate(self, witness: Witness, share: float = 1.0) -> CertificateState:
        level = share * found_level(self.plan.core_alpha, len(self.plan.auditors))
        return CertificateState(witness, alpha=level, random_state=self.plan.seed)

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
        return ranked_classes(measures, self.plan.core_alpha)

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
        return named_of(measures, len(passed.ranks), self.plan.core_alpha)

    def _nodes(self, passed: MeasuringPass) -> tuple[NodeError, ...]:
        nodes = self.plan.nodes
        measures = [
            self._measure(passed, self._question(path, nodes.members[path], state.finish()), state.residuals)
            for path, state in passed.nodes.items()
            if nodes
        ]
        return judged_nodes(nodes, measures, self.plan.extra_alpha) if nodes else ()

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
        return judged_groups(
            errors, noises, plan.whole_weight, plan.core_alpha, plan.seed, plan.n_jobs, n_rows=1
        )

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
