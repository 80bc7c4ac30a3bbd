"""Choosing the kernel calibrator's features, penalty and mixing weight by cross-validation, with a baseline to beat."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from polycal._typing import Float64s, Floats
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.baseline import Mixture
from polycal.calibrators.kernel.features import (
    FEATURES_OF_INPUT,
    Features,
    features_of_baseline,
    fit_landmarks,
)
from polycal.calibrators.loss import Scores, logit_scores, total_weight
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


@dataclass(frozen=True, eq=False)
class Trial:
    """What every model is tried on.

    Attributes
    ----------
    sample : Sample
        All rows, sorted by fold.
    folds : sequence of slice
    log_proba : ndarray of float, shape (n_samples, n_classes)
        Log q of the baseline, which the models change.
    input, baseline : Scores
        What models are compared with.
    """

    sample: Sample
    folds: Sequence[slice]
    log_proba: Floats
    input: Scores
    baseline: Scores

    def mix(self, changes: Sequence[Floats]) -> list[float]:
        """Multipliers of the baseline's logits and of changes, by the log loss of held-out rows."""

        def directions(rows: slice) -> Floats:
            return np.stack([self.log_proba[rows], *(change[rows] for change in changes)])

        more, *rest = fit_tilt(self.sample, self.log_proba, directions, 1 + len(changes)).tolist()
        return [1.0 + more, *rest]

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


def choose_model(trial: Trial, mixture: Mixture, seed: int) -> Choice:
    """Try features of the baseline; where they may see more, of the input, and likeness to landmarks; then a matrix."""
    sample, k = trial.sample, trial.sample.n_classes
    choice = choose(trial, features_of_baseline(k), trial.log_proba, Choice())
    if k > tuning.MANY_CLASSES:
        return choice
    tempered = cache(lambda: mixture.log_tempered(sample))
    if mixture.hidden >= tuning.HIDING:
        choice = choose(trial, FEATURES_OF_INPUT, tempered(), choice)
    if choice.has_small_penalty or sample.n_samples >= tuning.MANY_ROWS * k:
        choice = choose(trial, fit_landmarks(sample, tempered(), seed), tempered(), choice)
    if choice.has_small_penalty and k <= tuning.MATRIX_CLASSES:
        choice = mix_in_matrix(trial, choice)
    return choice


def choose(trial: Trial, features: Features, seen: Floats, before: Choice) -> Choice:
    """Walk from large penalties to small ones until it stops getting better; the best, if better than before.

    Parameters
    ----------
    trial : Trial
    features : Features
    seen : ndarray of float, shape (n_samples, n_classes)
        Logarithms of the predictions that the features are of.
    before : Choice
        The best with other features: a little above its penalty is large enough to begin with.
    """
    best, idle = Choice(), 0
    above = max(0, tuning.PENALTIES.index(before.penalty) - tuning.ABOVE) if before.weights else 0
    at_least = tuning.AT_LEAST if above == 0 else tuning.ABOVE
    x, relative = features.of(seen), features.penalty(trial.sample.n_classes).astype(seen.dtype)
    start = before.weights if features.extend(before.features) else ()
    models = _fold_models(trial, x, relative, start)
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


def _fold_models(trial: Trial, x: Floats, relative: Floats, start: Sequence[Floats]) -> FoldModels:
    """Models of features on top of the baseline, with 0 for the weights that ``start`` does not have."""
    n, k = trial.log_proba.shape
    mass = trial.sample.mass.astype(x.dtype)
    problem = SoftmaxRegression(_thinned(x, k), trial.sample.labels, mass, trial.log_proba, (slice(0, n),))
    weights = [np.zeros_like(relative) for _ in trial.folds]
    for weight, begin in zip(weights, start, strict=False):
        weight[: begin.shape[0]] = begin
    blocks = ClassBlocks(x, np.exp(trial.log_proba), mass, relative)
    return FoldModels(problem, trial.folds, weights, blocks)


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
            best = replace(best, gain=gain, scale=near[0], mixing=near[1], scores=scores)
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
    return choice.or_better(found)


def cross_fit_matrix(sample: Sample, folds: Sequence[slice]) -> tuple[Floats, Sequence[Floats]]:
    """The logits of matrix scaling for each row, fitted on the other folds; and the folds' maps, the bias below."""
    chosen = choose_penalty(sample, MatrixPenalty.tied, PRIOR)
    inverses = fold_inverses(sample, folds, PRIOR)
    starts = [
        scaled_map(sample.n_classes, inverse) if chosen.start is None else chosen.start
        for inverse in inverses
    ]
    models, penalty = fold_maps(sample, folds, starts), MatrixPenalty.tied(chosen.penalty)
    total = total_weight(sample)
    models.move([penalty.under(PRIOR, inverse).per(total) for inverse in inverses], CHOICE_EFFORT)
    return models.held_out().astype(np.float32), models.weights
