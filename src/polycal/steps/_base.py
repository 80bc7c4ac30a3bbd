"""What a step is, and steps made of other steps."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Float64s
from polycal.sample import row_blocks
from polycal.storage.rules import Real, Rule, Sizes
from polycal.storage.saved import Checked


class Step(Checked, ABC):
    """A function of rows: ``(m, a)`` float64 in, ``(m, b)`` float64 out. The input is never changed.

    A step without ``family`` is neither saved nor exported.
    """

    role: ClassVar[str] = "step"

    @abstractmethod
    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""

    @property
    def title(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def _saved_values(self) -> dict[str, Any]:
        if not hasattr(self, "family"):
            raise TypeError(
                f"a {self.title} cannot be written without pickle; save the calibrator with joblib, "
                "or use one made of polycal's own steps."
            )
        return super()._saved_values()


Program = tuple[Step, ...]


class Branches(Rule):
    """At least one program."""

    def check(self, value: Any, name: str, sizes: Sizes) -> None:  # noqa: ARG002 - programs have none
        """Refuse any other value, in one line."""
        if not isinstance(value, tuple) or not value or not all(map(is_program, value)):
            raise TypeError(f"{name} must be programs of steps.")


def is_program(value: Any) -> bool:
    """Whether it is a tuple of steps."""
    return isinstance(value, tuple) and all(isinstance(step, Step) for step in value)


def run(steps: Iterable[Step], rows: Float64s) -> Float64s:
    """Apply the steps in order."""
    for step in steps:
        rows = step(rows)
    return rows


@dataclass(frozen=True, eq=False)
class Sum(Step):
    """The sum of what several programs make of the same rows; the empty program is the rows themselves.

    The first branch is as wide as any other; branches of one column are added to all of its columns.
    """

    branches: Annotated[tuple[Program, ...], Branches()]
    family: ClassVar[str] = "sum"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        total = run(self.branches[0], rows)
        total = total.copy() if total is rows else total
        for branch in self.branches[1:]:
            total += run(branch, rows)
        return total


@dataclass(frozen=True, eq=False)
class Product(Step):
    """The product of what several programs make of the same rows; the empty program is the rows themselves."""

    branches: Annotated[tuple[Program, ...], Branches()]
    family: ClassVar[str] = "product"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        total = run(self.branches[0], rows)
        for branch in self.branches[1:]:
            total = total * run(branch, rows)
        return total


@dataclass(frozen=True, eq=False)
class InBlocks(Step):
    """One program, applied to a few rows at a time because it makes wide arrays on its way.

    Attributes
    ----------
    branches : tuple of one program
    width : float
        The number of columns that it holds at a time: of its widest array, or of several.
    """

    branches: Annotated[tuple[Program, ...], Branches()]
    width: Annotated[float, Real(low=1)]
    family: ClassVar[str] = "in-blocks"

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        blocks = list(row_blocks(rows.shape[0], int(self.width))) or [slice(0, 0)]
        return np.concatenate([run(self.branches[0], rows[block]) for block in blocks])
