"""Choosing a ridge and a mixing weight by cross-validation, with the base as the standard to beat."""

from dataclasses import dataclass, field, replace

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._fold_path import FoldPath
from polycal.calibrators._scoring import Scores, logit_scores
from polycal.calibrators._tilt import fit_tilt

# From ridge to ridge the solutions differ enough to matter, and mixing fills the gaps.
STRENGTHS = tuple(0.1 * 0.25**j for j in range(12))
# Besides the best mixing, parts of it: bolder models may win by luck, or cost accuracy.
PARTS = (1.0, 0.5, 0.25)
# The path goes so far at least, and ends after so many strengths in a row that bring nothing.
_AT_LEAST, _PATIENCE = 4, 2
# Where the best strength for other features is known, it begins so many above.
_ABOVE = 2
# A weaker ridge, or other features, must gain this much: smaller differences are the luck of the search.
LEAST_GAIN = 0.002
# And other features so many standard errors: the best of a whole path is held against the best before.
_ERRORS = 2.0
# A model must not lose more accuracy than this against the input, with half a standard error to spare.
_ACCURACY_LOSS = 0.003


@dataclass
class Choice:
    """The best model of a path so far.

    Attributes
    ----------
    gain : float
        What it gains on the base on held-out rows, in log loss and Brier score, each as a part of the base's; 0
        while nothing beats the base.
    strength : float
        Its ridge.
    scale, mixing : float
        What the base's logits, and the model's change of them, are multiplied by.
    scores : Scores, or None
        Those of the rows, held out, fold by fold; None while nothing beats the base.
    weights : list of ndarray of shape (n_features, n_classes)
        Those of the folds' models; none while nothing beats the base.
    change : ndarray of float, shape (n_samples, n_classes)
        What each fold's model adds to the logits of the rows it has not seen, fold by fold; empty while there is none.
    matrix : ndarray of shape (n_classes + 1, n_classes), or None
        What multiplies the logarithms of the input, and a bias below it, where matrix scaling is mixed in.
    table : list
        Strength, mixing, log loss, Brier score and accuracy of every model tried, cross-validated.
    """

    gain: float = 0.0
    strength: float = np.inf
    scale: float = 1.0
    mixing: float = 0.0
    scores: Scores | None = None
    weights: list[Floats] = field(default_factory=list)
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
        return gain > max(_ERRORS * error, LEAST_GAIN)

    def final_weight(self) -> Float64s | None:
        """The mean weights, mixed, and centred: a softmax does not see what all classes share."""
        if not self.weights:
            return None
        weight = np.asarray(np.mean(self.weights, axis=0, dtype=np.float64))
        centred: Float64s = self.mixing * (weight - weight.mean(axis=1, keepdims=True))
        return centred


def choose(path: FoldPath, raw: Scores, standard: Scores, before: Choice, *, warm: bool = False) -> Choice:
    """Walk down the path until it stops getting better.

    Parameters
    ----------
    path : FoldPath
    raw, standard : Scores
        Those of the input and of the base, for the rows in the path's order.
    before : Choice
        The best with other features: a little above its strength is strong enough to begin with.
    warm : bool
        Those other features are the first of these: begin with their weights.
    """
    best, idle = Choice(), 0
    above = max(0, STRENGTHS.index(before.strength) - _ABOVE) if before.weights else 0
    at_least = _AT_LEAST if above == 0 else _ABOVE
    start = before.weights if warm else ()
    for i, (strength, weights, change) in enumerate(path.solutions(STRENGTHS[above:], start)):
        candidate = _best_part(path, change, raw, standard, strength)
        best.table += candidate.table
        improved = candidate.gain > best.gain + LEAST_GAIN
        if improved:
            best = replace(candidate, weights=weights, change=change.copy(), table=best.table)
        idle = 0 if improved or i < at_least else idle + 1
        if idle == _PATIENCE:
            break
    return best


def _best_part(path: FoldPath, change: Floats, raw: Scores, standard: Scores, strength: float) -> Choice:
    """The best mixing of one strength among the safe ones, without its weights."""
    best = Choice(strength=strength)
    scale, mixing = _fit_mixing(path, change)
    for part in PARTS:
        near = 1.0 + part * (scale - 1.0), part * mixing
        scores = logit_scores(path.sample, path.log_proba, change, *near)
        best.table.append((strength, near[1], scores.log_loss, scores.brier, scores.accuracy))
        gain, _ = scores.relative_gain(standard)
        if gain > best.gain and is_safe(scores, raw, standard):
            best.gain, best.scale, best.mixing, best.scores = gain, *near, scores
    return best


def is_safe(scores: Scores, raw: Scores, standard: Scores) -> bool:
    """Whether a model is better than the base beyond the noise, and as accurate as the input up to noise."""
    gain, error = scores.relative_gain(standard)
    more_right, doubt = scores.accuracy_gain(raw)
    return gain > error and more_right - 0.5 * doubt > -_ACCURACY_LOSS


def _fit_mixing(path: FoldPath, change: Floats) -> tuple[float, float]:
    """Multipliers of the base's logits and of their change, by the log loss of held-out rows."""

    def directions(rows: slice) -> Floats:
        return np.stack([path.log_proba[rows], change[rows]])

    scale, mixing = fit_tilt(path.sample, path.log_proba, directions, 2)
    return 1.0 + float(scale), min(max(float(mixing), 0.0), 1.0)
