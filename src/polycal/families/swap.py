"""Swaps of actions: where another action costs less than the one that looks best, for a loss that is known."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.families.auditor import Auditor, weighted_rows
from polycal.families.witness import Witness, linear
from polycal.measures.costs import Loss, make_losses
from polycal.sample import Sample, row_blocks
from polycal.steps import Program, Top
from polycal.storage.rules import Array, ClassNames, expect

# Standard errors that a swap must save on the rows where it is chosen: fewer are mostly noise.
_ERRORS = 1.0
# Swaps to say in words.
_MOST_WORDS = 3


@dataclass(frozen=True, eq=False, repr=False)
class SwapWitness(Witness):
    r"""w(v) = (L_a - L_s(a)) / width, with a the action of least expected cost at v, and s(a) the one to take instead.

    Under calibrated predictions its correlation with the residual is 0; where a swap saves, it is at least the saving
    over the width: the predictions promise that no swap saves.

    Attributes
    ----------
    losses : ndarray of shape (n_actions, k)
        The cost of each action for each class, by which actions are chosen: the first of equals.
    swaps : ndarray of int64, shape (n_actions,)
        The action to take instead; an action that stands for itself is kept.
    action_names : tuple of str, or None
        Names of the actions.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> loss = [*(1 - np.eye(4)), [0.3] * 4]
    >>> witness = pc.SwapAuditor(loss).find_witness(made.labels, made.proba)
    >>> pc.certify(witness, made.labels, made.proba).estimate > 0
    True
    """

    losses: Annotated[Float64s, Array("float64", "n_actions n_classes")]
    swaps: Annotated[Ints, Array("int64", "n_actions", low=0, below="n_actions")]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    action_names: Annotated[tuple[str, ...] | None, ClassNames("n_actions")] = None
    family: ClassVar[str] = "swap"

    def _check(self) -> None:
        super()._check()
        expect(self.n_actions, "there must be an action")

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.losses.shape[0])

    @cached_property
    def width(self) -> float:
        """The largest difference between two costs: a correlation times this is in the unit of the loss."""
        return float(self.losses.max() - self.losses.min()) or 1.0

    @cached_property
    def weights(self) -> Float64s:
        """The weight of each class where each action is chosen, of shape (n_actions, k), in [-1, 1].

        Residuals add up to 0, so that taking off a constant changes no correlation.
        """
        difference = self.losses - self.losses[self.swaps]
        middle: Float64s = (difference.max(axis=1) + difference.min(axis=1)) / 2.0
        weights: Float64s = (difference - middle[:, None]) / self.width
        return np.clip(weights, -1.0, 1.0)

    def evaluate(self, proba: Floats) -> Float64s:
        """The weight of the action chosen."""
        chosen = np.argmin(proba.astype(np.float64, copy=False) @ self.losses.T, axis=1)
        weights: Float64s = self.weights[chosen]
        return weights

    def describe(self) -> str:
        """The swaps in words."""
        swapped = np.flatnonzero(self.swaps != np.arange(self.n_actions))
        if swapped.size == 0:
            return "no swap of actions"
        words = [f"{self._action(int(self.swaps[a]))} instead of {self._action(a)}" for a in swapped.tolist()]
        more = [f"{swapped.size - _MOST_WORDS} more swaps"] if swapped.size > _MOST_WORDS else []
        return "; ".join(words[:_MOST_WORDS] + more)

    def _action(self, action: int) -> str:
        return f"action {action}" if self.action_names is None else self.action_names[action]

    def to_steps(self) -> Program:
        """Which action has the least expected cost, and its weight."""
        return linear(-self.losses.T), Top(), linear(self.weights)


def swap_witness(loss: Loss, swaps: Ints) -> SwapWitness:
    """The witness of some swaps of a loss."""
    costs = loss.matrix + loss.tilts[:, None]
    return SwapWitness(costs, swaps, loss.n_classes, loss.class_names, loss.action_names)


class ActionSums(NamedTuple):
    """Sums over the rows that choose each action, of shape (n_actions, k)."""

    outcomes: Float64s
    # Of outcomes with squared weights.
    squares: Float64s
    residuals: Float64s


def outcome_sums(actions: Ints, labels: Ints, weight: Float64s, shape: tuple[int, int]) -> Float64s:
    """The weight of the rows of each action and label."""
    cells = np.bincount(actions * shape[1] + labels, weights=weight, minlength=shape[0] * shape[1])
    return cells.astype(np.float64, copy=False).reshape(shape)


def action_sums(sample: Sample, loss: Loss) -> ActionSums:
    """What the search for swaps needs to know of a sample."""
    actions = loss.act(sample.proba)[0]
    weight = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    shape = loss.matrix.shape
    outcomes = outcome_sums(actions, sample.labels, weight, shape)
    residuals = outcomes.copy()
    for rows in row_blocks(sample.n_samples, sample.n_classes):
        chosen = (actions[rows] == np.arange(loss.n_actions)[:, None]) * weight[rows]
        residuals -= chosen @ sample.proba[rows]
    squares = outcome_sums(actions, sample.labels, weight * weight, shape)
    return ActionSums(outcomes, squares, residuals)


class Swaps(NamedTuple):
    """The action to take instead of each, and how much that gains, less its standard error, over all rows."""

    instead: Ints
    gain: float


def choose_swaps(costs: Float64s, sums: Float64s, squares: Float64s) -> Swaps:
    """For each action the one to take instead, if that saves more than chance would on these sums over rows.

    Parameters
    ----------
    costs : ndarray of shape (n_actions, k)
        The loss.
    sums, squares : ndarray of shape (n_actions, k)
        Sums over the rows of each action: of what the costs are multiplied by (outcomes for what is saved, residuals
        for a correlation), and of outcomes with squared weights.
    """
    own = np.einsum("aj,aj->a", sums, costs)
    saved = own[:, None] - sums @ costs.T
    # The variance of a sum of (L_a - L_b)[y], for all pairs at once; not centred, so rather too large.
    crossed = (squares * costs) @ costs.T
    spread = (
        np.einsum("aj,aj->a", squares, costs * costs)[:, None] - 2.0 * crossed + squares @ (costs * costs).T
    )
    score = saved - _ERRORS * np.sqrt(np.maximum(spread, 0.0))
    # What rounding leaves is no saving.
    least = 1e-9 * (np.abs(costs).max() or 1.0) * np.abs(sums).sum()
    instead: Ints = np.argmax(score, axis=1)
    best = score[np.arange(len(costs)), instead]
    kept = best <= least
    return Swaps(np.where(kept, np.arange(len(costs)), instead), float(best[~kept].sum()))


@dataclass(frozen=True, eq=False)
class SwapAuditor(Auditor):
    r"""Look for actions that turn out dearer than the predictions promise, for losses that are known.

    Parameters
    ----------
    losses : mapping of str to loss, or a single loss
        As for `audit`.

    Notes
    -----
    For a loss L, an action a and another one b, the weight function
    :math:`1[a(v) = a]\,(L_a - L_b) / \mathrm{width}` belongs to decision calibration: its correlation with the residual
    is what taking b instead of a saves, less what the predictions say it saves (which is at most 0). The witness has
    the best b for each action a, if its correlation exceeds its standard error; of several losses the one whose
    witness correlates most. Cost: a product of O(n k) for each action, and O(k) for each pair of actions.

    Examples
    --------
    >>> import polycal as pc
    >>> fit = pc.datasets.load_fashion("calibration")
    >>> loss = np.vstack([1 - np.eye(10), np.full(10, 0.1)])
    >>> witness = pc.SwapAuditor(loss).find_witness(fit.labels, fit.proba)
    >>> witness.correlation(pc.datasets.load_fashion("evaluation")) > 0
    True
    """

    losses: Any

    def find(self, sample: Sample) -> SwapWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        found = [
            self._best(sample, loss)
            for loss in make_losses(self.losses, sample.n_classes, sample.class_names)
        ]
        return max(found, key=lambda one: one[0])[1]

    @staticmethod
    def _best(sample: Sample, loss: Loss) -> tuple[float, SwapWitness]:
        sums = action_sums(sample, loss)
        swaps = choose_swaps(loss.matrix, sums.residuals, sums.squares)
        return swaps.gain / (loss.width or 1.0), swap_witness(loss, swaps.instead)
