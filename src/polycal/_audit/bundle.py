"""Several states that see the same rows, or the half of them that is searched or that judges."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, Protocol

import numpy as np

from polycal._parallel import map_threads, read_ahead
from polycal._typing import Bools, Ints
from polycal.sample import Sample
from polycal.states._base import State
from polycal.states._keys import row_keys

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

    def absorb(self, chunk: Rows, n_jobs: int | None = 1) -> "Bundle":
        """Show a chunk to all states."""
        fit = in_fit_half(chunk.rows, self.seed)
        counted = _counted(chunk.sample)
        self.n_fit += int(np.count_nonzero(fit & counted))
        self.n_judge += int(np.count_nonzero(~fit & counted))
        wanted = set(self.halves.values())
        parts: dict[str, tuple[Sample, Ints]] = {"all": (chunk.sample, chunk.rows)}
        for half, chosen in (("fit", fit), ("judge", ~fit)):
            if half in wanted:
                parts[half] = chunk.sample.take(chosen), chunk.rows[chosen]

        def show(name: str) -> None:
            self.states[name].absorb(*parts[self.halves[name]])

        map_threads(show, self.states, n_jobs)
        return self

    def merge(self, other: "Bundle") -> "Bundle":
        """Take in all that another bundle of the same states has seen."""
        for name, state in self.states.items():
            state.merge(other.states[name])
        self.n_fit += other.n_fit
        self.n_judge += other.n_judge
        return self

    def finish(self, name: str) -> Any:
        """The result of one state."""
        return self.states[name].finish()


def feed(bundle: Bundle, chunks: Iterable[Rows], n_jobs: int | None) -> Bundle:
    """Show all chunks to a bundle; with more than one thread, the next chunk is read meanwhile."""
    ready = chunks if n_jobs in {None, 1} else read_ahead(chunks)
    return reduce(lambda so_far, chunk: so_far.absorb(chunk, n_jobs), ready, bundle)


def in_fit_half(rows: Ints, seed: int) -> Bools:
    """Which rows are searched; the others judge."""
    fit: Bools = row_keys(rows, seed, _PURPOSE) < np.uint64(1 << 63)
    return fit


def _counted(sample: Sample) -> Bools:
    if sample.sample_weight is None:
        return np.ones(sample.n_samples, dtype=np.bool_)
    return sample.sample_weight > 0
