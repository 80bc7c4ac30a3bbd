"""What other states see of a slice: the rows that their features name."""

from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.families.slices import Condition, slice_rows
from polycal.sample import Sample
from polycal.states.base import State
from polycal.states.cells import Weights
from polycal.storage.rules import Array, Part, Whole, expect


class SliceState(State):
    """Other states on the rows of a slice.

    Parameters
    ----------
    conditions : tuple of Condition
        What the rows have in common.
    states : tuple of State
        What is to be known of these rows; they have seen nothing.
    outside : int, default 0
        1: the rows outside of the slice instead.

    Notes
    -----
    `finish` returns what the other states finish with, or None if the slice has no row of positive weight. Rows need
    features. ``n_samples`` and ``total_weight`` are of all rows, `weights` of those inside. Cost and memory are
    those of the states.

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.families.slices import Condition
    >>> data = pc.datasets.make_slices(1000)
    >>> state = pc.states.SliceState((Condition("device", "category", "tablet"),), (pc.ScoreState(),))
    >>> scores, = state.update(data.labels, data.proba, features=data.features).finish()
    >>> sorted(scores) == ["accuracy", "brier_score", "log_loss"]
    True
    """

    family: ClassVar[str] = "slice"

    conditions: Annotated[tuple[Condition, ...], Part((Condition,), many="n_conditions")]
    states: Annotated[tuple[State, ...], Part((State,), many="n_states")]
    outside: Annotated[int, Whole()]
    _weights: Annotated[Float64s, Array("float64", "4", low=0)]

    def __init__(
        self, conditions: tuple[Condition, ...], states: tuple[State, ...], *, outside: int = 0
    ) -> None:
        super().__init__()
        self.conditions, self.states, self.outside = tuple(conditions), tuple(states), int(outside)
        self._weights = np.array(Weights(), dtype=np.float64)

    @property
    def weights(self) -> Weights:
        """Of the rows inside."""
        n_rows, *others = self._weights.tolist()
        return Weights(int(n_rows), *others)

    def finish(self) -> tuple[Any, ...] | None:
        """What each state finishes with; None if there is no row."""
        self._seen()
        return None if self.weights.total <= 0 else tuple(state.finish() for state in self.states)

    def parameters(self) -> dict[str, Any]:
        """The slice, and the parameters of all states."""
        others = [(type(state).__name__, state.parameters()) for state in self.states]
        return {"conditions": self.conditions, "outside": self.outside, "states": others}

    def _check_sums(self, n_classes: int) -> None:
        weights = self.weights
        expect(weights.n_rows <= self.n_samples, "a slice must not have more rows than there are")
        expect(weights.total <= self.total_weight * (1.0 + 1e-6), "weights must be at most those of all rows")
        known = {state.n_classes for state in self.states} - {None}
        expect(known <= {n_classes}, "all states must be of the same classes")

    def _open(self, n_classes: int) -> None:
        for state in self.states:
            state._agree(n_classes, self.class_names)

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        inside = slice_rows(self.conditions, sample.features) != bool(self.outside)
        self._weights = np.array(self.weights.merged(Weights.of(weight[inside])), dtype=np.float64)
        part = sample.take(inside)
        for state in self.states:
            state.absorb(part, rows[inside])

    def _merge(self, other: "SliceState") -> None:
        self._weights = np.array(self.weights.merged(other.weights), dtype=np.float64)
        for own, theirs in zip(self.states, other.states, strict=True):
            own.merge(theirs)
