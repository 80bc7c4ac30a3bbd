"""How a witness moves predictions, and how far."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._scoring import Scores, proba_scores
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Log, Program, Project, Softmax, Sum, run

# A smaller step changes nothing that could be seen.
_SMALLEST_STEP = 2.0**-20


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


def _times(factor: float) -> Affine:
    return Affine(np.array([factor]), np.zeros(1))
