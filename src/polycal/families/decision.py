"""Decisions: residuals averaged where each of K actions is best for some loss."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s, Floats, Ints, Seed
from polycal._validation import check_integer, check_real, keep_seed
from polycal.families._ascent import class_residual, distinct_points
from polycal.families._decision_search import (
    pair_losses,
    search_losses,
    search_soft_losses,
    soft_shares,
)
from polycal.families.auditor import Auditor, cross_fit, weighted_rows
from polycal.families.halfspace import ROUNDING, best_lines, best_vector_cut, is_planar
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import Witness, linear, signed_names
from polycal.sample import Sample, row_blocks, row_sums
from polycal.steps import Program, Softmax, Top
from polycal.storage.rules import Array, Real, expect


@dataclass(frozen=True)
class Decision(Notion):
    r"""Decision calibration: whatever the losses, do the outcomes of each best action come as predicted?

    Parameters
    ----------
    actions : int, default 2
        Number of actions to choose from.
    temperature : float, optional
        Actions are chosen softly (a quantal response): each with probability proportional to
        :math:`\exp(-\langle r_a, v\rangle / \mathrm{temperature})`, for losses in [-1, 1]. By default the best action
        is taken always.

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

    With a `temperature` the indicator is replaced by the probability of the action. The family is then Lipschitz, with
    a constant of the order of 1 / temperature, so that its error can be learnt from a number of rows that does not grow
    with k [3]_. Estimator: a search by soft choices of that sharpness from the same starts, a lower bound.

    References
    ----------
    .. [1] Zhao, Kim, Sahoo, Ma and Ermon (2021), "Calibrating Predictions to Decisions: A Novel Approach to
       Multi-Class Calibration".
    .. [2] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Theorem on
       the hardness of decision calibration.
    .. [3] Tang and others (2025), "Dimension-free decision calibration for nonlinear loss functions", arXiv 2504.15615.

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], pc.Decision())
    >>> round(estimate.value, 4), estimate.kind
    (1.0607, 'exact')
    """

    actions: int = 2
    temperature: float | None = None
    name: ClassVar[str] = "decision"

    def __post_init__(self) -> None:
        check_integer(self.actions, "actions", minimum=2)
        _check_temperature(self.temperature)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        return self._soft_estimate(sample) if self.temperature is not None else self._hard_estimate(sample)

    def _soft_estimate(self, sample: Sample) -> ErrorEstimate:
        witness = soft_witnesses(sample, self.actions, self.temperature or 1.0)[-1]
        value = float(witness.contributions.sum())
        method = f"heuristic search over {self.actions} soft actions"
        return ErrorEstimate(value, "lower bound", self, method, self.actions, sample.n_samples, witness)

    def _hard_estimate(self, sample: Sample) -> ErrorEstimate:
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


def _check_temperature(temperature: float | None) -> None:
    if temperature is not None:
        check_real(temperature, "temperature", low=1e-3, high=1e3)


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

    With a temperature, w(v) is the mean of all g_a, each as often as its action is chosen softly.

    Attributes
    ----------
    losses : ndarray of shape (n_actions, k)
        r_a in row a: the loss of the action for each label.
    weights : ndarray of shape (n_actions, k)
        g_a in row a, of Euclidean length at most 1: which classes come too often (positive) or too rarely
        (negative) where that action is best.
    contributions : ndarray of shape (n_actions,)
        ``E <y - v, w(v)>`` over the rows that choose each action, on the sample the witness was found on.
    temperature : float
        How softly actions are chosen; 0 takes the best always.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.DecisionAuditor().find_witness(made.labels, made.proba)
    >>> witness.losses.shape[1]
    4
    """

    losses: Annotated[Float64s, Array("float64", "n_actions n_classes")]
    weights: Annotated[Float64s, Array("float64", "n_actions n_classes", low=-1, high=1)]
    contributions: Annotated[Float64s, Array("float64", "n_actions")]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    temperature: Annotated[float, Real(low=0)] = 0.0
    family: ClassVar[str] = "decision"

    def _check(self) -> None:
        super()._check()
        expect(len(self.losses), "there must be an action")
        expect((np.linalg.norm(self.weights, axis=1) <= 1.0 + 1e-6).all(), "weights must be at most 1 long")

    def actions(self, proba: Floats) -> Ints:
        """The action chosen at each prediction."""
        chosen: Ints = np.argmin(proba.astype(np.float64, copy=False) @ self.losses.T, axis=1)
        return chosen

    def shares(self, proba: Floats) -> Float64s:
        """How often each action is chosen at each prediction, of shape (m, n_actions)."""
        if self.temperature == 0.0:
            return np.eye(len(self.losses))[self.actions(proba)]
        return soft_shares(proba.astype(np.float64, copy=False), self.losses, self.temperature)

    def evaluate(self, proba: Floats) -> Float64s:
        """The weight of the action chosen, or the mean of those chosen softly."""
        return (
            self.weights[self.actions(proba)]
            if self.temperature == 0.0
            else self.shares(proba) @ self.weights
        )

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
        if self.temperature == 0.0:
            return linear(-self.losses.T), Top(), linear(self.weights)
        return linear(-self.losses.T / self.temperature), Softmax(), linear(self.weights)


@dataclass(frozen=True)
class DecisionAuditor(Auditor):
    r"""Look for losses for which the outcomes of the best actions do not come as predicted.

    Parameters
    ----------
    actions : int, default 2
        Most actions to choose from.
    temperature : float, optional
        How softly actions are chosen, as for `Decision`.
    n_starts : int, default 4
        Random directions tried, beside those that the data suggest.
    random_state : int, Generator or None, default 0
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
    temperature: float | None = None
    n_starts: int = 4
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_integer(self.actions, "actions", minimum=2)
        _check_temperature(self.temperature)
        check_integer(self.n_starts, "n_starts", minimum=0)
        keep_seed(self)

    def find(self, sample: Sample) -> DecisionWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        level, kept = cross_fit(sample, self._levels, self.random_state)
        return self._levels(sample)[level].restricted(np.flatnonzero(kept))

    def _levels(self, sample: Sample) -> list[DecisionWitness]:
        """A threshold, two actions, three actions, ..."""
        if self.temperature is not None:
            return soft_witnesses(sample, self.actions, self.temperature, self.n_starts, self.random_state)
        points = distinct_points(sample)
        found = search_losses(points, self.actions, self.n_starts, self.random_state)
        return [decision_witness(sample, points.by_class(losses)) for losses in found]


def soft_witnesses(
    sample: Sample, n_actions: int, temperature: float, n_starts: int = 4, seed: int = 0
) -> list[DecisionWitness]:
    """The best witnesses found for soft choices of 2, 3, ..., n_actions actions."""
    points = distinct_points(sample)
    found = search_soft_losses(points, n_actions, temperature, n_starts, seed)
    return [decision_witness(sample, points.by_class(losses), temperature) for losses in found]


def decision_witness(sample: Sample, losses: Float64s, temperature: float = 0.0) -> DecisionWitness:
    """The mean residual where each action is best, or chosen softly, scaled to length 1."""
    mass = sample.mass
    sums = np.zeros(losses.shape)
    names = sample.class_names
    blank = DecisionWitness(losses, sums, np.zeros(len(losses)), sample.n_classes, names, temperature)
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        chosen = blank.shares(sample.proba[rows]).T * mass[rows]
        for action, share in enumerate(chosen):
            sums[action] += np.bincount(sample.labels[rows], weights=share, minlength=sample.n_classes)
        sums -= chosen @ sample.proba[rows]
    norms = np.linalg.norm(sums, axis=1)
    weights = sums / np.maximum(norms, 1e-300)[:, None]
    return replace(blank, weights=weights, contributions=norms)
