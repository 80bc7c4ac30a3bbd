"""The bettors: calibrators that know the rows before, each with a bet against the prediction of the next row.

A bet is a probability q for every class, made of the rows before and of the prediction v of this row alone. It pays
``q[y] / v[y]`` for the label y. If labels follow the predictions that is 1 on average, whatever q is; if they do not,
its logarithm is the log loss that q saves: the best calibrator makes the fastest alarm.

Small bettors bet from the first row on and learn with every row: a grid of temperatures and backgrounds, shifts of
the classes, and shifts given the most likely class. Large ones, vector scaling and `KernelCalibrator`, are fitted at
growing numbers of rows, which do not depend on how rows are batched.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal._validation import CalibrationWarning
from polycal.calibrators.base import Calibrator, IdentityCalibrator
from polycal.calibrators.kernel import KernelCalibrator
from polycal.calibrators.vector import VectorScaling
from polycal.sample import row_blocks
from polycal.storage.rules import Array, Part, Rows, Whole, expect
from polycal.storage.saved import Saved

# A probability below this counts as this when its label comes: one row multiplies no fortune by more than a million.
FLOOR = 1e-6
# The grid of inverse temperatures, and of uniform backgrounds.
_INVERSE = np.array([0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0])
_BACKGROUNDS = np.array([0.0, 0.003, 0.03])
# How many rows a shift is believed against, and what each new row leaves of the weight of those before.
_PRIOR = 5.0
_DECAYS = (1.0, 0.998)
# What part of the fortune follows a learnt bettor; the rest stays with the prediction.
_PARTS = (0.99, 0.5, 0.1)
_SPREAD = 1e-9
# More classes than these have no shifts given the most likely class, and no kernel: they would take too long.
_MOST_CELLS = _MOST_KERNEL = 512
# Rows remembered to fit on, and numbers in them.
WINDOW, _WINDOW_CELLS, _KERNEL_CELLS = 4000, 1 << 22, 1 << 19


class Recipe(NamedTuple):
    """When a calibrator is fitted again, and on how many of the last rows.

    The first time is after ``first`` rows, then whenever rows have become ``growth`` times as many, or ``most`` more.
    """

    name: str
    make: Callable[[], Calibrator]
    memory: int
    first: int
    growth: float = 1.5
    most: int = 1 << 60

    def after(self, n_rows: int) -> int:
        """The number of rows of the fit that follows one at so many."""
        return min(int(np.ceil(n_rows * self.growth)), n_rows + self.most)


def recipes(n_classes: int) -> tuple[Recipe, ...]:
    """The large bettors: on all that is remembered, and on recent rows alone."""
    room = min(WINDOW, _WINDOW_CELLS // n_classes)
    vector = (
        Recipe("vector", VectorScaling, room, 20),
        Recipe("recent vector", VectorScaling, min(1000, room), 1500, most=1000),
    )
    if n_classes > _MOST_KERNEL:
        return vector
    return *vector, Recipe("kernel", KernelCalibrator, min(room, _KERNEL_CELLS // n_classes), 40, 2.0)


@cache
def families(n_classes: int) -> tuple[str, ...]:
    """The name of each bet's family, in the order of the columns of gains."""
    small = ["temperature"] * (_INVERSE.size * _BACKGROUNDS.size)
    learnt = [name for name in _shift_names(n_classes) for _ in _DECAYS]
    learnt += [recipe.name for recipe in recipes(n_classes)]
    return (*small, *(name for name in learnt for _ in _PARTS))


# The part of all money that each family gets; what is missing falls to the others in proportion.
_WEIGHTS = {
    "temperature": 0.4,
    "shifts": 0.1,
    "shifts given the top": 0.1,
    "vector": 0.1,
    "recent vector": 0.05,
    "kernel": 0.25,
}


@cache
def log_weights(n_classes: int) -> Float64s:
    """The logarithm of each bet's part of the money of all calibrators."""
    names = families(n_classes)
    weight = np.array([_WEIGHTS[name] / names.count(name) for name in names])
    logs: Float64s = np.log(weight / weight.sum())
    return logs


def _shift_names(n_classes: int) -> tuple[str, ...]:
    return ("shifts", "shifts given the top") if n_classes <= _MOST_CELLS else ("shifts",)


@dataclass(eq=False)
class SmallBets(Saved):
    """Bettors that learn with every row: what they remember are sums.

    Attributes
    ----------
    n_classes : int
    shifts, given_top : ndarray of shape (n_decays, n_cells, 2, n_classes)
        Counts of labels and sums of predictions, in one cell and in one for each most likely class, with and without
        forgetting.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "small-bets"

    n_classes: Annotated[int, Whole(low=2)]
    shifts: Annotated[Float64s, Array("float64", f"{len(_DECAYS)} 1 2 n_classes", low=0)]
    given_top: Annotated[Float64s, Array("float64", f"{len(_DECAYS)} n_cells 2 n_classes", low=0)]

    @classmethod
    def fresh(cls, n_classes: int) -> "SmallBets":
        """Bettors that have seen nothing."""
        cells = n_classes if n_classes <= _MOST_CELLS else 0
        sums = [np.zeros((len(_DECAYS), n, 2, n_classes)) for n in (1, cells)]
        return cls(n_classes, *sums)

    def _check(self) -> None:
        super()._check()
        cells = self.n_classes if self.n_classes <= _MOST_CELLS else 0
        expect(self.given_top.shape[1] == cells, "given_top must have a cell for each class")

    def chances(self, proba: Float64s, labels: Ints) -> list[Float64s]:
        """What the bets give each label, of floored predictions, as columns; the bettors learn from it."""
        from polycal._compiled.monitor import shifted, tempered  # noqa: PLC0415 - imports numba

        n = labels.size
        grid = np.empty((n, _INVERSE.size * _BACKGROUNDS.size))
        tempered(np.log(proba), labels, _INVERSE, _BACKGROUNDS, grid)
        columns = [*np.exp(grid).T]
        for sums in (self.shifts, self.given_top):
            if sums.shape[1]:
                cells = np.zeros(n, dtype=np.int64) if sums.shape[1] == 1 else proba.argmax(axis=1)
                for own, decay in zip(sums, _DECAYS, strict=True):
                    out = np.empty(n)
                    shifted(proba, cells, labels, _PRIOR, decay, own, out)
                    columns.append(np.exp(out))
        return columns


@dataclass(eq=False)
class Window(Saved):
    """The last rows, in the order in which they came.

    Attributes
    ----------
    n_classes, n_rows : int
        Number of classes, and of rows seen.
    proba, labels : ndarray
        At most `WINDOW` of them, and fewer of many classes.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "window"

    n_classes: Annotated[int, Whole(low=2)]
    n_rows: Annotated[int, Whole()]
    proba: Annotated[Floats, Rows("floats", "n_kept n_classes")]
    labels: Annotated[Ints, Array("int64", "n_kept", low=0, below="n_classes")]
    # Rows that came since the others were last put in order.
    _new: list[tuple[Floats, Ints]] = field(default_factory=list, init=False)

    @classmethod
    def fresh(cls, n_classes: int) -> "Window":
        """A window without rows."""
        return cls(n_classes, 0, np.empty((0, n_classes), np.float32), np.empty(0, np.int64))

    def add(self, proba: Float64s, labels: Ints) -> None:
        """Remember rows."""
        self._new.append((proba.astype(np.float32), labels.copy()))
        self.n_rows += labels.size
        if len(self._new) >= WINDOW // 4:
            self._settle()

    def last(self, n: int) -> tuple[Floats, Ints]:
        """At most so many of the last rows, and their labels."""
        self._settle()
        return self.proba[-n:], self.labels[-n:]

    def _settle(self) -> None:
        """Put new rows behind the others, and forget the first."""
        if self._new:
            room = min(WINDOW, _WINDOW_CELLS // self.n_classes)
            probas, labels = zip(*self._new, strict=True)
            self.proba = np.concatenate([self.proba, *probas])[-room:]
            self.labels = np.concatenate([self.labels, *labels])[-room:]
            self._new = []

    def _saved_values(self) -> dict[str, Any]:
        self._settle()
        return super()._saved_values()

    def _check(self) -> None:
        super()._check()
        expect(self.labels.size <= self.n_rows, "no more rows can be remembered than were seen")


@dataclass(eq=False)
class LargeBets(Saved):
    """Bettors that are fitted again from time to time, on rows that are remembered.

    Attributes
    ----------
    n_classes : int
    models : tuple of Calibrator
        One for each of `recipes`; before the first fit they change nothing.
    due : ndarray of int64
        The number of rows at which each is fitted next.
    """

    role: ClassVar[str] = "part"
    family: ClassVar[str] = "large-bets"

    n_classes: Annotated[int, Whole(low=2)]
    models: Annotated[tuple[Calibrator, ...], Part((Calibrator,), "n_models")]
    due: Annotated[Ints, Array("int64", "n_models", low=1)]

    @classmethod
    def fresh(cls, n_classes: int) -> "LargeBets":
        """Bettors that have seen nothing."""
        known = recipes(n_classes)
        models = tuple(_unfitted(n_classes) for _ in known)
        return cls(n_classes, models, np.array([recipe.first for recipe in known]))

    def _check(self) -> None:
        super()._check()
        expect(
            len(self.models) == len(recipes(self.n_classes)),
            "models must be those of this number of classes",
        )
        expect(
            all(model.n_classes_ == self.n_classes for model in self.models),
            "models must be of the same classes",
        )

    @property
    def next_row(self) -> int:
        """The number of rows at which the next fit is due."""
        return int(self.due.min())

    def chances(self, proba: Float64s, labels: Ints) -> list[Float64s]:
        """What the bets give each label, as columns; no fit may be due before the last row."""
        return [_at_label(model, proba, labels) for model in self.models]

    def fit_due(self, window: Window) -> None:
        """Fit what is due on the rows that are remembered."""
        while window.n_rows >= self.next_row:
            i = int(self.due.argmin())
            recipe = recipes(self.n_classes)[i]
            with warnings.catch_warnings():
                # A bettor may be bold: it bets with its own money.
                warnings.simplefilter("ignore", CalibrationWarning)
                model = recipe.make().fit(*window.last(recipe.memory))
            self.models = (*self.models[:i], model, *self.models[i + 1 :])
            self.due[i] = recipe.after(window.n_rows)


def log_gains(small: SmallBets, large: LargeBets, proba: Float64s, labels: Ints) -> Float64s:
    """The logarithm of what every bet makes of one coin, row by row: of shape (n_rows, n_bets).

    The small bettors learn from the rows. No fit may be due before the last of them.
    """
    floored = np.maximum(proba, FLOOR)
    at_label, floor = proba[np.arange(labels.size), labels], floored[np.arange(labels.size), labels]
    grid, *learnt = np.split(
        np.array([*small.chances(floored, labels), *large.chances(proba, labels)]),
        [_INVERSE.size * _BACKGROUNDS.size],
    )
    mixed = [part * own + (1.0 - part) * at_label for own in learnt[0] for part in _PARTS]
    # A little of every fortune is on every class, so that none is ever lost as a whole.
    chances = (1.0 - _SPREAD) * np.vstack([grid, *mixed]) + _SPREAD / proba.shape[1]
    return np.ascontiguousarray(np.log(chances / floor).T)


def _unfitted(n_classes: int) -> Calibrator:
    """A calibrator that changes nothing."""
    return IdentityCalibrator().fit(np.full((1, n_classes), 1.0 / n_classes), [0])


def _at_label(model: Calibrator, proba: Float64s, labels: Ints) -> Float64s:
    """What a calibrator gives each label."""
    out = np.empty(labels.size)
    for rows in row_blocks(*proba.shape):
        block = (
            proba[rows]
            if isinstance(model, IdentityCalibrator)
            else model.predict_proba(proba[rows], n_jobs=1)
        )
        out[rows] = block[np.arange(block.shape[0]), labels[rows]]
    return out
