"""Choosing the kernel calibrator's features, penalty and mixing weight by cross-validation, with a baseline to beat."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from polycal._typing import Float64s, Floats
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.baseline import Mixture, Seen
from polycal.calibrators.kernel.features import (
    FEATURES_OF_INPUT,
    Features,
    features_of_baseline,
    fit_landmarks,
)
from polycal.calibrators.loss import Scores, logit_scores, proba_scores, total_weight
from polycal.calibrators.matrix import (
    CHOICE_EFFORT,
    choose_penalty,
    fold_inverses,
    fold_maps,
    scaled_map,
)
from polycal.calibrators.priors import PRIOR, MatrixPenalty
from polycal.calibrators.regression import ClassBlocks, FoldModels, Ridge, SoftmaxRegression, fit_tilt
from polycal.sample import Sample
from polycal.steps import Softmax, run


@dataclass(frozen=True, eq=False)
class Trial:
    """What every model is tried on.

    Attributes
    ----------
    sample : Sample
        All rows, sorted by fold.
    folds : sequence of slice
    seen : sequence of Seen
        What the baseline makes of the rows: one for all, or for each fold the one fitted without it.
    log_proba : ndarray of float, shape (n_samples, n_classes)
        Log q of the baseline, which the models change; for each fold, that of its own.
    input, baseline : Scores
        What models are compared with.
    """

    sample: Sample
    folds: Sequence[slice]
    seen: Sequence[Seen]
    log_proba: Floats
    input: Scores
    baseline: Scores

    @classmethod
    def of(cls, sample: Sample, folds: Sequence[slice], seen: Sequence[Seen]) -> "Trial":
        """The trial of a sorted sample, given what baselines make of it."""
        own = seen if len(seen) == len(folds) else list(seen) * len(folds)
        log_proba = np.concatenate([one.log_proba[fold] for one, fold in zip(own, folds, strict=True)])
        baseline = logit_scores(sample, log_proba, log_proba, 1.0, 0.0)
        return cls(sample, folds, seen, log_proba, proba_scores(sample), baseline)

    def mix(self, changes: Sequence[Floats]) -> list[float]:
        """Multipliers of the baseline's logits and of changes, by the log loss of held-out rows."""
        return _mix(self.sample, self.log_proba, changes)

    def held_out(self, choice: "Choice") -> Float64s:
        """What the model chosen predicts for each fold, with nothing that was fitted to it but the choice itself."""
        logits, rows = self.log_proba.astype(np.float64), np.arange(self.sample.n_samples)
        changes: Sequence[Floats] = ()
        if choice.features is not None:
            changes = path_to(self, choice.features, choice.penalty), *choice.matrix_logits
        for fold in self.folds if changes else ():
            rest = np.delete(rows, fold)
            scale, *amounts = _mix(
                self.sample.take(rest), self.log_proba[rest], [one[rest] for one in changes]
            )
            logits[fold] *= 1.0 + choice.part * (scale - 1.0)
            for change, amount in zip(changes, amounts, strict=True):
                logits[fold] += choice.part * min(max(amount, 0.0), 1.0) * change[fold]
        return run((Softmax(),), logits)

    def scores(self, change: Floats, scale: float, amount: float) -> Scores:
        """Scores of the baseline's logits and their change, multiplied."""
        return logit_scores(self.sample, self.log_proba, change, scale, amount)

    def is_safe(self, scores: Scores) -> bool:
        """Whether a model is better than the baseline beyond the noise, and as accurate as the input up to noise."""
        gain, error = scores.relative_gain(self.baseline)
        more_right, doubt = scores.accuracy_gain(self.input)
        return gain > error and more_right - 0.5 * doubt > -tuning.ACCURACY_LOSS


@dataclass(frozen=True, eq=False)
class Choice:
    """The best model so far.

    Attributes
    ----------
    gain : float
        What it gains on the baseline on held-out rows, in log loss and Brier score, each as a part of the baseline's;
        0 while nothing beats the baseline.
    penalty : float
    scale, mixing : float
        What the baseline's logits, and the model's change of them, are multiplied by.
    features : Features, or None
        None while nothing beats the baseline.
    scores : Scores, or None
        Those of the rows, held out, fold by fold; None while nothing beats the baseline.
    weights : sequence of ndarray of shape (n_features, n_classes)
        Those of the folds' models; none while nothing beats the baseline.
    change : ndarray of float, shape (n_samples, n_classes)
        What each fold's model adds to the logits of its held-out rows, fold by fold; empty while there is none.
    matrix : ndarray of shape (n_classes + 1, n_classes), or None
        What multiplies the logarithms of the input, and a bias below it, where matrix scaling is mixed in.
    matrix_logits : sequence of ndarray of float, shape (n_samples, n_classes)
        Its logits for the held-out rows, where it is mixed in.
    part : float
        The part that is taken of the multipliers that are best for held-out rows.
    table : list
        Penalty, mixing, log loss, Brier score and accuracy of every model tried, cross-validated.
    """

    gain: float = 0.0
    penalty: float = np.inf
    scale: float = 1.0
    mixing: float = 0.0
    features: Features | None = None
    scores: Scores | None = None
    weights: Sequence[Floats] = ()
    change: Floats = field(default_factory=lambda: np.empty((0, 0)))
    matrix: Float64s | None = None
    matrix_logits: Sequence[Floats] = ()
    part: float = 1.0
    table: list[tuple[float, ...]] = field(default_factory=list)

    def or_better(self, other: "Choice") -> "Choice":
        """The other, of a richer kind, where it gains more than noise; with the tables of both."""
        better = other if other._beats(self) else self
        return replace(better, table=self.table + other.table)

    def _beats(self, other: "Choice") -> bool:
        """Whether it is better by the least gain, and by some standard errors of the paired difference."""
        if self.scores is None or other.scores is None:
            return self.gain > other.gain
        gain, error = self.scores.relative_gain(other.scores)
        return gain > max(tuning.ERRORS * error, tuning.LEAST_GAIN)

    @property
    def has_small_penalty(self) -> bool:
        """Whether the data ask for a model that is little penalised."""
        return self.penalty <= tuning.SMALL_PENALTY

    def final_weight(self) -> Float64s:
        """The mean weights, mixed, and centred: a softmax does not see what all classes share."""
        weight = np.asarray(np.mean(self.weights, axis=0, dtype=np.float64))
        centred: Float64s = self.mixing * (weight - weight.mean(axis=1, keepdims=True))
        return centred


def _mix(sample: Sample, log_proba: Floats, changes: Sequence[Floats]) -> list[float]:
    def directions(rows: slice) -> Floats:
        return np.stack([log_proba[rows], *(change[rows] for change in changes)])

    more, *rest = fit_tilt(sample, log_proba, directions, 1 + len(changes)).tolist()
    return [1.0 + more, *rest]


def choose_first(trial: Trial) -> Choice:
    """Try features of the baseline."""
    return choose(trial, features_of_baseline(trial.sample.n_classes), Choice())


def choose_model(trial: Trial, mixture: Mixture, seed: int, choice: Choice) -> Choice:
    """After the first, where they may see more, try features of the input, and likeness to landmarks; then a matrix."""
    sample, k = trial.sample, trial.sample.n_classes
    if k > tuning.MANY_CLASSES:
        return choice
    if mixture.hidden >= tuning.HIDING:
        choice = choose(trial, FEATURES_OF_INPUT, choice)
    if choice.has_small_penalty or sample.n_samples >= tuning.MANY_ROWS * k:
        choice = choose(trial, fit_landmarks(sample, mixture.log_tempered(sample), seed), choice)
    if choice.has_small_penalty and k <= tuning.MATRIX_CLASSES:
        choice = mix_in_matrix(trial, choice)
    return choice


def choose(trial: Trial, features: Features, before: Choice) -> Choice:
    """Walk from large penalties to small ones until it stops getting better; the best, if better than before.

    Parameters
    ----------
    trial : Trial
    features : Features
    before : Choice
        The best with other features: a little above its penalty is large enough to begin with.
    """
    best, idle = Choice(), 0
    above = max(0, tuning.PENALTIES.index(before.penalty) - tuning.ABOVE) if before.weights else 0
    at_least = tuning.AT_LEAST if above == 0 else tuning.ABOVE
    relative = features.penalty(trial.sample.n_classes).astype(trial.log_proba.dtype)
    start = before.weights if features.extend(before.features) else ()
    models = _fold_models(trial, features, relative, start)
    for i, penalty in enumerate(tuning.PENALTIES[above:]):
        models.move([Ridge(relative, penalty)] * len(trial.folds), tuning.EFFORT)
        candidate = _best_part(trial, models.held_out(), penalty)
        table = best.table + candidate.table
        improved = candidate.gain > best.gain + tuning.LEAST_GAIN
        found = replace(candidate, features=features, weights=models.weights) if improved else best
        best = replace(found, table=table)
        idle = 0 if improved or i < at_least else idle + 1
        if idle == tuning.PATIENCE:
            break
    return before.or_better(best)


def path_to(trial: Trial, features: Features, last: float) -> Floats:
    """The changes of held-out rows at a penalty, at the end of the path to it."""
    relative = features.penalty(trial.sample.n_classes).astype(trial.log_proba.dtype)
    models = _fold_models(trial, features, relative, ())
    for penalty in tuning.PENALTIES[: tuning.PENALTIES.index(last) + 1]:
        models.move([Ridge(relative, penalty)] * len(trial.folds), tuning.EFFORT)
    return models.held_out()


def _fold_models(trial: Trial, features: Features, relative: Floats, start: Sequence[Floats]) -> FoldModels:
    """Models of features on top of the baseline, with 0 for the weights that ``start`` does not have."""
    n, k = trial.log_proba.shape
    mass = trial.sample.mass.astype(relative.dtype)
    problems = []
    for seen in trial.seen:
        x = features.of(seen.log_tempered() if features.source == "input" else seen.log_proba)
        whole = slice(0, n)
        problems.append(
            SoftmaxRegression(_thinned(x, k), trial.sample.labels, mass, seen.log_proba, (whole,))
        )
    weights = [np.zeros_like(relative) for _ in trial.folds]
    for weight, begin in zip(weights, start, strict=False):
        weight[: begin.shape[0]] = begin
    blocks = ClassBlocks(x, np.exp(trial.log_proba), mass, relative)
    return FoldModels(problems, trial.folds, weights, blocks)


def _thinned(x: Floats, n_classes: int) -> Any:
    """The features of the likely classes alone, where these are few: those of the others are all but 0."""
    likely = x[:, n_classes + 1 :] > 0.0
    few = likely.mean() < tuning.SPARSE and likely.shape[1] == n_classes
    if x.dtype != np.float32 or not few:
        return x
    likely = np.hstack([np.ones((len(x), 1), dtype=np.bool_), likely, likely])
    return csr_array(np.where(likely, x, np.float32(0.0)))


def _best_part(trial: Trial, change: Floats, penalty: float) -> Choice:
    """The best mixing of one penalty among the safe ones, without its weights."""
    best = Choice(penalty=penalty, change=change)
    scale, mixing = trial.mix([change])
    mixing = min(max(mixing, 0.0), 1.0)
    for part in tuning.PARTS:
        near = 1.0 + part * (scale - 1.0), part * mixing
        scores = trial.scores(change, *near)
        best.table.append((penalty, near[1], scores.log_loss, scores.brier, scores.accuracy))
        gain, _ = scores.relative_gain(trial.baseline)
        if gain > best.gain and trial.is_safe(scores):
            best = replace(best, gain=gain, scale=near[0], mixing=near[1], scores=scores, part=part)
    return best


def mix_in_matrix(trial: Trial, choice: Choice) -> Choice:
    """The choice with matrix scaling added to its logits, as much as lowers the log loss on held-out rows."""
    logits, points = cross_fit_matrix(trial.sample, trial.folds)
    scale, mixing, added = trial.mix([choice.change, logits])
    mixing = min(mixing, 1.0)
    total = np.float32(mixing) * choice.change + np.float32(added) * logits
    scores = trial.scores(total, scale, 1.0)
    table: list[tuple[float, ...]] = [
        (choice.penalty, mixing, scores.log_loss, scores.brier, scores.accuracy)
    ]
    if min(mixing, added) <= 0.0 or not trial.is_safe(scores):
        return choice.or_better(Choice(table=table))
    gain, _ = scores.relative_gain(trial.baseline)
    weight = np.asarray(added * np.mean(points, axis=0, dtype=np.float64))
    found = replace(choice, gain=gain, scores=scores, scale=scale, mixing=mixing, matrix=weight, table=table)
    found = replace(found, part=1.0, matrix_logits=(logits,))
    return choice.or_better(found)


def cross_fit_matrix(sample: Sample, folds: Sequence[slice]) -> tuple[Floats, Sequence[Floats]]:
    """The logits of matrix scaling for each row, fitted on the other folds; and the folds' maps, the bias below."""
    prior = PRIOR if sample.n_samples <= tuning.FEW_ROWS else 0.0
    chosen = choose_penalty(sample, MatrixPenalty.tied, prior)
    inverses = fold_inverses(sample, folds, prior)
    starts = [
        scaled_map(sample.n_classes, inverse) if chosen.start is None else chosen.start
        for inverse in inverses
    ]
    models, penalty = fold_maps(sample, folds, starts), MatrixPenalty.tied(chosen.penalty)
    total = total_weight(sample)
    models.move([penalty.under(prior, inverse).per(total) for inverse in inverses], CHOICE_EFFORT)
    return models.held_out().astype(np.float32), models.weights
