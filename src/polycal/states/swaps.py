"""Swaps of actions: searched for on some rows, as counts of what each action met; judged on others."""

from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.families.swap import choose_swaps, outcome_sums, swap_witness
from polycal.measures.costs import Loss
from polycal.sample import Sample, refuse_lists, sums_at
from polycal.states.costs import BoundState, LossState, Saving
from polycal.states.tally import Tally
from polycal.storage.rules import Array, Part, expect


class SwapState(LossState):
    """Search for the swaps of actions that would have saved most: how often each action met each label.

    Parameters
    ----------
    loss : Loss
        What each action costs for each class.

    Notes
    -----
    `finish` returns the action to take instead of each: itself, if none saves more than its standard error. Memory: two
    numbers for each action and class.

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.states import SwapState
    >>> loss = pc.make_loss([[0, 4], [1, 0]], n_classes=2)
    >>> SwapState(loss).update([1] * 20, [[0.9, 0.1]] * 20).finish()
    array([1, 1])
    """

    family: ClassVar[str] = "swaps"

    _outcomes: Annotated[Float64s, Array("float64", "2 n_actions n_classes", low=0)]

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss)
        # With weights, and with their squares.
        self._outcomes = np.zeros((2, *loss.matrix.shape))

    def finish(self) -> Ints:
        """The action to take instead of each."""
        self._seen()
        return choose_swaps(self.loss.matrix, *self._outcomes).instead

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        refuse_lists(sample, "a loss")
        actions, _ = self.loss.act(sample.proba)
        shape = self.loss.matrix.shape
        self._outcomes += [outcome_sums(actions, sample.labels, u, shape) for u in (weight, weight * weight)]

    def _merge(self, other: "SwapState") -> None:
        self._outcomes += other._outcomes

    def _check_sums(self, n_classes: int) -> None:
        super()._check_sums(n_classes)
        expect(self._outcomes.shape[1] == self.loss.n_actions, "there must be sums for each action")
        expect(self._is_total(self._outcomes[0].sum()), "weights must add up to that of all rows")


class SwapSummary(NamedTuple):
    """What swaps saved, and of each action the share of the rows and the mean saving in them."""

    saving: Saving
    by_action: Float64s


class SavingState(BoundState):
    """Judge swaps of actions on any number of rows that they were not found on.

    Parameters
    ----------
    loss : Loss
        What each action costs for each class.
    swaps : ndarray of int64, shape (n_actions,)
        The action to take instead of each.
    alpha : float, default 0.05
        The probability that the lower bound is wrong, at most.
    random_state : int, default 0
        Seed of the orders in which rows are bet on.

    Notes
    -----
    Definition: the saving of swaps s is E( L[a(v), y] - L[s(a(v)), y] ). Under calibrated predictions no swap saves.
    `finish` returns a certificate in the unit of the loss, by betting, as `CertificateState` does.

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.states import SavingState
    >>> loss = pc.make_loss([[0, 4], [1, 0]], n_classes=2)
    >>> state = SavingState(loss, np.array([1, 1])).update([1] * 50, [[0.9, 0.1]] * 50)
    >>> state.finish().saving.lower_bound > 3
    True
    """

    family: ClassVar[str] = "savings"

    swaps: Annotated[Ints, Array("int64", "n_actions", low=0)]
    _tally: Annotated[Tally, Part((Tally,))]
    _by_action: Annotated[Float64s, Array("float64", "2 n_actions")]

    def __init__(self, loss: Loss, swaps: Ints, *, alpha: float = 0.05, random_state: int = 0) -> None:
        super().__init__(loss, alpha, random_state)
        self.swaps = np.asarray(swaps, dtype=np.int64)
        if (
            self.swaps.shape != (loss.n_actions,)
            or not ((self.swaps >= 0) & (self.swaps < loss.n_actions)).all()
        ):
            raise ValueError(
                f"swaps must name one of {loss.n_actions} actions for each of them; got {swaps!r}."
            )
        saved = loss.matrix - loss.matrix[self.swaps]
        self._tally = Tally(float(saved.min()), float(saved.max()))
        self._by_action = np.zeros((2, loss.n_actions))

    def finish(self) -> SwapSummary:
        """The certificate of all rows."""
        self._seen()
        weight, saved = self._by_action
        shares = np.stack([weight / self.total_weight, saved / np.maximum(weight, 1e-300)])
        return SwapSummary(self.saving(self._tally, swap_witness(self.loss, self.swaps)), shares)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        refuse_lists(sample, "a loss")
        actions, _ = self.loss.act(sample.proba)
        saved = self.loss.paid(actions, sample.labels) - self.loss.paid(self.swaps[actions], sample.labels)
        counted = weight > 0
        self._tally.add(saved[counted], weight[counted])
        self._by_action += [
            sums_at(actions, values, self.loss.n_actions) for values in (weight, weight * saved)
        ]

    def _merge(self, other: "SavingState") -> None:
        self._tally.merge(other._tally)
        self._by_action += other._by_action

    def _check_sums(self, n_classes: int) -> None:
        super()._check_sums(n_classes)
        expect(self._by_action.shape[1] == self.loss.n_actions, "there must be sums for each action")
        totals = [self._tally.sums[0], self._by_action[0].sum()]
        expect(self._is_total(totals), "weights must add up to that of all rows")
