"""The rounds of auditing: find a witness, prove it on held-out rows, and move along it."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace

import numpy as np
from sklearn.base import clone

from polycal._typing import Float64s, Floats, Ints
from polycal.calibrators.audited.sharpness import SharpnessWitness
from polycal.calibrators.base import Calibrator
from polycal.calibrators.loss import Scores, proba_scores
from polycal.families.auditor import Auditor
from polycal.families.swap import SwapWitness
from polycal.families.witness import Witness
from polycal.inference.certificate import certify_sample
from polycal.sample import Sample, row_blocks, split_rows
from polycal.steps import Affine, Log, Program, Project, Softmax, Sum, run

# Of the rows to learn from: those that every search uses, and those that only measure its witnesses.
_SHARES = (4, 1)
# Of the gain that the lemma promises for the tolerance: what a round has to reach.
_SHARE = 0.75
# A smaller step changes nothing that could be seen.
_SMALLEST_STEP = 2.0**-40
# The lemma's step may be longer, a better one may not: long steps merge predictions that were different.
_LONG_STEP = 0.25
# Folds of the rows to learn from, each predicted by a start fitted on the others.
_FOLDS = 4

NOTHING_PROVED = "no error above the tolerance was proved"
NO_STEP = "no step lowered the loss"
ALL_ROUNDS = "max_rounds was reached"


@dataclass(frozen=True)
class AuditRound:
    """What one round of an `AuditedCalibrator` found, and what came of it.

    Attributes
    ----------
    loss_before, loss_after : float
        Loss on the held-out rows, without and with the step: the log loss for multiplicative updates, the squared loss
        for additive ones (and in files of earlier versions).
    estimate, lower_bound, p_value : float
        The certificate of the witness on these rows, with predictions as they were before the step.
    step : float
        How far the predictions were moved along the witness; 0 if they were not.
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
    level : float
        Level of the certificate.
    tolerance : float
        What its lower bound has to exceed.
    """

    level: float
    tolerance: float

    def after(self, n_rounds: int, halvings: int) -> "Judge":
        """The judge of the next round: its level is the share that the step taken has of the present one.

        The shares of all numbers of halvings add up to 1, so that the levels of all sequences of rounds that the
        held-out rows could choose add up to alpha, at most. Without halvings nine tenths of alpha are left for ever:
        the product of ``1 - 1/t^2`` over t = 10, 11, ... is 9/10.
        """
        rare = 1.0 / (n_rounds + 9) ** 2
        return replace(self, level=self.level * (rare * 2.0**-halvings if halvings else 1.0 - rare))


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows to search, rows to measure what was found, and held-out rows, with float64 predictions as they are by now.

    No row ever changes its part: those that measure have never been searched.
    """

    search: Sample
    measure: Sample
    held_out: Sample

    def moved(self, program: Program) -> "Parts":
        """The same rows after a program."""
        return Parts(*(apply_program(program, part) for part in (self.search, self.measure, self.held_out)))


@dataclass(frozen=True)
class Update:
    """``p -> (1 - keep) * after(before(p) + step * w(p)) + keep * p``.

    Attributes
    ----------
    before, after : Program
        Into the geometry in which predictions are moved, and out of it.
    loss : callable
        The loss that the lemma speaks of: its slope in the step is minus the witness's correlation, up to a factor.
    gain : float
        By the lemma, its step lowers the loss by this times the square of the correlation, at least.
    size : float
        The lemma's step is the correlation divided by this.
    keep : float
        The part of each prediction that stays as it is.
    """

    before: Program
    after: Program
    loss: Callable[[Scores], float]
    gain: float
    size: float = 1.0
    keep: float = 0.0

    def steps(self, witness: Program, step: float) -> Program:
        """The update as steps."""
        moved = Sum((self.before, (*witness, _times(step)))), *self.after
        if self.keep == 0.0:
            return moved
        return (Sum(((*moved, _times(1.0 - self.keep)), (_times(self.keep),))),)

    def longest_step(self, witness: Witness) -> float:
        """How far a step may go beyond the lemma's."""
        in_logits = bool(self.before)
        return witness.longest_step if in_logits and isinstance(witness, SharpnessWitness) else _LONG_STEP

    def moved(self, proba: Floats, weights: Float64s, step: float) -> Float64s:
        """The predictions after the step, from the values of the witness at them."""
        out = np.empty(proba.shape)
        for rows in row_blocks(*proba.shape):
            block = proba[rows].astype(np.float64, copy=False)
            out[rows] = run(self.after, run(self.before, block) + step * weights[rows])
            out[rows] *= 1.0 - self.keep
            out[rows] += self.keep * block
        return out


def additive(keep: float, n_classes: int) -> Update:
    """Straight along the witness, and back to the simplex.

    The squared loss falls by ``2 <y - p, w>`` per unit of the step, at first. Zeros come out where nothing is kept.
    """
    gain = (1.0 - keep) / n_classes
    return Update((), (Project(),), lambda scores: scores.brier, gain, float(n_classes), keep)


def multiplicative() -> Update:
    """Along the witness in logits: the log loss falls by ``<y - p, w>`` per unit of the step, at first."""
    return Update((Log(),), (Softmax(),), lambda scores: scores.log_loss, 0.5)


@dataclass(frozen=True, eq=False)
class Line:
    """Predictions of a sample, to be moved along a witness: ``weights`` are its values at them."""

    update: Update
    sample: Sample
    weights: Float64s

    def loss(self, step: float) -> float:
        """The lemma's loss after a step."""
        moved = self.update.moved(self.sample.proba, self.weights, step)
        return self.update.loss(proba_scores(replace(self.sample, proba=moved)))

    def paid(self, step: float, costs: Float64s) -> float:
        """What acting by least expected cost costs after a step."""
        moved = self.update.moved(self.sample.proba, self.weights, step)
        chosen = np.argmin(moved @ costs.T, axis=1)
        return float(self.sample.mass @ costs[chosen, self.sample.labels])

    def doubled(self, step: float, longest: float, costs: Float64s | None = None) -> float:
        """The step, doubled while the loss falls, up to the longest; and while acting on it gets no dearer."""
        best = self.loss(step)
        while 2.0 * step <= longest and (loss := self.loss(2.0 * step)) < best:
            if costs is not None and self.paid(2.0 * step, costs) > self.paid(step, costs):
                break
            step, best = 2.0 * step, loss
        return step

    def halvings(self, step: float, tolerance: float) -> int | None:
        """How often to halve the step until the loss falls by three quarters of what the tolerance promises, if ever.

        The lemma holds for the distribution that the sample itself is. If the correlation on it is above the tolerance,
        steps from half of the lemma's to the lemma's have three quarters of its gain, and those from the tolerance's to
        the lemma's have the gain of the tolerance.
        """
        before, count = self.loss(0.0), 0
        least = _SHARE * self.update.gain * tolerance**2
        while step >= _SMALLEST_STEP:
            if before - self.loss(step) > least:
                return count
            step, count = step / 2.0, count + 1
        return None


def first_step(update: Update, witness: Witness, parts: Parts, tolerance: float) -> float:
    """The lemma's step, or a better one, by rows that were never searched; by the others if those show no gain.

    It is no shorter than the lemma's for the tolerance.
    """
    correlation = witness.correlation(parts.measure) if parts.measure.n_samples else 0.0
    if correlation <= 0.0:
        return max(abs(witness.correlation(parts.search)), tolerance) / update.size
    line = Line(update, parts.measure, values(witness.to_steps(), parts.measure))
    costs = witness.losses if isinstance(witness, SwapWitness) else None
    return line.doubled(max(correlation, tolerance) / update.size, update.longest_step(witness), costs)


def audit_rounds(
    auditor: Auditor, update: Update, parts: Parts, judge: Judge, seeds: range
) -> tuple[list[AuditRound], Program, str]:
    """Rounds up to the first that does not pass, the steps of those that did, and why there are no more."""
    rounds: list[AuditRound] = []
    program: Program = ()
    for seed in seeds:
        found, steps, halvings = audit_round(auditor, update, parts, judge, seed)
        rounds.append(found)
        if not found.accepted:
            proved = found.lower_bound > judge.tolerance
            return rounds, program, NO_STEP if proved else NOTHING_PROVED
        program += steps
        parts = parts.moved(steps)
        judge = judge.after(len(rounds), halvings)
    return rounds, program, ALL_ROUNDS


def audit_round(
    auditor: Auditor, update: Update, parts: Parts, judge: Judge, seed: int
) -> tuple[AuditRound, Program, int]:
    """Find a witness, prove it on the held-out rows, and move by a step that lowers the loss on them.

    Only whether to move, and how often the step is halved, depend on the held-out rows.
    """
    witness = auditor.find(parts.search)
    weights = witness.to_steps()
    certificate = certify_sample(witness, parts.held_out, judge.level, seed)
    line = Line(update, parts.held_out, values(weights, parts.held_out))
    proved = certificate.lower_bound > judge.tolerance
    step = first_step(update, witness, parts, judge.tolerance) if proved else 0.0
    halvings = line.halvings(step, judge.tolerance)
    step = 0.0 if halvings is None else step * 2.0**-halvings
    found = AuditRound(
        line.loss(0.0),
        line.loss(step),
        certificate.estimate,
        certificate.lower_bound,
        certificate.p_value,
        step,
        step > 0.0,
        witness.describe(),
    )
    return found, update.steps(weights, step), halvings or 0


def fit_start(start: Calibrator | None, sample: Sample) -> Program:
    """The map that comes first, fitted on a sample."""
    return () if start is None else clone(start)._fit_sample(sample).steps_


def started_parts(start: Calibrator | None, learn: Sample, held_out: Sample, seed: int) -> Parts:
    """All parts, after a `start` fitted without their labels.

    Held-out rows get the predictions of one fitted on the rows to learn from; each fold of the latter, those of one
    fitted on the other folds.
    """
    started = np.empty(learn.proba.shape)
    for fold in split_rows(learn, (1,) * _FOLDS, seed):
        started[fold] = _out_of_fold(start, learn, fold)
    held_out = apply_program(fit_start(start, learn), held_out)
    learn = replace(learn, proba=started)
    search, measure = (learn.take(rows) for rows in split_rows(learn, _SHARES, seed))
    return Parts(search, measure, held_out)


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
