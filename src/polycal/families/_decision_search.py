"""The search for losses whose best actions show residuals: two actions first, then one after another split in two."""

import numpy as np

from polycal._threads import one_blas_thread
from polycal._typing import Float64s, Ints
from polycal.families._ascent import MAX_SPLIT_CLASSES, Points, ascend, splits, spread, stretch
from polycal.families.halfspace import best_vector_cut, crossings, line_directions

# How sharply rows choose their action: softly first, so that there is a slope to climb.
_SLOPES = (4.0, 16.0, 64.0, 256.0)
_N_STEPS = 15
_N_FINALISTS = 4
_MAX_CLASS_STARTS = 100
_MAX_MOVES = 12
# Sums of probabilities are off by rounding only; this lets the first of equal actions win all the same.
_TILT = 1e-9


@one_blas_thread()
def search_losses(
    points: Points, n_actions: int, n_random: int = 4, seed: int = 0, pair: Float64s | None = None
) -> list[Float64s]:
    """Losses (a, k) of growing value: the best start for two actions, the best pair, then 3, ..., n_actions.

    Where the best ``pair`` is known, from there.
    """
    found = _best_pair(points, n_random, seed) if pair is None else [pair]
    while len(found[-1]) < n_actions:
        found.append(_split_an_action(points, found[-1], seed))
    return found


def chosen_actions(proba: Float64s, losses: Float64s) -> Ints:
    """The action of least expected loss at each prediction, the first of equals."""
    actions: Ints = np.argmin(proba @ losses.T, axis=1)
    return actions


def action_residuals(residual: Float64s, actions: Ints, n_actions: int) -> Float64s:
    """The sum of residuals over the rows that choose each action, (n_actions, k)."""
    chosen = actions[:, None] == np.arange(n_actions)
    sums: Float64s = chosen.T.astype(np.float64) @ residual
    return sums


def decision_value(points: Points, losses: Float64s) -> float:
    """``sum_a || sum of z over the rows that choose a ||_2``."""
    actions = chosen_actions(points.proba, losses)
    return float(np.linalg.norm(action_residuals(points.residual, actions, len(losses)), axis=1).sum())


def pair_losses(direction: Float64s, threshold: float) -> Float64s:
    """Losses of two actions, the first of which is best where ``<direction, v> < threshold``."""
    return np.stack([direction - threshold, np.zeros_like(direction)])


def _best_pair(points: Points, n_random: int, seed: int) -> list[Float64s]:
    """Two actions: the best of directions swept, and what comes of climbing softly, sweeping again and turning."""
    k = points.n_classes
    starts = _pair_starts(points, n_random, seed)
    cuts = [best_vector_cut(points.proba @ start, points.residual) for start in starts]
    order = sorted(range(len(starts)), key=lambda i: -cuts[i].value)[:_N_FINALISTS]
    losses = np.stack([pair_losses(starts[i], cuts[i].threshold) for i in order])
    softened = [found for rung in _soften(points, losses) for found in rung]
    directions = [starts[order[0]], *stretch(np.array([r[0] - r[1] for r in softened]), k)]
    best = sorted(directions, key=lambda d: -best_vector_cut(points.proba @ d, points.residual).value)
    lines = line_directions(points, seed)
    moved = [_move(points, direction, lines) for direction in best[:2]]
    _, direction, threshold = max(moved, key=lambda result: result[0])
    return [losses[0], pair_losses(direction, threshold)]


def _pair_starts(points: Points, n_random: int, seed: int) -> Float64s:
    """Single classes, the directions that covary most with the residual, splits of few classes, random ones."""
    k = points.n_classes
    covarying = np.linalg.svd(points.residual.T @ points.proba)[2][:8]
    random = np.random.default_rng(seed).normal(size=(n_random, k))
    most_used = np.argsort(-spread(points.proba), kind="stable")[:_MAX_CLASS_STARTS]
    starts = [np.eye(k)[most_used], covarying, random]
    if k <= MAX_SPLIT_CLASSES:
        starts.append(splits(k))
    return stretch(np.vstack(starts), k)


def _soften(points: Points, losses: Float64s) -> list[Float64s]:
    """Climb from losses (m, a, k) with ever sharper choices; what was reached at each sharpness."""
    reached = []
    for slope in _SLOPES:
        losses = _climb_softly(points, losses, slope)
        reached.append(losses)
    return reached


def _climb_softly(points: Points, losses: Float64s, slope: float) -> Float64s:
    """Climb with choices of one sharpness."""
    m, a, k = losses.shape
    position, _ = ascend(
        lambda x, _: _soft_value(points, x.reshape(-1, a, k), slope),
        lambda x: _into_box(x.reshape(-1, a, k)).reshape(-1, a * k),
        losses.reshape(m, a * k),
        _N_STEPS,
        np.tile(spread(points.proba), a),
    )
    return position.reshape(m, a, k)


def _into_box(losses: Float64s) -> Float64s:
    """Take off what all actions share, which changes no choice, and clip to [-1, 1]."""
    own: Float64s = losses - losses.mean(axis=1, keepdims=True)
    return np.clip(own, -1.0, 1.0)


def _soft_value(points: Points, losses: Float64s, slope: float) -> tuple[Float64s, Float64s]:
    """``sum_a || sum_i p_ia z_i ||_2`` with ``p_i = softmin(slope <r_a, v_i>)``, and its gradient by the losses."""
    m, a, k = losses.shape
    score = -slope * (points.proba @ losses.reshape(m * a, k).T).reshape(-1, m, a)
    share = np.exp(score - score.max(axis=2, keepdims=True))
    share /= share.sum(axis=2, keepdims=True)
    sums = share.reshape(-1, m * a).T @ points.residual
    norms = np.linalg.norm(sums, axis=1)
    units = sums / np.maximum(norms, 1e-300)[:, None]
    gain = (points.residual @ units.T).reshape(-1, m, a)
    pull = share * (gain - (share * gain).sum(axis=2, keepdims=True))
    gradient = -slope * (pull.reshape(-1, m * a).T @ points.proba)
    return norms.reshape(m, a).sum(axis=1), gradient.reshape(m, a * k)


def _move(points: Points, direction: Float64s, lines: Float64s) -> tuple[float, Float64s, float]:
    """Turn the hyperplane between two actions along the line that gains most, while one does."""
    cut = best_vector_cut(points.proba @ direction, points.residual)
    for _ in range(_MAX_MOVES):
        # Predictions sum to 1: the threshold can be taken into the direction.
        plane = direction - cut.threshold
        margin = points.proba @ plane
        turns = [_best_turn(margin, points.proba @ line, points.residual) for line in lines]
        best = max(range(len(turns)), key=lambda j: turns[j][0])
        turned = stretch((plane + turns[best][1] * lines[best])[None], plane.size)[0]
        new = best_vector_cut(points.proba @ turned, points.residual)
        if new.value <= cut.value * (1 + 1e-12):
            break
        direction, cut = turned, new
    return cut.value, direction, cut.threshold


def _best_turn(margin: Float64s, slope: Float64s, residual: Float64s) -> tuple[float, float]:
    """The largest value along one line, and how far to go for it."""
    order, places = (column[0] for column in crossings(margin, slope[None]))
    below = np.where(slope == 0, margin < 0, slope > 0)
    first = below.astype(np.float64) @ residual
    jumps = np.cumsum(-np.sign(slope)[order, None] * residual[order], axis=0)
    sums = first + np.vstack([np.zeros_like(first), jumps])
    value = np.linalg.norm(sums, axis=1) + np.linalg.norm(residual.sum(axis=0) - sums, axis=1)
    best = int(np.argmax(value))
    return float(value[best]), float(places[best])


def _split_an_action(points: Points, losses: Float64s, seed: int) -> Float64s:
    """One action more: split the rows of one, then climb with soft choices; never worse than without."""
    candidates = [np.vstack([losses, losses[-1:] + 1.0])]
    actions = chosen_actions(points.proba, losses)
    for action in np.unique(actions):
        pair = _best_pair(points.take(actions == action), 2, seed)[-1]
        plane = pair[0] - pair[1]
        for size in 10.0 ** -np.arange(7):
            halves = losses[action] + size * np.stack([plane, -plane])
            candidates.append(np.vstack([losses[:action], halves, losses[action + 1 :]]))
    values = [decision_value(points, _tilted(c)) for c in candidates]
    best = max(range(len(values)), key=lambda i: values[i])
    candidates += [rung[0] for rung in _soften(points, candidates[best][None])]
    return max((_tilted(c) for c in candidates), key=lambda c: decision_value(points, c))


def _tilted(losses: Float64s) -> Float64s:
    """Later actions a little dearer: ties go to the first, whatever the rounding."""
    return losses + _TILT * np.arange(len(losses))[:, None]


@one_blas_thread()
def search_soft_losses(
    points: Points, n_actions: int, temperature: float, n_random: int = 4, seed: int = 0
) -> list[Float64s]:
    """Losses (a, k) in [-1, 1] for soft choices: the best found for 2, 3, ..., n_actions actions."""
    slope = 1.0 / temperature
    starts = _pair_starts(points, n_random, seed)
    cuts = [best_vector_cut(points.proba @ start, points.residual) for start in starts]
    order = sorted(range(len(starts)), key=lambda i: -cuts[i].value)[: 2 * _N_FINALISTS]
    pairs = np.stack([pair_losses(starts[i], cuts[i].threshold) for i in order])
    found = [_best_softly(points, _into_box(pairs), slope)]
    while len(found[-1]) < n_actions:
        found.append(_best_softly(points, _soft_splits(found[-1], n_random, seed, temperature), slope))
    return found


def _best_softly(points: Points, losses: Float64s, slope: float) -> Float64s:
    """The best of losses (m, a, k) and of what climbing reaches from them."""
    climbed = _climb_softly(points, _climb_softly(points, losses, slope), slope)
    tried = np.concatenate([losses, climbed])
    best: Float64s = tried[int(np.argmax(_soft_value(points, tried, slope)[0]))]
    return best


def _soft_splits(losses: Float64s, n_random: int, seed: int, temperature: float) -> Float64s:
    """One action more: each action as two that are chosen half as often, as they are and pulled apart at random."""
    rng = np.random.default_rng(seed)
    starts = []
    for action, row in enumerate(losses):
        # Predictions sum to 1, so that a constant makes both together as likely as the one was.
        pair = np.stack([row, row]) + temperature * np.log(2.0)
        pulls = [np.zeros_like(row), *rng.normal(scale=0.5, size=(1 + n_random, row.size))]
        others = np.delete(losses, action, axis=0)
        starts += [np.vstack([others, pair + np.stack([pull, -pull])]) for pull in pulls]
    return _into_box(np.stack(starts))


def soft_shares(proba: Float64s, losses: Float64s, temperature: float) -> Float64s:
    """How often each action (a, k) is chosen at each prediction, (n, a): the softmin of its expected loss."""
    score = -(proba @ losses.T) / temperature
    share: Float64s = np.exp(score - score.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return share
