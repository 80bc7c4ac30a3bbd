"""What acting on the predictions costs, for losses that the user gives: promised, paid, and what could be saved."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from polycal.auditing.shares import COST_SHARES, UNTRIED_COST_SHARES
from polycal.calibrators.base import Calibrator
from polycal.measures.costs import Loss
from polycal.sample import Sample
from polycal.states.costs import CostState, MeanCost, RecalibrationState, Saving
from polycal.states.swaps import SavingState, SwapState


@dataclass(frozen=True)
class ActionCost:
    """One action: how often it looked best, what it was promised to cost there, and what it cost.

    Attributes
    ----------
    action : str
        Its name.
    share : float
        The share of the rows in which it was chosen.
    promised, paid : float
        Means over these rows; 0 if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> cost = pc.audit(made.labels, made.proba, losses={"mistake": 1 - np.eye(4)}, auditors={}).costs[0]
    >>> one = cost.by_action[0]
    >>> one.action, one.promised < one.paid
    ('0', True)
    """

    action: str
    share: float
    promised: float
    paid: float


@dataclass(frozen=True)
class Swap:
    """One action to take instead of another, chosen on one half of the rows; numbers are of the other half.

    Attributes
    ----------
    action, instead : str
        Wherever the first looks best, take the second.
    share : float
        The share of the rows in which the first looks best.
    saving : float
        What the swap saves in these rows, on average: an estimate.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> losses = {"tag": {str(i): (1 - np.eye(4))[i].tolist() for i in range(4)} | {"ask": 0.3}}
    >>> cost = pc.audit(made.labels, made.proba, losses=losses, auditors={}).costs[0]
    >>> all(swap.instead == "ask" for swap in cost.swaps)
    True
    """

    action: str
    instead: str
    share: float
    saving: float


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """What acting costs after a calibrator.

    Attributes
    ----------
    promised, paid : MeanCost
        As before the calibrator.
    saving : Saving
        What acting on the calibrator's output instead of the input saves, row by row: a certificate, by all rows.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> calibrator = pc.TemperatureScaling().fit(made.proba[:400], made.labels[:400])
    >>> losses = {"tag": [*(1 - np.eye(4)), [0.3] * 4]}
    >>> new = pc.audit(made.labels[400:], made.proba[400:], losses=losses, calibrator=calibrator, auditors={})
    >>> after = new.costs[0].recalibrated
    >>> after.paid.value < new.costs[0].paid.value
    True
    """

    promised: MeanCost
    paid: MeanCost
    saving: Saving

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        return {
            "promised": asdict(self.promised),
            "paid": asdict(self.paid),
            "saving": saving_dict(self.saving),
        }


@dataclass(frozen=True, eq=False)
class Cost:
    """What acting on the predictions costs for one loss, per row, in the loss's own unit.

    Attributes
    ----------
    name : str
        The name of the loss.
    actions : tuple of str
        The actions by name; by index if they have none.
    promised : MeanCost
        What the predictions say that acting on them costs, with an interval for the true mean, by all rows.
    paid : MeanCost
        What it cost.
    excess : MeanCost
        What was paid beyond what was promised. If the interval lies above 0, the promise is shown to be broken.
    by_action : tuple of ActionCost
        The same for each action, without intervals.
    swaps : tuple of Swap
        Which action to take instead of which; empty if no swap saved more than its standard error on the rows that
        were searched.
    saving : Saving or None
        What all swaps together save: a certificate from the rows that were not searched. None if there were too few.
    recalibrated : Recalibrated or None
        What acting costs after the calibrator, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> cost = pc.audit(made.labels, made.proba, losses={"mistake": 1 - np.eye(4)}, auditors={}).costs[0]
    >>> cost.promised.value < cost.paid.value
    True
    """

    name: str
    actions: tuple[str, ...]
    promised: MeanCost
    paid: MeanCost
    excess: MeanCost
    by_action: tuple[ActionCost, ...]
    swaps: tuple[Swap, ...] = ()
    saving: Saving | None = None
    recalibrated: Recalibrated | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries."""
        return {
            "name": self.name,
            "actions": list(self.actions),
            "promised": asdict(self.promised),
            "paid": asdict(self.paid),
            "excess": asdict(self.excess),
            "by_action": [asdict(action) for action in self.by_action],
            "swaps": [asdict(swap) for swap in self.swaps],
            "saving": None if self.saving is None else saving_dict(self.saving),
            "recalibrated": None if self.recalibrated is None else self.recalibrated.to_dict(),
        }


def saving_dict(saving: Saving) -> dict[str, Any]:
    """A certificate of a saving as plain numbers."""
    return {
        "estimate": saving.estimate,
        "lower_bound": saving.lower_bound,
        "p_value": saving.p_value,
        "std_error": saving.std_error,
        "n_samples": saving.n_samples,
    }


class CostLevels(NamedTuple):
    """What the statements about each loss may fail with, so that all of them hold together."""

    costs: float
    saving: float
    recalibrated: float

    @classmethod
    def of(cls, alpha: float, n_losses: int, *, tried: bool) -> "CostLevels":
        """The share of each, of what all costs of an audit may fail with; ``tried``: there is a calibrator."""
        shares = COST_SHARES if tried else UNTRIED_COST_SHARES
        return cls(*(share * alpha / max(n_losses, 1) for share in shares))


def cost_states(losses: Sequence[Loss], levels: CostLevels, seed: int) -> dict[str, CostState]:
    """What sees all rows."""
    return {loss.name: CostState(loss, alpha=levels.costs, random_state=seed) for loss in losses}


def swap_states(losses: Sequence[Loss]) -> dict[str, SwapState]:
    """What sees the rows that are searched."""
    return {loss.name: SwapState(loss) for loss in losses}


def saving_states(found: Mapping[str, SwapState], levels: CostLevels, seed: int) -> dict[str, SavingState]:
    """What sees the rows that judge, once swaps are found."""
    return {
        name: SavingState(state.loss, state.finish(), alpha=levels.saving, random_state=seed)
        for name, state in found.items()
    }


def recalibration_states(
    losses: Sequence[Loss], calibrator: Calibrator | None, levels: CostLevels, seed: int
) -> dict[str, RecalibrationState]:
    """What sees all rows, if there is a calibrator to judge."""
    if calibrator is None:
        return {}
    level = levels.recalibrated
    return {
        loss.name: RecalibrationState(loss, calibrator, alpha=level, random_state=seed) for loss in losses
    }


def costs_of(
    costs: Mapping[str, CostState],
    savings: Mapping[str, SavingState],
    recalibrations: Mapping[str, RecalibrationState],
) -> tuple[Cost, ...]:
    """What the states say, loss by loss."""
    return tuple(_cost(state, savings.get(name), recalibrations.get(name)) for name, state in costs.items())


def held_costs(
    sample: Sample,
    halves: tuple[Any, Any] | None,
    losses: Sequence[Loss],
    calibrator: Calibrator | None,
    alpha: float,
    seed: int,
) -> tuple[Cost, ...]:
    """The costs of rows that are held: the same states, and all rows are one chunk."""
    levels = CostLevels.of(alpha, len(losses), tried=calibrator is not None)
    costs = cost_states(losses, levels, seed)
    recalibrations = recalibration_states(losses, calibrator, levels, seed)
    _show(sample, costs, recalibrations)
    savings: dict[str, SavingState] = {}
    if halves is not None:
        searched, judging = (sample.take(rows) for rows in halves)
        found = swap_states(losses)
        _show(searched, found)
        savings = saving_states(found, levels, seed)
        _show(judging, savings)
    return costs_of(costs, savings, recalibrations)


def _show(sample: Sample, *states: Mapping[str, Any]) -> None:
    numbers = np.arange(sample.n_samples)
    for one in states:
        for state in one.values():
            state.absorb(sample, numbers)


def _cost(state: CostState, saving: SavingState | None, recalibration: RecalibrationState | None) -> Cost:
    summary, actions = state.finish(), state.loss.actions
    by_action = [
        ActionCost(action, *(float(number) for number in numbers))
        for action, numbers in zip(actions, summary.by_action.T, strict=True)
    ]
    swaps: tuple[Swap, ...] = ()
    certificate = None
    if saving is not None:
        certificate, of_action = saving.finish()
        swaps = tuple(
            Swap(actions[a], actions[int(b)], float(of_action[0, a]), float(of_action[1, a]))
            for a, b in enumerate(saving.swaps)
            if a != b
        )
    return Cost(
        state.loss.name,
        actions,
        summary.promised,
        summary.paid,
        summary.excess,
        tuple(by_action),
        swaps,
        certificate,
        None if recalibration is None else Recalibrated(*recalibration.finish()),
    )
