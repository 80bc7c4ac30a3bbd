"""What every state can do: take in rows, merge with another, finish, be saved."""

from abc import ABC, abstractmethod
from copy import deepcopy
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Self

import numpy as np

from polycal import states
from polycal._typing import Float64s, Ints, Path
from polycal._validation import check_chunk, check_integer
from polycal.sample import Remainder, Sample
from polycal.storage.damage import readable
from polycal.storage.model import Arrays, save_object


class State(ABC):
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
    """

    family: ClassVar[str]
    # Whether the state holds so many rows that threads should take turns at one, instead of a copy for each.
    holds_rows: ClassVar[bool] = False
    families: ClassVar[dict[str, type["State"]]] = {}
    # What is said of the rest of lists, unless an update says otherwise.
    remainder: Remainder = "unknown"

    def __init__(self) -> None:
        self.n_samples = 0
        self.total_weight = 0.0
        self.n_classes: int | None = None
        self.class_names: tuple[str, ...] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "family" in cls.__dict__:
            State.families[cls.family] = cls

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
            The place of the chunk's first row in the whole data. States that draw rows at random draw by place,
            so that the draw does not depend on the chunks. By default the number of rows seen so far.
        remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
            For lists of classes, a SciPy sparse matrix: what is said of the rest, see `smooth_calibration_error`.

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
        )
        start = self.n_samples if first_row is None else check_integer(first_row, "first_row", minimum=0)
        if sample is not None:
            self.absorb(sample, np.arange(start, start + sample.n_samples))
        return self

    def absorb(self, sample: Sample, rows: Ints) -> None:
        """Take in a validated chunk; ``rows`` are the places of its rows in the whole data."""
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
        meta = {
            "family": self.family,
            "parameters": self.parameters(),
            "n_samples": self.n_samples,
            "total_weight": self.total_weight,
            "n_classes": self.n_classes,
            "class_names": self.class_names,
        }
        save_object(path, "state", meta, self.arrays())

    def resume(
        self, n_samples: int, total_weight: float, n_classes: int, class_names: tuple[str, ...] | None
    ) -> None:
        """Set what a saved state had seen."""
        self.n_samples, self.total_weight = n_samples, total_weight
        self.n_classes, self.class_names = n_classes, class_names

    @abstractmethod
    def finish(self) -> Any:
        """The result for all rows seen. The state is unchanged and may take in more."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What states must have in common to be merged: plain numbers and text."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Everything else that is saved."""

    @classmethod
    @abstractmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""

    @abstractmethod
    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        """Take in rows of the right classes."""

    @abstractmethod
    def _merge(self, other: Any) -> None:
        """Take in another state of the same parameters and classes."""

    def _open(self, n_classes: int) -> None:  # noqa: B027 - most states need nothing
        """Make room once the number of classes is known."""

    def _seen(self) -> int:
        """The number of classes, refusing to finish when there was no row of positive weight."""
        if self.n_classes is None or self.total_weight <= 0:
            raise ValueError("the state has seen no row of positive weight; update it first.")
        return self.n_classes

    def _agree(self, n_classes: int, class_names: tuple[str, ...] | None) -> None:
        """Refuse rows of other classes, or of the same in another order."""
        if self.n_classes not in {None, n_classes}:
            raise ValueError(f"the chunk has {n_classes} classes but those before had {self.n_classes}.")
        if self.class_names is not None:
            agree_names(self.class_names, class_names)
        elif class_names is not None:
            self.class_names = class_names
        if self.n_classes is None:
            self._open(n_classes)
            self.n_classes = n_classes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_samples={self.n_samples}, n_classes={self.n_classes})"


def agree_names(before: tuple[str, ...], now: tuple[str, ...] | None) -> None:
    """Refuse classes of other names, or in another order; a chunk need not name them."""
    if now is None or now == before:
        return
    if len(now) != len(before):
        raise ValueError(f"the chunk has {len(now)} classes but those before had {len(before)}.")
    place = next(i for i in range(len(now)) if now[i] != before[i])
    raise ValueError(
        f"class {place} of the chunk is {now[place]!r} but was {before[place]!r} before; give all chunks the same "
        "classes in the same order."
    )


def rebuild_state(meta: dict[str, Any], arrays: Arrays) -> State:
    """The state of a saved object."""
    for module in iter_modules(states.__path__):
        import_module(f"{states.__name__}.{module.name}")
    with readable("a state"):
        state = State.families[meta["family"]].rebuild(dict(meta["parameters"]), arrays)
        names = None if meta["class_names"] is None else tuple(map(str, meta["class_names"]))
        if meta["n_classes"] is None:
            # It has seen nothing, but may have been told the names.
            state.class_names = names
        else:
            state.resume(int(meta["n_samples"]), float(meta["total_weight"]), int(meta["n_classes"]), names)
        return state
