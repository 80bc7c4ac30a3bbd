"""Decisions: residuals averaged where each of K actions is best for some loss."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from polycal._threads import one_blas_thread
from polycal._typing import Float64s, Floats, Ints
from polycal._validation import check_integer, check_seed
from polycal.families._ascent import (
    MAX_SPLIT_CLASSES,
    Points,
    ascend,
    class_residual,
    distinct_points,
    splits,
    spread,
    stretch,
)
from polycal.families.auditor import Auditor, cross_fit, weighted_rows
from polycal.families.halfspace import (
    ROUNDING,
    best_lines,
    best_vector_cut,
    crossings,
    is_planar,
    line_directions,
)
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import Witness, linear, signed_names
from polycal.sample import Sample, row_blocks, row_sums
from polycal.steps import Program, Top
from polycal.storage.rules import Array, expect


@dataclass(frozen=True)
class Decision(Notion):
    r"""Decision calibration: whatever the losses, do the outcomes of each best action come as predicted?

    Parameters
    ----------
    actions : int, default 2
        Number of actions to choose from.

    Notes
    -----
    Definition: an action a has a loss :math:`r_a \in \mathbb{R}^k` for each label, and the best action at v is that
    of least expected loss, :math:`\arg\min_a \langle r_a, v\rangle` (the first of equals). The error is [1]_

    .. math:: \sup_{r_1, \dots, r_K} \sum_a \| \mathbb{E}[(y - v)\, 1(a \text{ is best at } v)] \|_2 ,

    that is, the weight is a vector of Euclidean length at most 1 for each action. Auditing it is as hard as
    agnostically learning halfspaces, for which no polynomial algorithm is believed to exist [2]_. Estimator: a
    heuristic search. Two actions: directions are swept exactly by one sort each, climbed with
    soft choices of growing sharpness, and turned along lines. More actions: one action after another is split in
    two, so the value never falls with their number. What is found is a lower bound; two actions and two classes
    leave only a threshold, and are exact; so are two actions and three classes of at most 2,500 distinct predictions,
    where every line that parts them is tried. Predictions whose weighted sums differ by less than
    1e-9 are not cut apart. A search looks at no more than 32,768 distinct predictions; the value is that of the
    whole sample. Cost: some hundred passes of O(n k) for each action. Bias: upwards.

    References
    ----------
    .. [1] Zhao, Kim, Sahoo, Ma and Ermon (2021), "Calibrating Predictions to Decisions: A Novel Approach to
       Multi-Class Calibration".
    .. [2] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Theorem on
       the hardness of decision calibration.

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], pc.Decision())
    >>> round(estimate.value, 4), estimate.kind
    (1.0607, 'exact')
    """

    actions: int = 2
    name: ClassVar[str] = "decision"

    def __post_init__(self) -> None:
        check_integer(self.actions, "actions", minimum=2)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        if sample.n_classes == self.actions == 2:
            losses, most = _two_class_losses(sample)
            method = "every threshold"
        else:
            points, most = distinct_points(sample), np.inf
            method = f"heuristic search over {self.actions} actions"
            pair = None
            if is_planar(points):
                line = best_lines(points)[3]
                cut = best_vector_cut(points.proba @ line.direction, points.residual)
                pair = pair_losses(line.direction, cut.threshold)
                if self.actions == 2:
                    most, method = line.most, "every line"
            losses = points.by_class(search_losses(points, self.actions, pair=pair)[-1])
        witness = decision_witness(sample, losses)
        value = float(witness.contributions.sum())
        return ErrorEstimate(
            value=value,
            # Losses may not tell apart predictions that differ in the last digit only.
            kind="exact" if value >= most - ROUNDING else "lower bound",
            notion=self,
            method=method,
            n_steps=self.actions,
            n_samples=sample.n_samples,
            witness=witness,
        )


def _two_class_losses(sample: Sample) -> tuple[Float64s, float]:
    """The best threshold on the probability of class 1, as losses, and what it attains."""
    residual = np.column_stack([class_residual(sample, 0), class_residual(sample, 1)])
    # Losses see the ratio of the two probabilities: single-precision rows do not quite sum to 1.
    share = sample.proba[:, 1] / row_sums(sample.proba)
    cut = best_vector_cut(share, residual, min_gap=0.0)
    return pair_losses(np.array([0.0, 1.0]), cut.threshold), cut.value


@dataclass(frozen=True, eq=False, repr=False)
class DecisionWitness(Witness):
    """w(v) = g_a with a the action of least expected loss ``<r_a, v>``, the first of equals.

    Attributes
    ----------
    losses : ndarray of shape (n_actions, k)
        r_a in row a: the loss of the action for each label.
    weights : ndarray of shape (n_actions, k)
        g_a in row a, of Euclidean length at most 1: which classes come too often (positive) or too rarely
        (negative) where that action is best.
    contributions : ndarray of shape (n_actions,)
        ``E <y - v, w(v)>`` over the rows that choose each action, on the sample the witness was found on.
    """

    losses: Annotated[Float64s, Array("float64", "n_actions n_classes")]
    weights: Annotated[Float64s, Array("float64", "n_actions n_classes", low=-1, high=1)]
    contributions: Annotated[Float64s, Array("float64", "n_actions")]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "decision"

    def _check(self) -> None:
        super()._check()
        expect(len(self.losses), "there must be an action")
        expect((np.linalg.norm(self.weights, axis=1) <= 1.0 + 1e-6).all(), "weights must be at most 1 long")

    def actions(self, proba: Floats) -> Ints:
        """The action chosen at each prediction."""
        chosen: Ints = np.argmin(proba.astype(np.float64, copy=False) @ self.losses.T, axis=1)
        return chosen

    def evaluate(self, proba: Floats) -> Float64s:
        """The weight of the action chosen."""
        return self.weights[self.actions(proba)]

    def describe(self) -> str:
        """The actions that contribute most, and the classes off most where they are best."""
        order = np.argsort(-self.contributions, kind="stable")
        order = order[self.contributions[order] > 0]
        if order.size == 0:
            return "nothing found"
        parts = [f"where action {a} is best {self._weight_words(self.weights[a])}" for a in order[:3]]
        more = [f"{order.size - 3} more actions"] if order.size > 3 else []
        return "; ".join(parts + more)

    def _weight_words(self, weight: Float64s) -> str:
        """Classes that come too often (+) or too rarely (-)."""
        return signed_names(weight, np.argsort(-np.abs(weight), kind="stable")[:3], self.name)

    def restricted(self, classes: Ints) -> "DecisionWitness":
        """The same on some classes, 0 on the others, each weight scaled to its old length."""
        weights = np.where(np.isin(np.arange(self.n_classes), classes), self.weights, 0.0)
        before, after = (np.linalg.norm(w, axis=1, keepdims=True) for w in (self.weights, weights))
        # A weight is the mean residual scaled, so cutting it down cuts its contribution in proportion.
        contributions = self.contributions * (after / np.maximum(before, 1e-300))[:, 0]
        scaled = np.where(after > 0, weights * (before / np.maximum(after, 1e-300)), 0.0)
        return replace(self, weights=scaled, contributions=contributions)

    def to_steps(self) -> Program:
        """Which action has the least loss, and its weight."""
        return linear(-self.losses.T), Top(), linear(self.weights)


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


@dataclass(frozen=True)
class DecisionAuditor(Auditor):
    r"""Look for losses for which the outcomes of the best actions do not come as predicted.

    Parameters
    ----------
    actions : int, default 2
        Most actions to choose from.
    n_starts : int, default 4
        Random directions tried, beside those that the data suggest.
    random_state : int, default 0
        Seed of the random directions and of the halves.

    Notes
    -----
    The witness is one of `Decision`: a vector of length at most 1 for each action. Losses are sought in growing
    freedom: a threshold along one direction that the data suggest, any hyperplane between two actions, then three and
    more actions. Each half of the rows judges what was found on the other; the degree that does best
    is then searched for on all rows, and classes whose contribution does not hold up get weight 0.
    Cost: two searches in all on n rows, each some hundred passes of O(n k).

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> pc.DecisionAuditor().find_witness(fit.labels[:4000], fit.proba[:4000]).correlation(fresh) > 0.02
    True
    """

    actions: int = 2
    _: KW_ONLY
    n_starts: int = 4
    random_state: int = 0

    def __post_init__(self) -> None:
        check_integer(self.actions, "actions", minimum=2)
        check_integer(self.n_starts, "n_starts", minimum=0)
        check_seed(self.random_state)

    def find(self, sample: Sample) -> DecisionWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        level, kept = cross_fit(sample, self._levels, self.random_state)
        return self._levels(sample)[level].restricted(np.flatnonzero(kept))

    def _levels(self, sample: Sample) -> list[DecisionWitness]:
        """A threshold, two actions, three actions, ..."""
        points = distinct_points(sample)
        found = search_losses(points, self.actions, self.n_starts, self.random_state)
        return [decision_witness(sample, points.by_class(losses)) for losses in found]


def decision_witness(sample: Sample, losses: Float64s) -> DecisionWitness:
    """The mean residual where each action is best, scaled to length 1."""
    mass = sample.mass
    sums = np.zeros(losses.shape)
    blank = DecisionWitness(losses, sums, np.zeros(len(losses)), sample.n_classes, sample.class_names)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        action = blank.actions(sample.proba[rows])
        np.add.at(sums, (action, sample.labels[rows]), mass[rows])
        chosen = (action == np.arange(len(losses))[:, None]) * mass[rows]
        sums -= chosen @ sample.proba[rows]
    norms = np.linalg.norm(sums, axis=1)
    weights = sums / np.maximum(norms, 1e-300)[:, None]
    return DecisionWitness(losses, weights, norms, sample.n_classes, sample.class_names)
