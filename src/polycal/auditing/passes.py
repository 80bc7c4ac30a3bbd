"""A pass over the rows: states that see all of them, or the half that is searched, or the half that judges."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial, reduce
from threading import Lock
from typing import Any, Literal, Self, TypeVar

import numpy as np

from polycal._threads import deal
from polycal._typing import Bools, Ints
from polycal.calibrators.base import Calibrator
from polycal.io.chunks import Chunk
from polycal.sample import Sample
from polycal.states.base import State
from polycal.states.cells import Weights
from polycal.states.certificate import CertificateState, ReadingState
from polycal.states.costs import CostState, RecalibrationState
from polycal.states.kernel import KernelState
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState, row_keys
from polycal.states.slices import SliceState
from polycal.states.sums import ScoreState
from polycal.states.swaps import SavingState, SwapState

Half = Literal["all", "searched", "judging"]
# The rows inside or outside of a slice that was found, by its number.
Part = tuple[Literal["inside", "outside"], int]
_PURPOSE = 0
_Turn = AbstractContextManager[Any]
_NO_WAITING: _Turn = nullcontext()
_NO_ROWS = Weights()
# What the states of one thread take, at most, beside those of groups and of the kernel search; a group; and a number
# of the kernel search.
_STATE_BYTES, _GROUP_BYTES, _SUM_BYTES = 64 << 20, 1 << 20, 32
# A loss takes as much as so many groups: tallies of promised, paid and saved.
_COST_GROUPS = 32
# A question in a slice.
_SLICE_BYTES = 256 << 10


# What is not exact of rows that go by, and from which size on.
GONE_BY = (
    "There are more than {rows:,} rows of {classes:,} classes ({cells:,} probabilities), so not all are held."
)
IN_CELLS = (
    "Errors are computed in cells of the predicted probability, {cells:,} for confidence and each group and "
    "{class_cells:,} for each class; what this can change is taken off the notions' errors."
)
ON_A_SKETCH = (
    "Searches saw a random sample of at most {rows:,} rows of the searched half; the kernel search saw all of it, "
    "through landmarks. What they found was judged on every row of the other half."
)

# What the field of a pass, a state or a dictionary of states, says of the rows that it sees.
ALL, SEARCHED, JUDGING = ({"half": half} for half in ("all", "searched", "judging"))


@dataclass(eq=False, kw_only=True)
class Pass:
    """States that go over the rows together; each is a field, which says what rows it sees.

    Every row is searched or judges, by a coin that depends on its number and the seed only: a coin that looked at the
    row would tell the halves apart.

    Attributes
    ----------
    seed : int
        Of the coin.
    calibrator : Calibrator or None
        Applied to the rows before any state sees them.
    n_searched, n_judging : int
        Rows of positive weight of the two halves.
    weights : Weights
        Of all rows.
    """

    seed: int
    calibrator: Calibrator | None = None
    n_searched: int = 0
    n_judging: int = 0
    weights: Weights = _NO_ROWS

    @property
    def bytes_each(self) -> int:
        """What the states of one more thread take, about."""
        return 0

    def absorb(self, chunk: Chunk, turn: _Turn = _NO_WAITING) -> Self:
        """Show a chunk to all states; threads take turns at those that hold rows."""
        searched = is_searched(chunk.rows, self.seed)
        counted = _counted(chunk.sample)
        self.n_searched += int(np.count_nonzero(searched & counted))
        self.n_judging += int(np.count_nonzero(~searched & counted))
        weight = chunk.sample.sample_weight
        own = Weights.of(np.ones(chunk.sample.n_samples) if weight is None else weight)
        self.weights = self.weights.merged(own)
        if self.calibrator is not None:
            chunk = Chunk(calibrated_rows(chunk.sample, self.calibrator), chunk.rows)
        parts = {"all": chunk}
        for half, chosen in (("searched", searched), ("judging", ~searched)):
            if any(h == half for _, h in self._states()):
                parts[half] = Chunk(chunk.sample.take(chosen), chunk.rows[chosen])
        for state, half in self._states():
            with turn if state.holds_rows else _NO_WAITING:
                state.absorb(parts[half].sample, parts[half].rows)
        return self

    def twin(self) -> Self:
        """A pass for another thread, of copies of the states, but the same ones where they hold rows."""
        states = [state for state, _ in self._states()]
        tried = [getattr(state, "calibrator", None) for state in states]
        shared = [self.calibrator, *tried, *(state for state in states if state.holds_rows)]
        return replace(
            deepcopy(self, {id(one): one for one in shared}), n_searched=0, n_judging=0, weights=_NO_ROWS
        )

    def merge(self, other: Self) -> Self:
        """Take in all that another pass of the same states, or a twin, has seen."""
        for (mine, _), (theirs, _) in zip(self._states(), other._states(), strict=True):
            if mine is not theirs:
                mine.merge(theirs)
        self.n_searched += other.n_searched
        self.n_judging += other.n_judging
        self.weights = self.weights.merged(other.weights)
        return self

    def _states(self) -> Iterator[tuple[State, Half]]:
        """All states, and the rows that each sees."""
        for one in fields(self):
            if "half" in one.metadata:
                value = getattr(self, one.name)
                states = value.values() if isinstance(value, dict) else [value]
                yield from ((state, one.metadata["half"]) for state in states)


@dataclass(eq=False, kw_only=True)
class ChoosingPass(Pass):
    """A pass before the first, over lists of many classes: a sample that shows which of them matter."""

    sketch: SketchState = field(metadata=SEARCHED)


@dataclass(eq=False, kw_only=True)
class MeasuringPass(Pass):
    """The first pass."""

    scores: ScoreState = field(metadata=ALL)
    classes: ClassesState = field(metadata=ALL)
    ranks: dict[str, QuestionState] = field(metadata=ALL)
    groups: dict[str, QuestionState] = field(metadata=ALL)
    nodes: dict[str, QuestionState] = field(metadata=ALL, default_factory=dict)
    sketch: SketchState = field(metadata=SEARCHED)
    drawn: SketchState = field(metadata=JUDGING)
    costs: dict[str, CostState] = field(metadata=ALL, default_factory=dict)
    recalibrations: dict[str, RecalibrationState] = field(metadata=ALL, default_factory=dict)
    swaps: dict[str, SwapState] = field(metadata=SEARCHED, default_factory=dict)

    @property
    def bytes_each(self) -> int:
        """What the states of another thread take."""
        return _STATE_BYTES + _GROUP_BYTES * (len(self.groups) + _COST_GROUPS * len(self.costs))


@dataclass(eq=False, kw_only=True)
class SearchingPass(Pass):
    """The second pass: kernel searches, by the auditor's name."""

    kernels: dict[str, KernelState] = field(metadata=SEARCHED)

    @property
    def bytes_each(self) -> int:
        """What the states of another thread take: a landmark for each class, and some, for each class."""
        return sum(
            _SUM_BYTES * state.landmarks.sizes[0] * state.landmarks.sizes[1]
            for state in self.kernels.values()
        )


@dataclass(eq=False, kw_only=True)
class JudgingPass(Pass):
    """The last pass: certificates and readings by the number of what was found, errors by the notion's number.

    And slices: those that have names, over all rows, and the judging rows inside and outside of those found.
    """

    certificates: dict[int, CertificateState] = field(metadata=JUDGING)
    readings: dict[int, ReadingState] = field(metadata=JUDGING)
    subsets: dict[int, QuestionState] = field(metadata=ALL)
    witnesses: dict[int, CertificateState] = field(metadata=ALL)
    savings: dict[str, SavingState] = field(metadata=JUDGING, default_factory=dict)
    slices: dict[str, SliceState] = field(metadata=ALL, default_factory=dict)
    parts: dict[Part, SliceState] = field(metadata=JUDGING, default_factory=dict)

    @property
    def bytes_each(self) -> int:
        """What the states of another thread take."""
        return _STATE_BYTES + _SLICE_BYTES * sum(len(state.states) for state in self.slices.values())


AnyPass = TypeVar("AnyPass", bound=Pass)


def show(task: AnyPass, chunks: Iterator[Callable[[], Chunk | None]], n_threads: int) -> AnyPass:
    """Show all chunks to a pass that has seen nothing.

    Each thread reads and checks chunks of its own, and shows them to states of its own, which are merged in the end:
    nothing is shared but the file that chunks are cut off and the states that hold rows.
    """
    tasks = [task, *(task.twin() for _ in range(n_threads - 1))]
    turn = Lock()
    deal(chunks, [partial(_show, own, turn) for own in tasks])
    return reduce(Pass.merge, tasks)


def _show(task: Pass, turn: Lock, read: Callable[[], Chunk | None]) -> None:
    chunk = read()
    if chunk is not None:
        task.absorb(chunk, turn)


def is_searched(rows: Ints, seed: int) -> Bools:
    """Which rows, by their numbers, are searched; the others judge."""
    searched: Bools = row_keys(rows, seed, _PURPOSE) < np.uint64(1 << 63)
    return searched


def calibrated_rows(sample: Sample, calibrator: Calibrator) -> Sample:
    """The same rows and labels with calibrated predictions."""
    if sample.n_samples == 0:
        return sample
    given: dict[str, Any] = {"features": sample.features} if calibrator.takes_features else {}
    proba = calibrator._taking(from_logits=False).predict_proba(sample.proba, **given)
    return replace(sample, proba=np.ascontiguousarray(proba))


def _counted(sample: Sample) -> Bools:
    if sample.sample_weight is None:
        return np.ones(sample.n_samples, dtype=np.bool_)
    return sample.sample_weight > 0
