"""From finished states to the parts of an audit."""

from collections.abc import Mapping

import numpy as np

from polycal._audit.bundle import Bundle
from polycal._audit.findings import detectable
from polycal._audit.plan import StreamPlan
from polycal._audit.questions import draws_wanted, noise_test
from polycal._audit.result import Finding, MeasuredError, QuestionError
from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.questions import Classwise, Confidence, SubsetWitness, TopWitness
from polycal.families.subset import SubsetSmooth
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, class_contributions, holm, worst_range
from polycal.sample import Sample, ask_confidence, ask_subset
from polycal.states.certificate import ReadingState
from polycal.states.questions import ClassesState, QuestionState, QuestionSummary

# Draws behind a noise floor.
_FLOOR_DRAWS = 20
# Cells in which groups are tested: with thousands of draws, fewer than those that their errors are computed in.
_TEST_CELLS = 1 << 10

Names = tuple[str, ...] | None


def findings_of(plan: StreamPlan, judged: Bundle, found: Mapping[str, Witness]) -> tuple[Finding, ...]:
    """One finding per witness, the largest proven error first."""
    states = [judged.states[f"certificate {source}"] for source in found]
    certificates: list[Certificate] = map_threads(
        lambda state: state.finish(), states, plan.proof_threads(judged.n_judge)
    )
    adjusted = holm([c.p_value for c in certificates])
    findings = [
        Finding(
            source=source,
            witness=certificate.witness,
            certificate=certificate,
            adjusted_p_value=p_value,
            significant=p_value <= plan.alpha,
            reading=judged.finish(f"reading {source}"),
            detectable=detectable(certificate, len(certificates)),
        )
        for source, certificate, p_value in zip(found, certificates, adjusted, strict=True)
    ]
    return tuple(sorted(findings, key=lambda f: (-f.certificate.lower_bound, f.adjusted_p_value)))


def reading_state(witness: Witness, sketch: Sample) -> ReadingState:
    """What to read off of a witness: the range of its main question that is worst on the sketch."""
    if isinstance(witness, TopWitness):
        return ReadingState(None, *worst_range(ask_confidence(sketch)))
    if isinstance(witness, SubsetWitness):
        members = witness.members
    else:
        members = np.array([int(np.argmax(class_contributions(witness, sketch)))])
    return ReadingState(members.tolist(), *worst_range(ask_subset(sketch, members)))


def measured_errors(
    measured: Bundle, judged: Bundle, found: Mapping[str, Witness], names: Names, seed: int
) -> tuple[MeasuredError, ...]:
    """The errors of the default notions over all rows."""
    confidence, classes = measured.states["confidence"], measured.states["classes"]
    if not isinstance(confidence, QuestionState) or not isinstance(classes, ClassesState):
        raise TypeError("the bundle is not one that measures.")
    summaries, n, k = classes.finish(), classes.n_samples, classes.n_classes or 0
    worst = int(np.argmax([_lower(summary) for summary in summaries]))
    phi = summaries[worst].curve.phi.simplified()
    errors = [
        MeasuredError(
            _estimate(
                confidence.finish(),
                Confidence(smooth=True),
                n,
                TopWitness((confidence.finish().curve.phi.simplified(),), k, names),
            ),
            float(confidence.noise(_FLOOR_DRAWS, seed).mean()),
        ),
        MeasuredError(
            _estimate(
                summaries[worst],
                Classwise(smooth=True),
                n,
                SubsetWitness(np.array([worst]), phi, k, names),
            ),
            float(classes.noise(_FLOOR_DRAWS, seed).max(axis=0).mean()),
        ),
    ]
    subsets = [
        (source, w) for source, w in found.items() if isinstance(w, SubsetWitness) and w.members.size > 1
    ]
    if subsets:
        source, witness = max(subsets, key=lambda item: _lower(judged.finish(f"question {item[0]}")))
        summary: QuestionSummary = judged.finish(f"question {source}")
        whole = SubsetWitness(witness.members, summary.curve.phi.simplified(), k, names)
        errors.append(MeasuredError(_estimate(summary, SubsetSmooth(), n, whole), None))
    return tuple(errors)


def class_results(measured: Bundle, names: Names) -> tuple[QuestionError, ...]:
    """Every class as a question, worst first."""
    summaries: tuple[QuestionSummary, ...] = measured.finish("classes")
    results = [_question(_name(c, names), np.array([c]), s, names) for c, s in enumerate(summaries)]
    return tuple(sorted(results, key=lambda q: -q.smooth_error))


def group_results(measured: Bundle, plan: StreamPlan) -> tuple[QuestionError, ...]:
    """Every named group as a question, with noise floor and Holm-adjusted p-value."""
    n_groups = len(plan.groups)
    n_draws = draws_wanted(n_groups, plan.alpha)

    def test(task: tuple[str, np.random.SeedSequence]) -> tuple[float, float]:
        state = measured.states[f"group {task[0]}"]
        if not isinstance(state, QuestionState):
            raise TypeError("the bundle is not one that measures.")
        # The error seen and those drawn are of the same cells, so that the test is of the level it says.
        cells = state.in_cells(_TEST_CELLS)
        return noise_test(cells.draw, cells.error(), n_draws, task[1])

    seeds = np.random.SeedSequence(plan.seed).spawn(n_groups)
    tests = map_threads(test, zip(plan.groups, seeds, strict=True), plan.n_jobs)
    p_values = holm([p for _, p in tests])
    return tuple(
        _question(
            group,
            members,
            measured.finish(f"group {group}"),
            plan.class_names,
            floor,
            p,
            n_groups / (1 + n_draws),
        )
        for (group, members), (floor, _), p in zip(plan.groups.items(), tests, p_values, strict=True)
    )


def _question(
    name: str,
    members: Ints,
    summary: QuestionSummary,
    names: Names,
    floor: float | None = None,
    p_value: float | None = None,
    smallest: float | None = None,
) -> QuestionError:
    return QuestionError(
        name=name,
        classes=tuple(_name(int(c), names) for c in members),
        predicted=summary.predicted,
        frequency=summary.frequency,
        smooth_error=summary.value,
        chance=summary.chance,
        noise_floor=floor,
        p_value=p_value,
        smallest_p_value=None if smallest is None else min(smallest, 1.0),
    )


def _estimate(summary: QuestionSummary, notion: Notion, n_samples: int, witness: Witness) -> ErrorEstimate:
    method = f"cells of the predicted probability; the exact value is within {summary.bound:.1e} of {summary.value:.6f}"
    return ErrorEstimate(_lower(summary), "lower bound", notion, method, 1, n_samples, witness)


def _lower(summary: QuestionSummary) -> float:
    return max(0.0, summary.value - summary.bound)


def _name(class_index: int, names: Names) -> str:
    return str(class_index) if names is None else names[class_index]
