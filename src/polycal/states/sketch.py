"""A random sample of fixed size, drawn as the rows go by."""

from typing import Any, ClassVar, Self

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer
from polycal.sample import Sample
from polycal.states._base import State
from polycal.states._bottom import BottomRows, KeyedRows
from polycal.states._keys import row_keys
from polycal.storage.model import Arrays

_PURPOSE = 1


class SketchState(State):
    """A random sample of fixed size, drawn without replacement as the rows go by.

    Parameters
    ----------
    size : int
        Number of rows to keep.
    random_state : int, default 0
        Seed of the draw.

    Notes
    -----
    Every row gets a random key that depends on its place in the data and the seed, and the rows with the smallest
    keys are kept. So the sample does not depend on how rows were cut into chunks, if each `update` is told its
    ``first_row``. `finish` returns a `Sample`; searches that need many passes run on it. Cost: O(n) and the
    rows kept.

    Examples
    --------
    >>> from polycal.states.sketch import SketchState
    >>> state = SketchState(2).update([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.1])
    >>> state.finish()
    Sample(n_samples=2, n_classes=2, float64)
    """

    family: ClassVar[str] = "sketch"
    holds_rows: ClassVar[bool] = True

    def __init__(self, size: int, *, random_state: int = 0) -> None:
        super().__init__()
        self.size = check_integer(size, "size", minimum=1)
        self.random_state = check_integer(random_state, "random_state", minimum=0)
        self._kept = BottomRows(size)

    def finish(self) -> Sample:
        """The rows kept, in random order."""
        self._seen()
        if self._kept.rows is None:
            raise ValueError("the state has seen no row of positive weight; update it first.")
        return self._kept.rows.sample(self.class_names)

    def parameters(self) -> dict[str, Any]:
        """Size and seed."""
        return {"size": self.size, "random_state": self.random_state}

    def arrays(self) -> Arrays:
        """The rows kept."""
        return self._kept.arrays()

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        state = cls(**parameters)
        state._kept = BottomRows.rebuild(state.size, arrays)
        return state

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        keys = row_keys(rows, self.random_state, _PURPOSE)
        chosen = self._kept.below(keys)
        chosen = chosen[weight[chosen] > 0]
        chunk = KeyedRows(sample.proba, sample.labels, weight, keys)
        self._kept.admit(chunk if chosen.size == keys.size else chunk.take(chosen))

    def _merge(self, other: "SketchState") -> None:
        if other._kept.rows is not None:
            self._kept.admit(other._kept.rows)
