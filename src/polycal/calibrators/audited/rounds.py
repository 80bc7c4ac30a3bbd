"""The rounds of auditing: find a witness, choose a step, judge both on held-out rows."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace

import numpy as np
from sklearn.base import clone

from polycal._typing import Float64s, Floats, Ints
from polycal.calibrators.base import Calibrator
from polycal.calibrators.loss import Scores, proba_scores
from polycal.families.auditor import Auditor
from polycal.inference.certificate import certify_sample
from polycal.sample import Sample, row_blocks, split_rows
from polycal.steps import Affine, Log, Program, Project, Softmax, Sum, run

# Of the rows to learn from: those to find a witness on, and those to choose the step on.
_SHARES = (3, 1)
# A smaller step changes nothing that could be seen.
_SMALLEST_STEP = 2.0**-20
# Folds of the rows to learn from, each predicted by a start fitted on the others.
_FOLDS = 4


@dataclass(frozen=True)
class AuditRound:
    """What one round of an `AuditedCalibrator` found, and what came of it.

    Attributes
    ----------
    loss_before, loss_after : float
        Squared loss on the held-out rows, without and with the step.
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
    """Rows to learn from and held-out rows, with float64 predictions as they are by now."""

    learn: Sample
    held_out: Sample

    def moved(self, program: Program) -> "Parts":
        """The same rows after a program."""
        return Parts(apply_program(program, self.learn), apply_program(program, self.held_out))


@dataclass(frozen=True)
class Update:
    """``p -> (1 - keep) * after(before(p) + step * w(p)) + keep * p``.

    Attributes
    ----------
    before, after : Program
        Into the geometry in which predictions are moved, and out of it.
    loss : callable
        What a step is chosen by: the loss whose slope in the step is minus the witness's correlation, up to a factor.
    minds_log_loss : bool
        Whether the log loss must not rise, either.
    keep : float
        The part of each prediction that stays as it is.
    """

    before: Program
    after: Program
    loss: Callable[[Scores], float]
    minds_log_loss: bool
    keep: float = 0.0

    def steps(self, witness: Program, step: float) -> Program:
        """The update as steps."""
        moved = Sum((self.before, (*witness, _times(step)))), *self.after
        if self.keep == 0.0:
            return moved
        return (Sum(((*moved, _times(1.0 - self.keep)), (_times(self.keep),))),)

    def moved(self, proba: Floats, weights: Float64s, step: float) -> Float64s:
        """The predictions after the step, from the values of the witness at them."""
        out = np.empty(proba.shape)
        for rows in row_blocks(*proba.shape):
            block = proba[rows].astype(np.float64, copy=False)
            out[rows] = run(self.after, run(self.before, block) + step * weights[rows])
            out[rows] *= 1.0 - self.keep
            out[rows] += self.keep * block
        return out

    def does_no_harm(self, after: Scores, before: Scores) -> bool:
        """Whether no loss that counts has risen."""
        log_loss_is_fine = not self.minds_log_loss or after.log_loss <= before.log_loss
        return after.brier <= before.brier and log_loss_is_fine


def additive(keep: float) -> Update:
    """Straight along the witness, and back to the simplex.

    The squared loss falls by ``2 <y - p, w>`` per unit of the step, at first. Zeros come out where nothing is kept.
    """
    return Update((), (Project(),), lambda scores: scores.brier, keep > 0.0, keep)


def multiplicative() -> Update:
    """Along the witness in logits: the log loss falls by ``<y - p, w>`` per unit of the step, at first."""
    return Update((Log(),), (Softmax(),), lambda scores: scores.log_loss, minds_log_loss=True)


def best_step(update: Update, sample: Sample, weights: Float64s) -> float:
    """The step of least loss on a sample among those that do no harm there; 0 if none lowers the loss.

    Parameters
    ----------
    update : Update
    sample : Sample
        With predictions as they are before the step.
    weights : ndarray of shape (n_samples, n_classes)
        The witness at these predictions.
    """
    start = proba_scores(sample)
    # In logits, odds then change by a factor of about the number of rows: more than these could never show.
    largest = float(np.log1p(start.total))

    def loss(step: float) -> float:
        scores = proba_scores(replace(sample, proba=update.moved(sample.proba, weights, step)))
        return update.loss(scores) if update.does_no_harm(scores, start) else np.inf

    step, best = 1.0, loss(1.0)
    while step > _SMALLEST_STEP and not best < update.loss(start):
        step /= 2.0
        best = loss(step)
    if not best < update.loss(start):
        return 0.0
    for factor in (2.0, 0.5, 2.0**0.5, 0.5**0.5):
        while step * factor <= largest and (trial := loss(step * factor)) < best:
            step, best = step * factor, trial
    return step


def audit_rounds(
    auditor: Auditor, update: Update, parts: Parts, judge: Judge, seeds: range
) -> tuple[list[AuditRound], Program]:
    """Rounds up to the first that does not pass, and the steps of those that did."""
    rounds: list[AuditRound] = []
    program: Program = ()
    for seed in seeds:
        found, steps = audit_round(auditor, update, parts, judge, seed)
        rounds.append(found)
        if not found.accepted:
            break
        program += steps
        parts = parts.moved(steps)
    return rounds, program


def audit_round(
    auditor: Auditor, update: Update, parts: Parts, judge: Judge, seed: int
) -> tuple[AuditRound, Program]:
    """Find a witness and a step on the rows to learn from, and judge both on the held-out rows.

    Nothing but acceptance depends on the held-out rows.
    """
    search, choose = (parts.learn.take(rows) for rows in split_rows(parts.learn, _SHARES, seed))
    witness = auditor.find(search)
    weights = witness.to_steps()
    step = best_step(update, choose, values(weights, choose))
    program = update.steps(weights, step) if step else ()
    certificate = certify_sample(witness, parts.held_out, judge.alpha, seed)
    before, after = (proba_scores(apply_program(steps, parts.held_out)) for steps in ((), program))
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


def fit_start(start: Calibrator | None, sample: Sample) -> Program:
    """The map that comes first, fitted on a sample."""
    return () if start is None else clone(start)._fit_sample(sample).steps_


def started_parts(start: Calibrator | None, learn: Sample, held_out: Sample, seed: int) -> Parts:
    """Both parts, after a `start` fitted without their labels.

    Held-out rows get the predictions of one fitted on the rows to learn from; each fold of the latter, those of one
    fitted on the other folds.
    """
    started = np.empty(learn.proba.shape)
    for fold in split_rows(learn, (1,) * _FOLDS, seed):
        started[fold] = _out_of_fold(start, learn, fold)
    return Parts(replace(learn, proba=started), apply_program(fit_start(start, learn), held_out))


def _out_of_fold(start: Calibrator | None, learn: Sample, fold: Ints) -> Float64s:
    """Predictions for a fold by a fit on the other folds."""
    others = np.setdiff1d(np.arange(learn.n_samples), fold)
    return values(fit_start(start, learn.take(others)), learn.take(fold))


def apply_program(program: Program, sample: Sample) -> Sample:
    """The sample with what a program makes of its predictions, in float64."""
    return replace(sample, proba=values(program, sample))


def values(program: Program, sample: Sample) -> Float64s:
    """What a program makes of a sample's predictions."""
    out = np.empty(sample.proba.shape)
    for rows in row_blocks(*sample.proba.shape):
        out[rows] = run(program, sample.proba[rows].astype(np.float64))
    return out


def _times(factor: float) -> Affine:
    return Affine(np.array([factor]), np.zeros(1))
