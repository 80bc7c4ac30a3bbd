"""What a monitor remembers of its past: sums of questions at some earlier rows, and the evidence over time.

Both are kept at multiples of a stride, which doubles when there are too many: memory stays the same however long the
stream is, and what is kept does not depend on how rows are batched.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Ints
from polycal.storage.rules import Array, Whole, expect
from polycal.storage.saved import Saved

# Sums of questions: rows between them at first, and the most that are kept.
FIRST_STRIDE, _MOST_MARKS = 64, 32
_MOST_POINTS = 512


@dataclass(eq=False)
class Marks(Saved):
    """Sums of questions after some numbers of rows, the first of which is 0.

    Attributes
    ----------
    stride : int
        Rows from one mark to the next.
    rows : ndarray of int64, shape (n_marks,)
        Rows seen until then.
    count, sums, bins : ndarray of shape (n_marks, ...)
        The sums of `Questions`.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "marks"

    stride: Annotated[int, Whole(low=1)]
    rows: Annotated[Ints, Array("int64", "n_marks", low=0, rises=True)]
    count: Annotated[Float64s, Array("float64", "n_marks n_questions", low=0)]
    sums: Annotated[Float64s, Array("float64", "n_marks n_questions 3 2")]
    bins: Annotated[Float64s, Array("float64", "n_marks n_questions 10 3", low=0)]

    @classmethod
    def fresh(cls, count: Float64s, sums: Float64s, bins: Float64s) -> "Marks":
        """The mark before the first row."""
        return cls(
            FIRST_STRIDE,
            np.zeros(1, dtype=np.int64),
            count[None].copy(),
            sums[None].copy(),
            bins[None].copy(),
        )

    def _check(self) -> None:
        super()._check()
        expect(self.rows.size > 0 and self.rows[0] == 0, "the first mark must be at row 0")

    def next_row(self, n_rows: int) -> int:
        """The number of rows at which the next mark is made."""
        return (n_rows // self.stride + 1) * self.stride

    def set(self, n_rows: int, count: Float64s, sums: Float64s, bins: Float64s) -> None:
        """Make a mark, if it is time for one and it is not made yet."""
        if n_rows % self.stride or n_rows == self.rows[-1]:
            return
        self._put(np.append(self.rows, n_rows), *map(_appended, self._arrays(), (count, sums, bins)))
        if self.rows.size > _MOST_MARKS:
            self.stride *= 2
            stays = self.rows % self.stride == 0
            self._put(self.rows[stays], *(array[stays] for array in self._arrays()))

    def with_room(self) -> "Marks":
        """The same with one more question, which nothing was known of."""
        grown = (
            np.concatenate([array, np.zeros_like(array[:, :1])], axis=1)
            if array.shape[1]
            else np.zeros((array.shape[0], 1, *array.shape[2:]))
            for array in self._arrays()
        )
        return Marks(self.stride, self.rows, *grown)

    def _arrays(self) -> tuple[Float64s, Float64s, Float64s]:
        return self.count, self.sums, self.bins

    def _put(self, rows: Ints, count: Float64s, sums: Float64s, bins: Float64s) -> None:
        self.rows, self.count, self.sums, self.bins = rows, count, sums, bins


@dataclass(eq=False)
class History(Saved):
    """Evidence after some of the rows.

    Attributes
    ----------
    stride : int
        Rows from one point to the next.
    rows : ndarray of int64
        Rows seen until then.
    evidence : ndarray of float64
        The logarithm of the e-value, to base 10.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "history"

    stride: Annotated[int, Whole(low=1)]
    rows: Annotated[Ints, Array("int64", "n_points", low=0, rises=True)]
    evidence: Annotated[Float64s, Array("float64", "n_points")]

    @classmethod
    def fresh(cls) -> "History":
        """Nothing seen yet."""
        return cls(1, np.empty(0, dtype=np.int64), np.empty(0))

    def add(self, rows: Ints, evidence: Float64s) -> None:
        """Take in the evidence after each of some rows, of which the numbers are given as rows seen until then."""
        while True:
            stays = rows % self.stride == 0
            if self.rows.size + np.count_nonzero(stays) <= _MOST_POINTS:
                break
            self.stride *= 2
            old = self.rows % self.stride == 0
            self.rows, self.evidence = self.rows[old], self.evidence[old]
        self.rows = np.append(self.rows, rows[stays])
        self.evidence = np.append(self.evidence, evidence[stays])


def _appended(array: NDArray[np.float64], row: NDArray[np.float64]) -> Float64s:
    return np.concatenate([array, row[None]])
