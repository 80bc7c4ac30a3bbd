"""Several states that see the same rows, or the half of them that is searched or that judges."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from threading import Lock
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from polycal._threads import deal
from polycal._typing import Bools, Ints
from polycal.sample import Sample
from polycal.states.base import State
from polycal.states.rows import row_keys

Half = Literal["all", "fit", "judge"]
_PURPOSE = 0


class Rows(Protocol):
    """A chunk: rows and their places in the whole data."""

    @property
    def sample(self) -> Sample:
        """The rows."""

    @property
    def rows(self) -> Ints:
        """Their places."""


class Source(Protocol):
    """Where chunks come from."""

    def __iter__(self) -> Iterator[Rows]:
        """The chunks, in order."""

    def unread_chunks(self, n_threads: int) -> Iterator[Callable[[], Rows | None]]:
        """What makes the chunks, in order, on so many threads; None stands for no rows."""


class Part(NamedTuple):
    """Some rows of a chunk."""

    sample: Sample
    rows: Ints


_Turn = AbstractContextManager[Any]
_NO_WAITING: _Turn = nullcontext()


@dataclass(eq=False)
class Bundle:
    """States by name, and the rows that each of them sees.

    Every row belongs to the searched or to the judging half, by a coin that depends on its place and the seed only:
    a coin that looked at the row would tell the halves apart.
    """

    seed: int
    states: dict[str, State] = field(default_factory=dict)
    halves: dict[str, Half] = field(default_factory=dict)
    # Rows of positive weight of the two halves.
    n_fit: int = 0
    n_judge: int = 0

    def add(self, name: str, state: State, half: Half) -> None:
        """Put a state into the bundle."""
        self.states[name] = state
        self.halves[name] = half

    def absorb(self, chunk: Rows, turn: _Turn = _NO_WAITING) -> "Bundle":
        """Show a chunk to all states, to those that hold rows in turn."""
        fit = in_fit_half(chunk.rows, self.seed)
        counted = _counted(chunk.sample)
        self.n_fit += int(np.count_nonzero(fit & counted))
        self.n_judge += int(np.count_nonzero(~fit & counted))
        wanted = set(self.halves.values())
        parts = {"all": Part(chunk.sample, chunk.rows)}
        for half, chosen in (("fit", fit), ("judge", ~fit)):
            if half in wanted:
                parts[half] = Part(chunk.sample.take(chosen), chunk.rows[chosen])
        for name, state in self.states.items():
            with turn if state.holds_rows else _NO_WAITING:
                state.absorb(*parts[self.halves[name]])
        return self

    def twin(self) -> "Bundle":
        """A bundle for another thread, of copies of the states, but the same ones where they hold rows."""
        states = {name: state if state.holds_rows else state.copy() for name, state in self.states.items()}
        return Bundle(self.seed, states, self.halves)

    def merge(self, other: "Bundle") -> "Bundle":
        """Take in all that another bundle of the same states, or a twin, has seen."""
        for name, state in self.states.items():
            if state is not other.states[name]:
                state.merge(other.states[name])
        self.n_fit += other.n_fit
        self.n_judge += other.n_judge
        return self

    def finish(self, name: str) -> Any:
        """The result of one state."""
        return self.states[name].finish()


def feed(bundle: Bundle, files: Source, n_threads: int) -> Bundle:
    """Show all chunks of some files to a bundle that has seen nothing.

    Each thread reads and checks chunks of its own, and shows them to states of its own, which are merged in the end:
    nothing is shared but the file that chunks are cut off and the states that hold rows.
    """
    if n_threads == 1:
        return reduce(Bundle.absorb, files, bundle)
    bundles = [bundle, *(bundle.twin() for _ in range(n_threads - 1))]
    turn = Lock()
    deal(files.unread_chunks(n_threads), [partial(_show, own, turn) for own in bundles])
    return reduce(Bundle.merge, bundles)


def _show(bundle: Bundle, turn: Lock, read: Callable[[], Rows | None]) -> None:
    chunk = read()
    if chunk is not None:
        bundle.absorb(chunk, turn)


def in_fit_half(rows: Ints, seed: int) -> Bools:
    """Which rows are searched; the others judge."""
    fit: Bools = row_keys(rows, seed, _PURPOSE) < np.uint64(1 << 63)
    return fit


def _counted(sample: Sample) -> Bools:
    if sample.sample_weight is None:
        return np.ones(sample.n_samples, dtype=np.bool_)
    return sample.sample_weight > 0
