"""What acting on predictions costs: what was promised and what was paid, before and after a calibrator."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from polycal._text import printable
from polycal._typing import Float64s, Ints
from polycal._validation import check_level, check_same_classes, check_seed
from polycal.calibrators.base import Calibrator
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate
from polycal.measures.costs import Loss
from polycal.sample import Sample, refuse_lists, sums_at
from polycal.states.base import State
from polycal.states.tally import Tally
from polycal.storage.rules import Array, Part, Real, Whole, expect

# Of the alpha of what a calibrator changes: what the bound of the saving gets.
_SAVED = 0.8


@dataclass(frozen=True)
class MeanCost:
    """A mean over the rows, and an interval for the true one, in the unit of the loss.

    Attributes
    ----------
    value : float
        The mean of the rows.
    at_least, at_most : float
        The ends of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> loss = pc.make_loss(1 - np.eye(4), n_classes=4)
    >>> paid = pc.states.CostState(loss).update(made.labels, made.proba).finish().paid
    >>> paid.at_least < paid.value < paid.at_most
    True
    """

    value: float
    at_least: float
    at_most: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.at_least:.4g} to {self.at_most:.4g})"


@dataclass(frozen=True, eq=False)
class Saving(Certificate):
    """What is saved per row, in the unit of the loss, judged on rows that it was not chosen on.

    Attributes
    ----------
    estimate : float
        The mean saving of the rows.
    lower_bound : float
        Below the true saving with probability at least ``1 - alpha``.
    p_value : float
        Of the hypothesis that nothing is saved.
    alpha, n_samples, std_error
        As for `Certificate`.
    witness : SwapWitness or None
        The weight function of the swaps; None where predictions are repaired instead.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> loss = pc.make_loss([[0, 4], [1, 0]], n_classes=2)
    >>> state = pc.states.SavingState(loss, np.array([1, 1])).update([1] * 50, [[0.9, 0.1]] * 50)
    >>> saving = state.finish().saving
    >>> saving.estimate, saving.lower_bound > 3
    (4.0, True)
    """

    def __str__(self) -> str:
        what = "recalibrating" if self.witness is None else printable(self.witness.describe())
        bound = (
            f"saves at least {self.lower_bound:.4g}"
            if self.lower_bound > 0
            else "nothing is shown to be saved"
        )
        return f"{what}: {bound} (estimate {self.estimate:.4g} ± {self.std_error:.4g}, n = {self.n_samples})"


class CostSummary(NamedTuple):
    """What acting on the predictions of all rows was to cost, and what it cost."""

    promised: MeanCost
    paid: MeanCost
    excess: MeanCost
    # Of each action: its share of the rows, what it was promised to cost in them, and what it cost.
    by_action: Float64s


class LossState(State):
    """A state about one loss."""

    loss: Annotated[Loss, Part((Loss,))]

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        if not isinstance(loss, Loss):
            raise TypeError(f"loss must be a Loss, as make_loss makes it; got {type(loss).__name__}.")
        self.loss = loss

    def _open(self, n_classes: int) -> None:
        check_same_classes(self.loss.n_classes, n_classes, "the predictions have", "the loss")

    def _check_sums(self, n_classes: int) -> None:
        expect(n_classes == self.loss.n_classes, "the loss must be of the same classes")


class BoundState(LossState):
    """A state whose bounds are all right with probability 1 - alpha, at least."""

    alpha: Annotated[float, Real(low=0, high=1)]
    random_state: Annotated[int, Whole()]

    def __init__(self, loss: Loss, alpha: float, random_state: int) -> None:
        super().__init__(loss)
        self.alpha = check_level(alpha)
        self.random_state = check_seed(random_state)

    def interval(self, tally: Tally, share: float = 1.0) -> MeanCost:
        """The mean with its bounds, which fail with this share of alpha in all."""
        level, bets = self.alpha * share / 2.0, tally.bets(self.random_state)
        return MeanCost(tally.mean, bets.lower(level), bets.upper(level))

    def saving(self, tally: Tally, witness: Witness | None, share: float = 1.0) -> Saving:
        """The certificate of what is saved, whose bound fails with this share of alpha."""
        bets, level = tally.bets(self.random_state), self.alpha * share
        return Saving(
            estimate=tally.mean,
            lower_bound=bets.lower(level),
            p_value=bets.p_value(0.0),
            alpha=level,
            n_samples=self.n_samples,
            witness=witness,
            std_error=tally.std_error,
        )


class CostState(BoundState):
    """What acting on predictions is promised to cost, and what it costs.

    Parameters
    ----------
    loss : Loss
        What each action costs for each class.
    alpha : float, default 0.05
        The probability that any of the three intervals is wrong, at most.
    random_state : int, default 0
        Seed of the orders in which rows are bet on.

    Notes
    -----
    `finish` returns means with intervals by betting: of the expected cost of the actions chosen, of what they cost, and
    of the difference. Cost: one product of O(n k) for each action; memory: at most 2^18 values for each weight.

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.states import CostState
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> loss = pc.make_loss(1 - np.eye(10), n_classes=10)
    >>> summary = CostState(loss).update(example.labels, example.proba).finish()
    >>> summary.excess.at_least > 0
    True
    """

    family: ClassVar[str] = "costs"

    _promised: Annotated[Tally, Part((Tally,))]
    _paid: Annotated[Tally, Part((Tally,))]
    _excess: Annotated[Tally, Part((Tally,))]
    _by_action: Annotated[Float64s, Array("float64", "3 n_actions")]

    def __init__(self, loss: Loss, *, alpha: float = 0.05, random_state: int = 0) -> None:
        super().__init__(loss, alpha, random_state)
        low, high = float(loss.matrix.min()), float(loss.matrix.max())
        # The action chosen is expected to cost no more than the one whose worst case is best.
        self._promised = Tally(low, float(loss.matrix.max(axis=1).min()))
        self._paid = Tally(low, high)
        spread = float((loss.matrix.max(axis=1) - loss.matrix.min(axis=1)).max())
        self._excess = Tally(-spread, spread)
        self._by_action = np.zeros((3, loss.n_actions))

    def finish(self) -> CostSummary:
        """The costs of all rows."""
        self._seen()
        promised, paid, excess = (self.interval(tally, 1 / 3) for tally in self._tallies())
        weight, *sums = self._by_action
        per = np.maximum(weight, 1e-300)
        means = np.stack([weight / self.total_weight, *(total / per for total in sums)])
        return CostSummary(promised, paid, excess, means)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        refuse_lists(sample, "a loss")
        actions, promised = self.loss.act(sample.proba)
        paid = self.loss.paid(actions, sample.labels)
        counted = weight > 0
        for tally, values in (
            (self._promised, promised),
            (self._paid, paid),
            (self._excess, paid - promised),
        ):
            tally.add(values[counted], weight[counted])
        columns = (weight, weight * promised, weight * paid)
        self._by_action += [sums_at(actions, values, self.loss.n_actions) for values in columns]

    def _merge(self, other: "CostState") -> None:
        for mine, theirs in zip(self._tallies(), other._tallies(), strict=True):
            mine.merge(theirs)
        self._by_action += other._by_action

    def _tallies(self) -> tuple[Tally, ...]:
        return self._promised, self._paid, self._excess

    def _check_sums(self, n_classes: int) -> None:
        super()._check_sums(n_classes)
        expect(self._by_action.shape[1] == self.loss.n_actions, "there must be sums for each action")
        totals = [tally.sums[0] for tally in self._tallies()]
        expect(self._is_total([*totals, self._by_action[0].sum()]), "weights must add up to that of all rows")


class RecalibrationSummary(NamedTuple):
    """What acting on recalibrated predictions was to cost, what it cost, and what that saved."""

    promised: MeanCost
    paid: MeanCost
    saving: Saving


class RecalibrationState(BoundState):
    """What acting on recalibrated predictions costs, row by row beside acting on those that were given.

    Parameters
    ----------
    loss : Loss
        What each action costs for each class.
    calibrator : Calibrator
        Fitted on other rows.
    alpha : float, default 0.05
        The probability that the saving's bound or any of the intervals is wrong, at most; four fifths of it are
        the saving's.
    random_state : int, default 0
        Seed of the orders in which rows are bet on.

    Notes
    -----
    Definition: the saving is E( L[a(v), y] - L[a(c(v)), y] ) for a calibrator c, over the same rows. A calibrator that
    cannot be saved can be used, but the state cannot be saved with it.

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.states import RecalibrationState
    >>> fit, fresh = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    >>> loss = pc.make_loss(np.vstack([1 - np.eye(10), np.full(10, 0.1)]), n_classes=10)
    >>> calibrator = pc.TemperatureScaling().fit(fit.proba, fit.labels)
    >>> state = RecalibrationState(loss, calibrator).update(fresh.labels, fresh.proba)
    >>> state.finish().saving.lower_bound > 0
    True
    """

    family: ClassVar[str] = "recalibration"

    calibrator: Annotated[Calibrator, Part((Calibrator,))]
    _promised: Annotated[Tally, Part((Tally,))]
    _paid: Annotated[Tally, Part((Tally,))]
    _saved: Annotated[Tally, Part((Tally,))]

    def __init__(
        self, loss: Loss, calibrator: Calibrator, *, alpha: float = 0.05, random_state: int = 0
    ) -> None:
        super().__init__(loss, alpha, random_state)
        self.calibrator = calibrator
        low, high = float(loss.matrix.min()), float(loss.matrix.max())
        self._promised = Tally(low, float(loss.matrix.max(axis=1).min()))
        self._paid = Tally(low, high)
        # By how much two actions can differ for one class.
        spread = float((loss.matrix.max(axis=0) - loss.matrix.min(axis=0)).max())
        self._saved = Tally(-spread, spread)

    def finish(self) -> RecalibrationSummary:
        """The costs and the saving of all rows."""
        self._seen()
        promised, paid = (self.interval(tally, (1.0 - _SAVED) / 2) for tally in (self._promised, self._paid))
        return RecalibrationSummary(promised, paid, self.saving(self._saved, None, _SAVED))

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - row numbers do not matter
        refuse_lists(sample, "a loss")
        before, _ = self.loss.act(sample.proba)
        proba = self.calibrator._taking(from_logits=False).predict_proba(sample.proba)
        actions, promised = self.loss.act(proba)
        paid = self.loss.paid(actions, sample.labels)
        saved = self.loss.paid(before, sample.labels) - paid
        counted = weight > 0
        for tally, values in zip(self._tallies(), (promised, paid, saved), strict=True):
            tally.add(values[counted], weight[counted])

    def _merge(self, other: "RecalibrationState") -> None:
        for mine, theirs in zip(self._tallies(), other._tallies(), strict=True):
            mine.merge(theirs)

    def _tallies(self) -> tuple[Tally, ...]:
        return self._promised, self._paid, self._saved

    def _check_sums(self, n_classes: int) -> None:
        super()._check_sums(n_classes)
        totals = [tally.sums[0] for tally in self._tallies()]
        expect(self._is_total(totals), "weights must add up to that of all rows")

    def _plain(self, name: str) -> Any:
        if name != "calibrator":
            return super()._plain(name)
        try:
            return super()._plain(name)
        except TypeError:
            # It cannot be saved.
            return repr(self.calibrator)
