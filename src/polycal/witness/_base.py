"""What every witness can do: evaluate, correlate, describe itself, be saved."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._card import card, some
from polycal._typing import Float64s, Floats, Path
from polycal._validation import check_proba
from polycal.sample import Sample, row_blocks
from polycal.steps import Program, Step
from polycal.storage.model import save_object

State = dict[str, NDArray[Any]]


class Witness(ABC):
    """A function w from predictions to [-1, 1]^k whose correlation with the residual, E <y - v, w(v)>, is evidence.

    Call it on ``(m, k)`` probabilities to get its ``(m, k)`` values. Anybody can evaluate a witness on data
    it was not found on: that is what makes a finding checkable.

    Attributes
    ----------
    n_classes : int
        k, the number of classes.
    class_names : tuple of str, or None
        Names used by `describe`.
    """

    kind: ClassVar[str]
    families: ClassVar[dict[str, type["Witness"]]] = {}

    n_classes: int
    class_names: tuple[str, ...] | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            Witness.families[cls.kind] = cls

    @abstractmethod
    def evaluate(self, proba: Floats) -> Float64s:
        """Values at trusted ``(m, k)`` predictions: ``(m, k)``, in [-1, 1]."""

    @abstractmethod
    def describe(self) -> str:
        """What the witness looks at, in words and class names."""

    @abstractmethod
    def state(self) -> State:
        """The arrays that define the witness (without sizes and names)."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, n_classes: int, class_names: tuple[str, ...] | None) -> "Witness":
        """Rebuild the witness from `state`."""

    def to_steps(self) -> Program:
        """The same function as a program of elementary steps (see `polycal.steps`), to be put into calibrators.

        A witness that only Python can evaluate is one step, which can be neither saved nor exported.
        """
        return (Evaluate(self),)

    def __call__(self, y_proba: Any) -> Float64s:
        """Evaluate at ``(m, k)`` predictions, in blocks."""
        proba, _ = check_proba(y_proba)
        self._check_width(proba)
        out = np.empty(proba.shape)
        for rows in row_blocks(*proba.shape):
            out[rows] = self.evaluate(proba[rows])
        return out

    def correlations(self, sample: Sample) -> Float64s:
        """``<y - v, w(v)>`` of each row: in [-2, 2], with mean 0 for calibrated predictions."""
        self._check_classes(sample)
        out = np.empty(sample.n_samples)
        for rows in row_blocks(sample.n_samples, sample.n_classes):
            weight = self.evaluate(sample.proba[rows])
            hit = np.take_along_axis(weight, sample.labels[rows, None], axis=1)[:, 0]
            out[rows] = hit - np.einsum("ij,ij->i", weight, sample.proba[rows])
        return out

    def correlation(self, sample: Sample) -> float:
        """The weighted mean of `correlations`."""
        return float(np.average(self.correlations(sample), weights=sample.sample_weight))

    def save(self, path: Path) -> None:
        """Write the witness to one file, to be read back by `polycal.load`; no pickle is involved."""
        meta = {"family": self.kind, "n_classes": self.n_classes, "class_names": self.class_names}
        save_object(path, "witness", meta, self.state())

    def name(self, class_index: int) -> str:
        """The class's name, or its index as text."""
        return str(class_index) if self.class_names is None else self.class_names[class_index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    def _repr_html_(self) -> str:
        lines = [("looks at", self.describe()), ("family", self.kind), ("classes", f"{self.n_classes:,}")]
        if self.class_names is not None:
            lines.append(("names", some(self.class_names)))
        return card(type(self).__name__, lines)

    def _check_classes(self, sample: Sample) -> None:
        """Refuse another number of classes, and names that the witness knows in another place; others may be new."""
        self._check_width(sample.proba)
        place = {name: i for i, name in enumerate(self.class_names or ())}
        for i, name in enumerate(sample.class_names or ()):
            if place.get(name, i) != i:
                raise ValueError(
                    f"class {i} of the predictions is {name!r}, which was class {place[name]} where the witness was "
                    "found; give the classes in the same order."
                )

    def _check_width(self, proba: Floats) -> None:
        if proba.shape[1] != self.n_classes:
            raise ValueError(
                f"y_proba has {proba.shape[1]} classes but the witness was found on {self.n_classes}."
            )


@dataclass(frozen=True, eq=False)
class Evaluate(Step):
    """A step that asks a witness; it has no ``kind``, so it is neither saved nor exported."""

    witness: Witness

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        return self.witness.evaluate(rows)

    @property
    def title(self) -> str:
        """The family of the witness."""
        return type(self.witness).__name__
