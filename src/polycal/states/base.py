"""What every state can do: take in rows, merge with another, finish, be saved."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import deepcopy
from inspect import signature
from numbers import Integral
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Ints, Path
from polycal._validation import agree_names, check_chunk, check_integer, check_same_classes
from polycal.sample import Remainder, Sample
from polycal.storage.model import digest
from polycal.storage.rules import ClassNames, Real, Whole, expect
from polycal.storage.saved import Saved, packed, save


class State(Saved, ABC):
    """What must be remembered of the rows seen so far to finish a computation over all rows.

    States add up: rows may come in any chunks, on any machine, on any day. However they are cut, updating and
    merging give the same as one update with all rows, to rounding.

    Attributes
    ----------
    n_samples : int
        Rows seen.
    total_weight : float
        Sum of their weights; without weights the number of rows.
    n_classes : int or None
        Number of classes; None until rows are seen.
    class_names : tuple of str, or None
        Names of the classes, if any chunk had them.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> state = pc.states.BinnedState(4)
    >>> isinstance(state, pc.states.State)
    True
    >>> for rows in (slice(400), slice(400, 800)):
    ...     _ = state.update(made.labels[rows], made.proba[rows])
    >>> state.n_samples
    800
    """

    role: ClassVar[str] = "state"
    homes: ClassVar[dict[str, str]] = {
        "binned": "polycal.states.sums",
        "certificate": "polycal.states.certificate",
        "classes": "polycal.states.questions",
        "costs": "polycal.states.costs",
        "depth": "polycal.states.depth",
        "kernel": "polycal.states.kernel",
        "question": "polycal.states.questions",
        "reading": "polycal.states.certificate",
        "recalibration": "polycal.states.costs",
        "savings": "polycal.states.swaps",
        "scores": "polycal.states.sums",
        "sketch": "polycal.states.rows",
        "slice": "polycal.states.slices",
        "swaps": "polycal.states.swaps",
        "truncated": "polycal.states.lists",
        "truncated-kernel": "polycal.states.lists",
    }
    # Whether the state holds so many rows that threads should take turns at one, instead of a copy for each.
    holds_rows: ClassVar[bool] = False
    # What is said of the rest of lists, unless an update says otherwise.
    remainder: Remainder = "unknown"

    n_classes: Annotated[int | None, Whole(low=2, optional=True)]
    class_names: Annotated[tuple[str, ...] | None, ClassNames()]
    n_samples: Annotated[int, Whole()]
    total_weight: Annotated[float, Real(low=0)]

    def __init__(self) -> None:
        self.n_samples = 0
        self.total_weight = 0.0
        self.n_classes = None
        self.class_names = None
        self._digests: dict[str, str] = {}

    def update(
        self,
        y_true: Any,
        y_proba: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        from_logits: bool = False,
        first_row: int | None = None,
        remainder: Remainder | None = None,
        features: Any = None,
    ) -> Self:
        """Take in a chunk of rows; a chunk without rows changes nothing.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Class indices, or class names when these are known.
        y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predicted probabilities. Every chunk must have the same classes in the same order.
        sample_weight, class_names, from_logits
            As for `smooth_calibration_error`. Chunks without weights count as weight 1.
        first_row : int, optional
            The number of the chunk's first row in the whole data. States that draw rows at random draw by row number,
            so that the draw does not depend on the chunks. By default the number of rows seen so far.
        remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
            For lists of classes, a SciPy sparse matrix: what is said of the rest, see `smooth_calibration_error`.
        features : data frame, mapping or array of shape (n_samples, n_features), optional
            What else is known of the rows, for states that look at it or keep it: see `audit`.

        Returns
        -------
        State
            The same object.
        """
        sample = check_chunk(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            class_names=class_names,
            from_logits=from_logits,
            remainder=self.remainder if remainder is None else remainder,
            features=features,
        )
        start = self.n_samples if first_row is None else check_integer(first_row, "first_row", minimum=0)
        if sample is not None:
            self.absorb(sample, np.arange(start, start + sample.n_samples))
        return self

    def absorb(self, sample: Sample, rows: Ints) -> None:
        """Take in a validated chunk; ``rows`` are the numbers of its rows in the whole data."""
        if sample.n_samples == 0:
            return
        self._agree(sample.n_classes, sample.class_names)
        weight = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
        self._add(sample, weight, rows)
        self.n_samples += sample.n_samples
        self.total_weight += float(weight.sum())

    def merge(self, other: "State") -> Self:
        """Take in all that another state has seen. The other state is left as it is.

        Parameters
        ----------
        other : State
            A state of the same kind with the same parameters, that saw other rows.

        Returns
        -------
        State
            The same object.
        """
        if type(other) is not type(self):
            raise TypeError(f"a {type(self).__name__} cannot be merged with a {type(other).__name__}.")
        if other.n_classes is None:
            return self
        # What refuses to merge stays as it was; names of classes become positions when the classes are known.
        opened = self.copy() if self.n_classes is None else self
        opened._agree(other.n_classes, other.class_names)
        if other.parameters() != opened.parameters():
            raise ValueError(
                f"states with different parameters cannot be merged: {self.parameters()} and {other.parameters()}."
            )
        self._agree(other.n_classes, other.class_names)
        self._merge(other)
        self.n_samples += other.n_samples
        self.total_weight += other.total_weight
        return self

    def copy(self) -> Self:
        """A state that can go its own way."""
        return deepcopy(self)

    def save(self, path: Path) -> None:
        """Write the state to one file, to be read back by `polycal.load`; no pickle is involved."""
        save(self, path)

    def parameters(self) -> dict[str, Any]:
        """What states must have in common to be merged: what they were made with, in plain numbers and text."""
        given = _given(type(self)) - {"class_names"}
        return {name: self._plain(name) for name in self._rules if name in given}

    @abstractmethod
    def finish(self) -> Any:
        """The result for all rows seen. The state is unchanged and may take in more."""

    @abstractmethod
    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        """Take in rows of the right classes."""

    @abstractmethod
    def _merge(self, other: Any) -> None:
        """Take in another state of the same parameters and classes."""

    def _open(self, n_classes: int) -> None:
        """Make room once the number of classes is known."""

    def _plain(self, name: str) -> Any:
        """A parameter, or the checksum of one that is an array or made of arrays."""
        value = getattr(self, name)
        if not isinstance(value, Saved | np.ndarray):
            return value
        if name not in self._digests:
            self._digests[name] = _digest(value)
        return self._digests[name]

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        given = _given(cls)
        state = cls(**{name: value for name, value in values.items() if name in given})
        state.class_names = values["class_names"]
        if values["n_classes"] is None:
            # It has seen nothing, but may have been told the names.
            return state
        for name in cls._rules.keys() - given:
            setattr(state, name, values[name.lstrip("_")])
        return state

    def _check(self) -> None:
        super()._check()
        expect(self.n_classes is not None or self.n_samples == 0, "rows must be of some number of classes")
        if self.n_classes is not None:
            self._check_sums(self.n_classes)

    def _check_sums(self, n_classes: int) -> None:
        """Refuse sums that no rows of so many classes have."""

    def _is_total(self, weight: Any) -> bool:
        """Whether the sum of some weights is that of all rows, to rounding."""
        return bool(np.allclose(weight, self.total_weight, rtol=1e-6))

    def _seen(self) -> int:
        """The number of classes, refusing to finish when there was no row of positive weight."""
        if self.n_classes is None or self.total_weight <= 0:
            raise ValueError("the state has seen no row of positive weight; update it first.")
        return self.n_classes

    def _agree(self, n_classes: int, class_names: tuple[str, ...] | None) -> None:
        """Refuse rows of other classes, or of the same in another order."""
        if self.n_classes is not None:
            check_same_classes(n_classes, self.n_classes, "those before had", "the chunk")
        if self.class_names is not None:
            agree_names(self.class_names, class_names)
        elif class_names is not None:
            self.class_names = class_names
        if self.n_classes is None:
            self._open(n_classes)
            self.n_classes = n_classes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_samples={self.n_samples}, n_classes={self.n_classes})"


def plain_set(classes: Any) -> Any:
    """A set of classes as a list of names and Python's numbers, to be saved and compared; judged once rows are seen."""
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        return classes
    return [int(member) if isinstance(member, Integral) else member for member in classes]


def _given(cls: type[State]) -> set[str]:
    """The names of what a state is made with."""
    return set(signature(cls).parameters)


def _digest(value: Saved | NDArray[Any]) -> str:
    """A checksum of a parameter."""
    tree, arrays = ({}, {"": value}) if isinstance(value, np.ndarray) else packed(value)
    return digest({"tree": np.array(repr(tree)), **arrays})
