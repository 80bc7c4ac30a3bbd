"""What the models of the kernel calibrator are tried on, and the best of them so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.baseline import Seen
from polycal.calibrators.kernel.features import Features
from polycal.calibrators.loss import Scores, logit_scores, proba_scores
from polycal.calibrators.regression import ClassBlocks, fit_tilt, rows_without
from polycal.sample import Sample
from polycal.steps import Softmax, run


class Gain(NamedTuple):
    """What a kind of model saves on rows that it has not seen.

    Attributes
    ----------
    log_loss, error : float
        What it saves of the log loss of the best before, and the standard error of that.
    needed : float
        Rows from which on such a gain would be enough; infinite where there is none.
    """

    log_loss: float
    error: float
    needed: float


def is_much_work(sample: Sample) -> bool:
    """Whether models are chosen with less than all folds and penalties."""
    n, k = sample.proba.shape
    return bool(n * k * k > (tuning.MUCH_WORK if n > tuning.FEW_ROWS else tuning.MUCH_WORK_OF_FEW))


@dataclass(frozen=True, eq=False)
class Trial:
    """What every model is tried on.

    Attributes
    ----------
    sample : Sample
        All rows, sorted by fold.
    folds : sequence of slice
        All that models are fitted without.
    tried : int
        The number of folds, the first ones, that are held out: one where rows are many, until the model is chosen.
    seen : sequence of Seen
        What the baseline makes of the rows: one for all, or for each fold the one fitted without it.
    judged : Sample
        The held-out rows.
    log_proba : ndarray of float, shape (n_judged, n_classes)
        Log q of the baseline, which the models change; for each fold, that of its own.
    input, baseline : Scores
        What models are compared with on the held-out rows.
    kept : dict
        What was made of the last features, to be used again.
    """

    sample: Sample
    folds: Sequence[slice]
    tried: int
    seen: Sequence[Seen]
    judged: Sample
    log_proba: Floats
    input: Scores
    baseline: Scores
    kept: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, sample: Sample, folds: Sequence[slice], seen: Sequence[Seen], tried: int | None = None
    ) -> "Trial":
        """The trial of a sorted sample, given what baselines make of it; by default all folds are held out."""
        tried = len(folds) if tried is None else tried
        own = seen if len(seen) == len(folds) else list(seen) * len(folds)
        log_proba = np.concatenate(
            [one.log_proba[fold] for one, fold in zip(own[:tried], folds[:tried], strict=True)]
        )
        judged = sample.take(slice(0, folds[tried - 1].stop))
        baseline = logit_scores(judged, log_proba, log_proba, 1.0, 0.0)
        return cls(sample, folds, tried, seen, judged, log_proba, proba_scores(judged), baseline)

    def with_folds(self, tried: int) -> "Trial":
        """The same with so many folds held out."""
        if tried == self.tried:
            return self
        return replace(Trial.of(self.sample, self.folds, self.seen, tried), kept=self.kept)

    @property
    def stride(self) -> int:
        """Every so manieth penalty is tried."""
        return tuning.STRIDE if is_much_work(self.sample) else 1

    def mix(self, changes: Sequence[Floats]) -> list[float]:
        """Multipliers of the baseline's logits and of changes, by the log loss of held-out rows."""
        return _mix(self.judged, self.log_proba, changes)

    def held_out(self, choice: "Choice", change: Floats) -> Float64s:
        """What the model chosen predicts for each fold, with nothing that was fitted to it but the choice itself.

        ``change`` are the changes of its rows, by models of this trial.
        """
        logits = self.log_proba.astype(np.float64)
        changes: list[Floats] = []
        if choice.features is not None:
            changes = [change]
        if choice.matrix is not None:
            changes.append(choice.matrix.logits)
        for fold in self.folds if changes else ():
            rest = rows_without(self.sample.n_samples, fold)
            scale, *amounts = _mix(
                self.sample.take(rest), self.log_proba[rest], [one[rest] for one in changes]
            )
            logits[fold] *= 1.0 + choice.part * (scale - 1.0)
            for along, amount in zip(changes, amounts, strict=True):
                logits[fold] += choice.part * min(max(amount, 0.0), 1.0) * along[fold]
        return run((Softmax(),), logits)

    def scores(self, change: Floats, scale: float, amount: float) -> Scores:
        """Scores of the baseline's logits and their change, multiplied."""
        return logit_scores(self.judged, self.log_proba, change, scale, amount)

    @property
    def caution(self) -> float:
        """What standard errors count for: the same gain is asked for whatever part of the rows is held out."""
        return float(np.sqrt(self.judged.n_samples / self.sample.n_samples))

    def is_safe(self, scores: Scores) -> bool:
        """Whether a model is better than the baseline beyond the noise, and as accurate as the input up to noise."""
        gain, error = scores.relative_gain(self.baseline)
        more_right, doubt = scores.accuracy_gain(self.input)
        margin = more_right - 0.5 * self.caution * doubt
        return gain > self.caution * error and margin > -tuning.ACCURACY_LOSS


@dataclass(frozen=True, eq=False)
class FoldMatrices:
    """Matrix scaling fitted without each fold.

    Attributes
    ----------
    penalty : float
        Off the diagonal, for the sum of losses.
    maps : sequence of ndarray of shape (n_classes + 1, n_classes)
        The bias below the matrix.
    logits : ndarray of float32, shape (n_judged, n_classes)
        Those of the rows of each fold.
    """

    penalty: float
    maps: Sequence[Floats]
    logits: Floats


@dataclass(frozen=True, eq=False)
class Choice:
    """The best model so far.

    Attributes
    ----------
    gain : float
        What it gains on the baseline on held-out rows, in log loss and Brier score, each as a part of the baseline's;
        0 while nothing beats the baseline.
    penalty : float
    path : sequence of float
        The penalties that lead to it, itself last.
    scale, mixing : float
        What the baseline's logits, and the model's change of them, are multiplied by.
    features : Features, or None
        None while nothing beats the baseline.
    scores : Scores, or None
        Those of the rows, held out, fold by fold; None while nothing beats the baseline.
    weights : sequence of ndarray of shape (n_features, n_classes)
        Those of the folds' models; none while nothing beats the baseline.
    trail : sequence of sequence of ndarray
        The weights at the penalties of the path just before it.
    change : ndarray of float, shape (n_samples, n_classes)
        What each fold's model adds to the logits of its held-out rows, fold by fold; empty while there is none.
    matrix : FoldMatrices, or None
        Where matrix scaling is mixed in.
    added : float
        What its logits are multiplied by.
    part : float
        The part that is taken of the multipliers that are best for held-out rows.
    table : list
        Penalty, mixing, log loss, Brier score and accuracy of every model tried, cross-validated.
    nearest : (float, Scores), or None
        Gain and scores of the best model tried, safe or not.
    blocks : ClassBlocks, or None
        What preconditions the search of its weights.
    gains : dict
        For each kind of model that was tried, what it gained on the best before.
    """

    gain: float = 0.0
    penalty: float = np.inf
    path: Sequence[float] = ()
    scale: float = 1.0
    mixing: float = 0.0
    features: Features | None = None
    scores: Scores | None = None
    weights: Sequence[Floats] = ()
    trail: Sequence[Sequence[Floats]] = ()
    change: Floats = field(default_factory=lambda: np.empty((0, 0)))
    matrix: FoldMatrices | None = None
    added: float = 0.0
    part: float = 1.0
    table: list[tuple[float, ...]] = field(default_factory=list)
    nearest: tuple[float, Scores] | None = None
    blocks: ClassBlocks | None = None
    gains: dict[str, Gain] = field(default_factory=dict)

    def or_better(self, other: "Choice", kind: str, trial: Trial) -> "Choice":
        """The other, of a richer kind, where it gains more than noise; with the tables of both, and its gain noted."""
        better = other if other.beats(self, tuning.ERRORS * trial.caution) else self
        nearest = None if other.nearest is None else other.nearest[1]
        tried, gains = nearest if other.scores is None else other.scores, self.gains
        if tried is not None:
            gains = {**gains, kind: _gain(trial, tried, self.scores)}
        return replace(better, table=self.table + other.table, gains=gains)

    def beats(self, other: "Choice", errors: float) -> bool:
        """Whether it is better by the least gain, and by so many standard errors of the paired difference."""
        if self.scores is None or other.scores is None:
            return self.gain > other.gain
        gain, error = self.scores.relative_gain(other.scores)
        return gain > max(errors * error, tuning.LEAST_GAIN)

    def on(self, few: Trial) -> "Choice":
        """The choice as the first folds see it."""
        if self.scores is None:
            return self
        change, weights = self.change[: few.judged.n_samples], self.weights[: few.tried]
        scores = few.scores(change, self.scale, self.mixing)
        gain, _ = scores.relative_gain(few.baseline)
        return replace(self, gain=gain, scores=scores, change=change, weights=weights)

    def without_rows(self) -> "Choice":
        """The choice without what is known of each row."""
        matrix = None if self.matrix is None else replace(self.matrix, logits=np.empty((0, 0)))
        return replace(self, scores=None, change=np.empty((0, 0)), matrix=matrix, nearest=None, trail=())

    @property
    def has_small_penalty(self) -> bool:
        """Whether the data ask for a model that is little penalised."""
        return self.penalty <= tuning.SMALL_PENALTY

    def final_matrix(self) -> Float64s | None:
        """What multiplies the logarithms of the input, and a bias below it, where matrix scaling is mixed in."""
        if self.matrix is None:
            return None
        return np.asarray(self.added * np.mean(self.matrix.maps, axis=0, dtype=np.float64))

    def final_weight(self) -> Float64s:
        """The mean weights, mixed, and centred: a softmax does not see what all classes share."""
        weight = np.asarray(np.mean(self.weights, axis=0, dtype=np.float64))
        centred: Float64s = self.mixing * (weight - weight.mean(axis=1, keepdims=True))
        return centred


def _gain(trial: Trial, tried: Scores, best: Scores | None) -> Gain:
    """What a model gains on the best before, or on the baseline, and how many rows would show it to the guards."""
    before = trial.baseline if best is None else best
    more, error = tried.excess(before, np.arange(before.mass.size))
    gain = tried.relative_gain(before)
    errors, least = (1.0, 0.0) if best is None else (tuning.ERRORS, tuning.LEAST_GAIN)
    times = _times(gain, errors * trial.caution) if gain[0] > least else np.inf
    right, doubt = tried.accuracy_gain(trial.input)
    times = max(times, _times((right + tuning.ACCURACY_LOSS, doubt), 0.5 * trial.caution))
    return Gain(-more, error, times * trial.sample.n_samples)


def _times(gain: tuple[float, float], errors: float) -> float:
    """How many times the rows would show the same gain to be so many standard errors above 0."""
    value, error = gain
    return (errors * error / value) ** 2 if value > 0.0 else np.inf


def _mix(sample: Sample, log_proba: Floats, changes: Sequence[Floats]) -> list[float]:
    def directions(rows: slice) -> Floats:
        return np.stack([log_proba[rows], *(change[rows] for change in changes)])

    more, *rest = fit_tilt(sample, log_proba, directions, 1 + len(changes)).tolist()
    return [1.0 + more, *rest]
