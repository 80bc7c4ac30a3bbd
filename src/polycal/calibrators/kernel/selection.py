"""Choosing the kernel calibrator's features, penalty and mixing weight by cross-validation, with a baseline to beat."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from polycal._threads import now_doing
from polycal._typing import Floats
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.baseline import Mixture, Seen
from polycal.calibrators.kernel.features import (
    FEATURES_OF_INPUT,
    Features,
    features_of_baseline,
    fit_landmarks,
)
from polycal.calibrators.kernel.trial import Choice, FoldMatrices, Trial
from polycal.calibrators.loss import Scores, pass_threads
from polycal.calibrators.matrix import HeldOutPath, fold_inverses
from polycal.calibrators.priors import PRIOR, MatrixPenalty
from polycal.calibrators.regression import ClassBlocks, FoldModels, Ridge, SoftmaxRegression

# What models of each kind are made of; and about what part of a fit is done when they are tried.
KINDS = {
    "baseline": "regression on the probabilities of all classes",
    "input": "regression on the input's, small ones told apart",
    "landmarks": "likeness to calibration rows",
    "matrix": "matrix scaling mixed in",
}
_DONE = {"baseline": 0.1, "input": 0.3, "landmarks": 0.45, "matrix": 0.6}


def choose_first(trial: Trial) -> Choice:
    """Try features of the baseline; not with very many classes and fewer rows than these, where they gain nothing."""
    n, k = trial.sample.proba.shape
    if n < k and k > tuning.MANY_CLASSES:
        return Choice()
    return choose(trial, features_of_baseline(k), Choice())


def choose_model(trial: Trial, mixture: Mixture, seed: int, choice: Choice) -> Choice:
    """After the first, where they may see more, try features of the input, and likeness to landmarks; then a matrix."""
    sample, k = trial.sample, trial.sample.n_classes
    if k > tuning.MANY_CLASSES:
        return choice
    if mixture.hidden >= tuning.HIDING:
        choice = choose(trial, FEATURES_OF_INPUT, choice)
    # Landmarks go with features of the input: where work is much, and these gain nothing, they are left out.
    is_hopeless = k > tuning.LANDMARK_CLASSES or (
        trial.tried < len(trial.folds) and "input" in choice.gains and choice.gains["input"].log_loss < 0.0
    )
    if not is_hopeless and (choice.has_small_penalty or sample.n_samples >= tuning.MANY_ROWS * k):
        choice = _choose_landmarks(trial, mixture, seed, choice)
    if choice.has_small_penalty and k <= tuning.MATRIX_CLASSES:
        choice = _choose_matrix(trial, choice)
    return choice


def _choose_landmarks(trial: Trial, mixture: Mixture, seed: int, choice: Choice) -> Choice:
    """Try likeness to landmarks: to a few of them at first, where that is done on one fold."""

    def features(most: int) -> Features:
        return fit_landmarks(trial.sample, mixture.log_tempered(trial.sample), seed, most)

    if not _is_screened(trial):
        return choose(trial, features(tuning.MOST_LANDMARKS), choice)
    few_landmarks = features(tuning.FEW_LANDMARKS)
    choice, found = _screened(trial, choice, lambda few, before: choose(few, few_landmarks, before))
    return choice if found is None else choose(trial, features(tuning.MOST_LANDMARKS), choice, found.penalty)


def _choose_matrix(trial: Trial, choice: Choice) -> Choice:
    """Try to mix in a matrix, on one fold first where the others are many."""
    if not _is_screened(trial):
        return mix_in_matrix(trial, choice)
    choice, found = _screened(trial, choice, mix_in_matrix)
    return choice if found is None or found.matrix is None else _complete_matrix(trial, found.matrix, choice)


def _is_screened(trial: Trial) -> bool:
    """Whether costly kinds are searched on one fold first: where rows are many, and all folds are held out."""
    return trial.tried > 1 and trial.sample.n_samples > tuning.FEW_ROWS


def _screened(
    trial: Trial, before: Choice, search: Callable[[Trial, Choice], Choice]
) -> tuple[Choice, Choice | None]:
    """The choice before, with what one fold says of a costly kind; and what is found, if worth the other folds."""
    few = trial.with_folds(1)
    known = before.on(few)
    found = search(few, known)
    tried = replace(before, table=before.table + found.table[len(before.table) :])
    is_new = found.weights is not known.weights or found.matrix is not known.matrix
    # On one fold the choice before may be worse than none.
    if found.features is None or not is_new or not found.beats(known, tuning.SCREEN_ERRORS):
        return replace(tried, gains=found.gains), None
    return tried, found


def choose(trial: Trial, features: Features, before: Choice, near: float | None = None) -> Choice:
    """Walk from large penalties to small ones until it stops getting better; the best, if better than before.

    Parameters
    ----------
    trial : Trial
    features : Features
    before : Choice
        The best with other features.
    near : float, optional
        The penalty before this one is large enough to begin with; by default, one a little above that of the best
        before.
    """
    now_doing(KINDS[features.kind], _DONE[features.kind])
    walk = _Walk.of(trial, features)
    if near is not None:
        best = walk.down(max(0, tuning.PENALTIES.index(near) - 1), 1, 1)
        return before.or_better(best, features.kind, trial)
    if before.weights:
        start = max(0, tuning.PENALTIES.index(before.penalty) - tuning.ABOVE * trial.stride)
    else:
        start = 0 if trial.stride == 1 else tuning.MIDDLE
    best = walk.down(start, tuning.ABOVE if start else tuning.AT_LEAST, tuning.PATIENCE // trial.stride)
    if not before.weights:
        best = _up(trial, features, start, best)
    return before.or_better(best, features.kind, trial)


def _up(trial: Trial, features: Features, start: int, best: Choice) -> Choice:
    """Larger penalties than one that a walk began with, from no model each, while that is the best of it."""
    for i in range(start - trial.stride, -1, -trial.stride):
        if best.path and best.path[-1] != tuning.PENALTIES[i + trial.stride]:
            break
        walk = _Walk.of(trial, features)
        walk.models.move(walk.penalties(tuning.PENALTIES[i]), tuning.EFFORT)
        best = walk.look(best, tuning.PENALTIES[i : i + 1])
    return best


@dataclass(frozen=True, eq=False)
class _Walk:
    """Models that go from penalty to penalty."""

    trial: Trial
    features: Features
    models: FoldModels
    penalties: Callable[[float], Sequence[Ridge]]

    @classmethod
    def of(cls, trial: Trial, features: Features, blocks: ClassBlocks | None = None) -> "_Walk":
        """No models yet, of the folds that are tried."""
        return cls(trial, features, *_fold_models(trial, features, blocks))

    def down(self, start: int, at_least: int, patience: int) -> Choice:
        """Go down from a penalty, so far at least, until so many in a row do not get better; the best."""
        idle, best, path, trail = 0, Choice(), list[float](), list[Sequence[Floats]]()
        for i in range(start, len(tuning.PENALTIES), self.trial.stride):
            self.models.move(self.penalties(tuning.PENALTIES[i]), tuning.EFFORT)
            path.append(tuning.PENALTIES[i])
            before, best = best, self.look(best, path)
            improved = best.weights is not before.weights
            if improved:
                best = replace(best, trail=tuple(trail))
            trail = [*trail, self.models.weights][-tuning.LOOK_BACK :]
            idle = 0 if improved or i - start < at_least else idle + 1
            if idle == patience:
                break
        return best

    def on_from(self, last: Choice) -> Choice:
        """Go on from models fitted to fewer rows, at their penalty, and to smaller ones while these are better.

        Where steps are cheap, it begins at the penalty before theirs. Where they are not, it stays at theirs; so it
        does with landmarks, unless the data ask for a model that is little penalised.
        """
        self.models.weights = list(last.weights)
        best, index = Choice(), tuning.PENALTIES.index(last.penalty)
        is_much, is_rich = self.trial.stride > 1, self.features.n_landmarks > 0
        stays = is_much or (is_rich and not last.has_small_penalty)
        start = index if is_much or is_rich else max(0, index - 1)
        for i in range(start, index + 1 if stays else len(tuning.PENALTIES)):
            penalty = tuning.PENALTIES[i]
            self.models.move(self.penalties(penalty), tuning.RENEWAL)
            before, best = best, self.look(best, (*(one for one in last.path if one > penalty), penalty))
            if best.weights is before.weights and i > index:
                break
        return best

    def look(self, best: Choice, path: Sequence[float]) -> Choice:
        """The models as they are, at the end of a path, where they are better than the best."""
        candidate = _best_part(self.trial, self.models.held_out(), path[-1])
        table, nearest = best.table + candidate.table, _nearer(best.nearest, candidate.nearest)
        if candidate.gain > best.gain + tuning.STEP_GAIN:
            weights, blocks = self.models.weights, self.trial.kept["blocks"]
            best = replace(
                candidate, features=self.features, path=tuple(path), weights=weights, blocks=blocks
            )
        return replace(best, table=table, nearest=nearest)


def path_to(trial: Trial, choice: Choice, blocks: ClassBlocks | None = None) -> Floats:
    """The changes of held-out rows at the end of the path of penalties that leads to a choice."""
    if choice.features is None:
        return np.empty((0, 0))
    walk = _Walk.of(trial, choice.features, blocks)
    for penalty in choice.path[-tuning.LOOK_BACK :] if trial.stride > 1 else choice.path:
        walk.models.move(walk.penalties(penalty), tuning.EFFORT)
    return walk.models.held_out()


def complete(trial: Trial, choice: Choice) -> Choice:
    """The choice with models of all folds of a trial, the first of which it has already, mixed by their rows.

    The last penalties of the path are looked at again with all folds.
    """
    done = len(choice.weights)
    if done == trial.tried or choice.features is None:
        return choice
    walk, best = _Walk.of(trial, choice.features, choice.blocks), Choice()
    models, penalties = walk.models, walk.penalties
    first = max(0, len(choice.path) - tuning.LAST_PENALTIES) if trial.stride > 1 else 0
    for end in range(first + 1, len(choice.path) + 1):
        models.move(penalties(choice.path[end - 1]), tuning.EFFORT, done)
        back = len(choice.path) - end
        if 0 < back <= len(choice.trail):
            models.weights = [*choice.trail[-back], *models.weights[done:]]
            best = walk.look(best, choice.path[:end])
    models.weights = [*choice.weights, *models.weights[done:]]
    best = walk.look(best, choice.path)
    best = replace(best, table=choice.table + best.table, gains=choice.gains)
    if choice.matrix is None or best.features is None:
        return best
    return _complete_matrix(trial, choice.matrix, best)


def renew(trial: Trial, choice: Choice) -> Choice | None:
    """The same model, fitted to the rows of a trial from the weights before; None where it is no longer safe."""
    if choice.features is None:
        return choice
    found = _Walk.of(trial, choice.features, choice.blocks).on_from(choice)
    found = replace(found, table=choice.table, gains=choice.gains)
    if found.scores is None:
        return None
    if choice.matrix is None:
        return found
    path = _matrix_path(trial, trial.folds)
    path.models.weights[:] = choice.matrix.maps
    path.move(MatrixPenalty.tied(choice.matrix.penalty))
    logits = path.logits(path.models.weights).astype(np.float32)
    mixed = _mixed(trial, found, FoldMatrices(choice.matrix.penalty, path.models.weights, logits))
    return None if mixed.scores is None else replace(mixed, table=choice.table)


def _fold_models(
    trial: Trial, features: Features, blocks: ClassBlocks | None
) -> tuple[FoldModels, Callable[[float], Sequence[Ridge]]]:
    """Models of features on top of the baseline, one without each of the folds that are tried; and their penalties."""
    folds = trial.folds[: trial.tried]
    relative = features.penalty(trial.sample.n_classes).astype(trial.log_proba.dtype)
    if trial.kept.get("features") != features or len(trial.seen) > 1:
        made = [_problem(trial, features, seen) for seen in trial.seen]
        if blocks is None:
            mass, proba = trial.sample.mass, np.exp(trial.seen[-1].log_proba)
            with pass_threads(made[-1][1].size * trial.sample.n_classes) as run:
                blocks = ClassBlocks(made[-1][1], proba, mass, relative, run=run)
        trial.kept.update(features=features, problems=[problem for problem, _ in made], blocks=blocks)
    problems, blocks = trial.kept["problems"], trial.kept["blocks"]
    models = FoldModels(problems, folds, [np.zeros_like(relative) for _ in folds], blocks)
    return models, lambda penalty: [Ridge(relative, penalty)] * len(folds)


def _problem(trial: Trial, features: Features, seen: Seen) -> tuple[SoftmaxRegression, Floats]:
    """The regression on features of all rows, and all of these."""
    x = features.of(seen.log_tempered() if features.source == "input" else seen.log_proba)
    mass, labels = trial.sample.mass.astype(x.dtype), trial.sample.labels
    thin = _thinned(x, trial.sample.n_classes)
    return SoftmaxRegression(thin, labels, mass, seen.log_proba, (slice(0, labels.size),)), x


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
        best = replace(best, nearest=_nearer(best.nearest, (gain, scores)))
        if gain > best.gain and trial.is_safe(scores):
            best = replace(best, gain=gain, scale=near[0], mixing=near[1], scores=scores, part=part)
    return best


def _nearer(*tried: tuple[float, Scores] | None) -> tuple[float, Scores] | None:
    """The one that gains most, of those that there are; the first of equals."""
    return max(filter(None, tried), key=lambda one: one[0], default=None)


def mix_in_matrix(trial: Trial, choice: Choice) -> Choice:
    """The choice with matrix scaling added to its logits, as much as lowers the log loss on held-out rows."""
    now_doing(KINDS["matrix"], _DONE["matrix"])
    return choice.or_better(_mixed(trial, choice, _walk_matrix(trial)), "matrix", trial)


def _mixed(trial: Trial, choice: Choice, matrix: FoldMatrices) -> Choice:
    """The choice with fitted matrices mixed in, and a table of that alone; no choice where it is not safe."""
    scale, mixing, added = trial.mix([choice.change, matrix.logits])
    mixing = min(mixing, 1.0)
    total = np.float32(mixing) * choice.change + np.float32(added) * matrix.logits
    scores = trial.scores(total, scale, 1.0)
    table: list[tuple[float, ...]] = [
        (choice.penalty, mixing, scores.log_loss, scores.brier, scores.accuracy)
    ]
    gain, _ = scores.relative_gain(trial.baseline)
    if min(mixing, added) <= 0.0:
        return Choice(table=table)
    if not trial.is_safe(scores):
        return Choice(table=table, nearest=(gain, scores))
    found = replace(choice, gain=gain, scores=scores, scale=scale, mixing=mixing, part=1.0, table=table)
    return replace(found, matrix=matrix, added=added, nearest=(gain, scores))


def _walk_matrix(trial: Trial) -> FoldMatrices:
    """Matrix scaling with a penalty chosen on the held-out rows."""
    path = _matrix_path(trial, trial.folds[: trial.tried])
    chosen = path.walk(MatrixPenalty.tied, tuning.MATRIX_STRIDE)
    return FoldMatrices(chosen.penalty, chosen.maps, path.logits(chosen.maps).astype(np.float32))


def _complete_matrix(trial: Trial, first: FoldMatrices, choice: Choice) -> Choice:
    """The choice with matrix scaling mixed in, of which some first folds are fitted already."""
    path = _matrix_path(trial, trial.folds[len(first.maps) : trial.tried])
    path.move(MatrixPenalty.tied(first.penalty))
    logits = np.concatenate([first.logits, path.logits(path.models.weights).astype(np.float32)])
    matrix = FoldMatrices(first.penalty, [*first.maps, *path.models.weights], logits)
    return choice.or_better(_mixed(trial, choice, matrix), "matrix", trial)


def _matrix_path(trial: Trial, folds: Sequence[slice]) -> HeldOutPath:
    """Matrix scaling without each of some folds; many rows have no prior, and begin at the temperature of one fold."""
    if trial.sample.n_samples <= tuning.FEW_ROWS:
        return HeldOutPath(trial.sample, folds, PRIOR, tuning.MATRIX_EFFORT)
    if "inverse" not in trial.kept:
        trial.kept["inverse"] = fold_inverses(trial.sample, trial.folds[:1], 0.0)[0]
    return HeldOutPath(trial.sample, folds, 0.0, tuning.MATRIX_EFFORT, trial.kept["inverse"])
