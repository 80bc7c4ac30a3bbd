"""One round of auditing: find a witness, choose a step, judge both on rows kept aside."""

from dataclasses import astuple, dataclass, replace

import numpy as np

from polycal._typing import Float64s
from polycal.calibrators._audited_update import Update, best_step
from polycal.calibrators._scoring import proba_scores
from polycal.families.auditor import Auditor
from polycal.inference.certificate import certify_sample
from polycal.sample import Sample, row_blocks, split_rows
from polycal.steps import Program, run

# Of the rows to learn from: those to find a witness on, and those to choose the step on.
_SHARES = (3, 1)


@dataclass(frozen=True)
class AuditRound:
    """What one round of an `AuditedCalibrator` found, and what came of it.

    Attributes
    ----------
    loss_before, loss_after : float
        Squared loss on the rows kept aside, without and with the step.
    estimate, lower_bound, p_value : float
        The certificate of the witness on these rows, with predictions as they were before the step.
    step : float
        How far the predictions were moved along the witness; 0 if no step lowered the loss.
    accepted : bool
        Whether the round counts. One that does not is the last, and changes nothing.
    question : str
        What the witness looks at.
    """

    loss_before: float
    loss_after: float
    estimate: float
    lower_bound: float
    p_value: float
    step: float
    accepted: bool
    question: str

    def numbers(self) -> list[float]:
        """All but the question, as numbers."""
        return [float(value) for value in astuple(self)[:-1]]

    @classmethod
    def from_numbers(cls, numbers: list[float], question: str) -> "AuditRound":
        """The inverse of `numbers`."""
        before, after, estimate, lower_bound, p_value, step, accepted = numbers
        return cls(before, after, estimate, lower_bound, p_value, step, bool(accepted), question)


@dataclass(frozen=True)
class Judge:
    """What a round has to show.

    Attributes
    ----------
    alpha : float
        Level of the certificate.
    tolerance : float
        What its lower bound has to exceed.
    """

    alpha: float
    tolerance: float


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows to learn from and rows kept aside, with float64 predictions as they are by now."""

    learn: Sample
    aside: Sample

    def moved(self, program: Program) -> "Parts":
        """The same rows after a program."""
        return Parts(apply_program(program, self.learn), apply_program(program, self.aside))


def audit_round(
    auditor: Auditor, update: Update, parts: Parts, judge: Judge, seed: int
) -> tuple[AuditRound, Program]:
    """Find a witness and a step on the rows to learn from, and judge both on those kept aside.

    Nothing but acceptance depends on the rows kept aside.
    """
    search, choose = (parts.learn.take(rows) for rows in split_rows(parts.learn, _SHARES, seed))
    witness = auditor.find(search)
    weights = witness.to_steps()
    step = best_step(update, choose, values(weights, choose))
    program = update.steps(weights, step) if step else ()
    certificate = certify_sample(witness, parts.aside, judge.alpha, seed)
    before, after = (proba_scores(apply_program(steps, parts.aside)) for steps in ((), program))
    is_real = certificate.lower_bound > judge.tolerance
    helps = after.brier < before.brier and update.does_no_harm(after, before)
    found = AuditRound(
        before.brier,
        after.brier,
        certificate.estimate,
        certificate.lower_bound,
        certificate.p_value,
        step,
        is_real and helps,
        witness.describe(),
    )
    return found, program


def apply_program(program: Program, sample: Sample) -> Sample:
    """The sample with what a program makes of its predictions, in float64."""
    return replace(sample, proba=values(program, sample))


def values(program: Program, sample: Sample) -> Float64s:
    """What a program makes of a sample's predictions."""
    out = np.empty(sample.proba.shape)
    for rows in row_blocks(*sample.proba.shape):
        out[rows] = run(program, sample.proba[rows].astype(np.float64))
    return out
