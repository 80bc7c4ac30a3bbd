"""The slices of rows that go by: cut and searched for on the sketch, then states of the last pass."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from polycal.auditing.findings import reading_state
from polycal.auditing.named_slices import MakeError, finished_slices, slice_states
from polycal.auditing.passes import JudgingPass, MeasuringPass, Part
from polycal.auditing.questions import asked_ranks
from polycal.auditing.rows import Plan
from polycal.auditing.slicing import (
    NO_FOUND,
    FoundSlices,
    JudgedSlice,
    Slices,
    find_slices,
    judge_witness,
    prior_of,
    slice_findings,
    slice_levels,
)
from polycal.families.slices import SliceWitness, column_importance
from polycal.families.witness import Witness
from polycal.sample import Sample
from polycal.states.certificate import CertificateState
from polycal.states.slices import SliceState

# Cells of each question in each slice; of all classes in all slices together; and the least
# power of two for each class.
_CELLS, _CLASS_CELLS, _FEWEST_CELLS = 1 << 12, 1 << 20, 8


def make_states(
    plan: Plan, sketch: Sample
) -> tuple[FoundSlices, dict[str, SliceState], dict[Part, SliceState]]:
    """What the sketch shows; states for slices that have names, and for those found."""
    asked, seed = plan.slices, plan.seed
    slices = asked.named_in(sketch)
    ranks = asked_ranks(sketch.n_classes)
    each = _CLASS_CELLS // max(len(slices) * sketch.n_classes, 1)
    cells = _CELLS, 1 << max(min(each, _CELLS).bit_length() - 1, _FEWEST_CELLS)
    alpha = asked.named_alpha(plan.extra_alpha)
    named = slice_states(slices, plan.groups, ranks, plan.losses, alpha, cells, seed)
    parts: dict[Part, SliceState] = {}
    found = find_slices(sketch, seed, plan.n_jobs) if asked.search else NO_FOUND
    for number, (witness, level) in enumerate(_with_levels(plan, found)):
        if isinstance(witness, SliceWitness):
            reading = reading_state(witness.inner, witness.part(sketch))
            certificate = CertificateState(witness.inner, alpha=level, random_state=seed)
            parts["inside", number] = SliceState(witness.conditions, (certificate, reading))
            parts["outside", number] = SliceState(witness.conditions, (reading.copy(),), outside=1)
    return found, named, parts


def finish_states(
    plan: Plan, found: FoundSlices, measured: MeasuringPass, passed: JudgingPass, make: MakeError
) -> Slices:
    """What the states of the last pass say; a learner is judged on random rows of the judging half."""
    sketch, drawn, asked = measured.sketch.finish(), measured.drawn.finish(), plan.slices
    ranks = asked_ranks(sketch.n_classes)
    names = [sketch.name(c) for c in range(sketch.n_classes)]
    alpha = asked.named_alpha(plan.extra_alpha)
    shown = finished_slices(passed.slices, plan.groups, ranks, plan.losses, alpha, make, names)
    judged = [
        _judged(witness, passed.parts["inside", number], passed.parts["outside", number])
        if isinstance(witness, SliceWitness)
        else judge_witness(witness, sketch, drawn, level, plan.seed)
        for number, (witness, level) in enumerate(_with_levels(plan, found))
    ]
    priors = [
        prior_of(witness, sketch, drawn, level, plan.seed) for witness, level in _with_levels(plan, found)
    ]
    findings = slice_findings(
        found, judged, priors, plan.slice_fdr, lambda learnt: column_importance(learnt, drawn, plan.seed)
    )
    return Slices(findings, shown)


def _with_levels(plan: Plan, found: FoundSlices) -> Iterable[tuple[Witness, float]]:
    alpha = plan.slices.found_alpha(plan.extra_alpha)
    return zip(found.witnesses, slice_levels(len(found.witnesses), alpha).tolist(), strict=True)


def _judged(witness: SliceWitness, inside: SliceState, outside: SliceState) -> JudgedSlice | None:
    """What the states say of one slice; None if it has too few rows."""
    weights, done = inside.weights, inside.finish()
    if done is None or weights.n_rows < 2:
        return None
    certificate, reading = done
    state, other = inside.states[0], outside.finish()
    if not isinstance(state, CertificateState):
        raise TypeError("a certificate was expected.")
    u = weights.largest
    return JudgedSlice(
        replace(certificate, witness=witness),
        reading,
        None if other is None else other[0],
        weights.total / inside.total_weight,
        state.moments / np.array([u, u, u * u, u * u, u * u]),
    )
