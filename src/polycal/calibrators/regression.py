"""Softmax regression: of a few directions, or of many features with a penalty, on all rows or fold by fold."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from polycal._threads import Run, map_here, map_threads
from polycal._typing import Float64s, Floats, Ints
from polycal.calibrators.loss import (
    LARGE,
    curvature,
    directional_derivatives,
    losses_and_proba,
    pass_threads,
    to_residual,
    total_weight,
)
from polycal.calibrators.optimise import Effort, Preconditioner, lbfgs, newton
from polycal.sample import Sample, row_blocks

# Features of a class whose correlations the preconditioner knows; of the others it knows the diagonal.
_BLOCK_SIZE = 96
# Rows whose curvature for a class is below this part of the class's largest are left out of its block.
_NEGLIGIBLE = 1e-3
# No penalty counts for less than this multiple of the curvature's rounding error: some may be 0.
_WEAKEST = 10.0

# Where several threads share the blocks of rows, these are as small as if they were at least so wide: they fit into a
# core's own memory. The number of threads does not matter for the sums. Fewer rows are not shared.
_WIDE, _MANY_ROWS = 1024, 2048

Directions = Callable[[slice], Floats]


def fit_tilt(sample: Sample, offset: Floats, directions: Directions, n_directions: int) -> Float64s:
    """The c of least log loss of ``softmax(offset + sum_j c_j direction_j)``, each with a standard normal prior.

    Parameters
    ----------
    sample : Sample
        Labels and weights.
    offset : ndarray of float, shape (n_samples, n_classes)
    directions : callable
        Gives the directions of a block of rows, of shape (n_directions, n_rows, n_classes).
    n_directions : int
    """
    with pass_threads(offset.size * n_directions**2) as run:
        return newton(partial(tilt_derivatives, sample, offset, directions, run=run), np.zeros(n_directions))


def tilt_derivatives(
    sample: Sample, offset: Floats, directions: Directions, amount: Float64s, run: Run = map_here
) -> tuple[float, Float64s, Float64s]:
    """Log loss with the prior, its gradient and its Hessian."""
    prior, mass = 1.0 / total_weight(sample), sample.mass

    def part(rows: slice) -> tuple[float, Float64s, Float64s]:
        along = directions(rows)
        logits = offset[rows] + np.einsum("jic,j->ic", along, amount.astype(offset.dtype))
        return directional_derivatives(logits, along, sample.labels[rows], mass[rows])

    loss, gradient, hessian = (
        0.5 * prior * float(amount @ amount),
        prior * amount,
        prior * np.eye(amount.size),
    )
    blocks = row_blocks(offset.shape[0], (amount.size + 1) * offset.shape[1])
    for more, along, square in run(part, list(blocks)):
        loss, gradient, hessian = loss + more, gradient + along, hessian + square
    return loss, gradient, hessian


class Penalty(Protocol):
    """A quadratic penalty of weights, some ``amount`` of a relative one."""

    @property
    def amount(self) -> float:
        """What `each` is multiplied by."""

    def each(self, n_classes: int) -> Floats:
        """The relative penalty of each weight."""

    def gradient(self, weight: Floats) -> Floats:
        """The derivative."""

    def value(self, weight: Floats, gradient: Floats) -> float:
        """The penalty, given its derivative."""

    def centred(self, step: Floats) -> Floats:
        """The step (overwritten) without what the softmax does not see, at the least penalty."""

    def settled(self, weight: Floats) -> Floats:
        """Weights of the same predictions at the least penalty: where steps without a shift may start."""


@dataclass(frozen=True, eq=False)
class Ridge:
    """``amount/2 sum_jc relative_jc W_jc^2``.

    Attributes
    ----------
    relative : ndarray of float, shape (n_features, n_classes)
    amount : float
    """

    relative: Floats
    amount: float

    def gradient(self, weight: Floats) -> Floats:
        """The derivative."""
        out: Floats = self.relative * weight
        out *= self.amount
        return out

    def value(self, weight: Floats, gradient: Floats) -> float:
        """The penalty, given its derivative, which is linear: half the product."""
        return 0.5 * float(np.vdot(gradient, weight))

    def centred(self, step: Floats) -> Floats:
        """The step (overwritten) without a shift of all classes, feature by feature.

        Of all shifts, the penalty is least for the one whose penalty-weighted mean is 0.
        """
        shift = np.einsum("jc,jc->j", self.relative, step) / np.einsum("jc->j", self.relative)
        step -= shift[:, None]
        return step

    def settled(self, weight: Floats) -> Floats:
        """The weights: searches start from 0, and take no other steps."""
        return weight

    def each(self, n_classes: int) -> Floats:  # noqa: ARG002 - the weights know it
        """The relative penalty of each weight."""
        return self.relative


@dataclass(frozen=True, eq=False)
class SoftmaxRegression:
    """The weighted log loss of ``softmax(offset + X W)`` as a function of W, in the dtype of W.

    Attributes
    ----------
    features : ndarray or scipy.sparse.csr_array of float, shape (n_samples, n_features)
        X.
    labels : ndarray of int64, shape (n_samples,)
    mass : ndarray of float, shape (n_samples,)
        Weights of the rows, of sum 1.
    offset : ndarray of float, shape (n_samples, n_classes), or None
        Logits to start from.
    parts : tuple of slice
        The rows that count; all others have weight 0.
    """

    features: Any
    labels: Ints
    mass: Floats
    offset: Floats | None
    parts: tuple[slice, ...]

    def without(self, fold: slice) -> "SoftmaxRegression":
        """The same without some consecutive rows."""
        mass = self.mass.copy()
        mass[fold] = 0.0
        rest = slice(0, fold.start), slice(fold.stop, mass.size)
        return replace(
            self, mass=mass / mass.sum(), parts=tuple(part for part in rest if part.start < part.stop)
        )

    def loss(self, weight: Floats) -> tuple[float, Floats]:
        """The log loss, and its gradient."""
        with self._threads(weight.size) as run:
            return self._loss(weight, run)

    def is_large(self, n_weights: int) -> bool:
        """Whether several threads share each pass over the rows with so many weights."""
        return self.labels.size >= _MANY_ROWS and self.labels.size * n_weights >= LARGE

    def _threads(self, n_weights: int) -> AbstractContextManager[Run]:
        """Threads for passes over the rows with so many weights."""
        return pass_threads(self.labels.size * n_weights if self.is_large(n_weights) else 0)

    def _loss(self, weight: Floats, run: Run) -> tuple[float, Floats]:
        def part(rows: slice) -> tuple[float, Floats]:
            losses, proba = losses_and_proba(self._logits(weight, rows), self.labels[rows])
            value = float(np.dot(losses, self.mass[rows]))
            return value, self.features[rows].T @ to_residual(proba, self.labels[rows], self.mass[rows])

        value, gradient = 0.0, np.zeros_like(weight)
        for more, along in run(part, list(self._blocks(weight))):
            value, gradient = value + more, np.add(gradient, along, out=gradient)
        return value, gradient

    def solve(
        self, penalty: Penalty, start: Floats, effort: Effort, kept: "LastSearch | None" = None
    ) -> Floats:
        """The W of least penalised loss; the preconditioner is the one kept, until it is stale."""
        kept = LastSearch() if kept is None else kept

        def objective(weight: Floats) -> tuple[float, Floats]:
            if kept.at is not weight:
                kept.at, kept.loss = weight, self._loss(weight, run)
            value, gradient = kept.loss
            pull = penalty.gradient(weight)
            total = value + penalty.value(weight, pull)
            return total, np.add(gradient, pull, out=pull)

        def preconditioner_at(weight: Floats) -> Preconditioner:
            blocks = kept.fresh(lambda: self._class_blocks(weight, penalty, run))
            return lambda gradient: penalty.centred(blocks.solve(gradient, penalty.amount))

        with self._threads(start.size) as run:
            found = lbfgs(objective, penalty.settled(start), preconditioner_at, effort)
        kept.is_stale = False
        return found

    def _class_blocks(self, weight: Floats, penalty: Penalty, run: Run) -> "ClassBlocks":
        """The curvature at these weights."""
        proba = np.zeros((self.labels.size, weight.shape[1]), dtype=self.features.dtype)
        for rows in self._blocks(weight):
            proba[rows] = losses_and_proba(self._logits(weight, rows), self.labels[rows])[1]
        return ClassBlocks(self.features, proba, self.mass, penalty.each(weight.shape[1]), run=run)

    def _logits(self, weight: Floats, rows: slice) -> Floats:
        logits: Floats = self.features[rows] @ weight
        if self.offset is not None:
            logits += self.offset[rows]
        return logits

    def _blocks(self, weight: Floats) -> Iterator[slice]:
        """Slices of the rows that count."""
        width = max(*weight.shape, _WIDE if self.is_large(weight.size) else 0)
        for part in self.parts:
            for rows in row_blocks(part.stop - part.start, width):
                yield slice(part.start + rows.start, part.start + rows.stop)


class ClassBlocks:
    """The Hessian of the log loss of softmax regression, as far as a preconditioner needs it: for any penalty.

    It is taken as block-diagonal, one block a class; in each block the features of largest curvature (relative to
    their penalty) are taken with their correlations, the others by their diagonal. Few rows have a curvature
    ``q (1 - q)`` for a given class that matters, so blocks are cheap; one eigendecomposition serves every penalty
    of a path and every fold.

    Parameters
    ----------
    features : ndarray of float, shape (n_samples, n_features)
    proba : ndarray of float, shape (n_samples, n_classes)
        Where the curvature is taken.
    mass : ndarray of float, shape (n_samples,)
        Weights of the rows, of sum 1.
    relative : ndarray of float, shape (n_features, n_classes)
        Relative penalties.
    block_size : int
        Features in a block.
    run : callable
        Decomposes the classes' blocks.
    """

    def __init__(
        self,
        features: Floats,
        proba: Floats,
        mass: Floats,
        relative: Floats,
        block_size: int = _BLOCK_SIZE,
        run: Run = map_here,
    ) -> None:
        dtype, n_classes = features.dtype, proba.shape[1]
        mass = mass.astype(dtype, copy=False)
        size = min(block_size, features.shape[1])
        self._diagonal, largest = _diagonals(features, proba, mass)
        self._relative = np.maximum(relative, _WEAKEST * float(np.finfo(dtype).eps) * largest).astype(dtype)
        self._members = np.argpartition(-self._diagonal / self._relative, size - 1, axis=0)[:size].T.copy()
        self._root = 1.0 / np.sqrt(np.take_along_axis(self._relative.T, self._members, axis=1))
        self._values = np.empty((n_classes, size), dtype=dtype)
        self._vectors = np.empty((n_classes, size, size), dtype=dtype)

        def decompose(c: int) -> None:
            weight = curvature(proba[:, [c]], mass)[:, 0]
            rows = np.flatnonzero(weight > _NEGLIGIBLE * weight.max())
            scaled = features[rows[:, None], self._members[c]] * self._root[c]
            values, self._vectors[c] = np.linalg.eigh((scaled.T * weight[rows]) @ scaled)
            self._values[c] = np.maximum(values, 0.0)

        run(decompose, range(n_classes))

    def solve(self, gradient: Floats, amount: float) -> Floats:
        """The step for a gradient of shape (n_features, n_classes) and an amount of the penalty, in its dtype."""
        # The softmax couples the classes: twice the blocks bounds the whole Hessian from above.
        whole = 2.0 * self._diagonal + float(amount) * self._relative
        out: Floats = (gradient / whole).astype(gradient.dtype, copy=False)
        own = np.take_along_axis(gradient.T, self._members, axis=1).astype(self._root.dtype) * self._root
        turned = np.matmul(own[:, None, :], self._vectors)
        turned /= (2.0 * self._values + float(amount))[:, None, :]
        back = np.matmul(self._vectors, turned.transpose(0, 2, 1))[:, :, 0] * self._root
        np.put_along_axis(out.T, self._members, back, axis=1)
        return out


def _diagonals(features: Floats, proba: Floats, mass: Floats) -> tuple[Floats, float]:
    """The Hessian's diagonal, ``sum_i mass_i q_il (1 - q_il) x_ij^2``, and the largest mean square of a feature."""
    out = np.zeros((features.shape[1], proba.shape[1]), dtype=features.dtype)
    means = np.zeros(features.shape[1], dtype=features.dtype)
    for rows in row_blocks(features.shape[0], features.shape[1]):
        squares = np.square(features[rows])
        out += squares.T @ curvature(proba[rows], mass[rows])
        means += mass[rows] @ squares
    return out, float(means.max())


@dataclass
class LastSearch:
    """What one search leaves to the next: blocks, until one finds them stale and makes them anew; and the last loss.

    Attributes
    ----------
    blocks : ClassBlocks or None
    is_stale : bool
    at : ndarray of float, or None
        The weights of the last loss: a search begins where the one before ended.
    loss : (float, ndarray)
        That loss without the penalty, and its gradient.
    """

    blocks: ClassBlocks | None = None
    is_stale: bool = False
    at: Floats | None = None
    loss: tuple[float, Floats] = 0.0, np.empty(0)

    def fresh(self, make: Callable[[], ClassBlocks]) -> ClassBlocks:
        """The blocks kept, at first; asked for again within a search, new ones."""
        if self.blocks is None or self.is_stale:
            self.blocks = make()
        self.is_stale = True
        return self.blocks


class FoldModels:
    """One model for each fold, fitted without its rows, and moved from penalty to penalty.

    Parameters
    ----------
    problems : sequence of SoftmaxRegression
        For each fold, or one for all, of all rows, sorted by fold.
    folds : sequence of slice
    start : sequence of ndarray of shape (n_features, n_classes)
        The models to begin with.
    blocks : ClassBlocks, optional
        What preconditions the searches; by default it is made where the first begins.
    """

    def __init__(
        self,
        problems: Sequence[SoftmaxRegression],
        folds: Sequence[slice],
        start: Sequence[Floats],
        blocks: ClassBlocks | None = None,
    ) -> None:
        problems = problems if len(problems) == len(folds) else list(problems) * len(folds)
        self.problems = [problem.without(fold) for problem, fold in zip(problems, folds, strict=True)]
        self.folds, self.weights = folds, list(start)
        # Folds are fitted side by side.
        self._kept = [LastSearch(blocks) for _ in folds]

    def move(self, penalties: Sequence[Penalty], effort: Effort, done: int = 0) -> None:
        """Fit anew with a penalty for each fold, from the models before; but for some first."""
        is_large = self.problems[0].is_large(self.weights[0].size)

        def solve(i: int) -> Floats:
            if is_large and self._kept[i].blocks is None:
                self._kept[i].blocks = self._kept[done].blocks
            return self.problems[i].solve(penalties[i], self.weights[i], effort, self._kept[i])

        # Large problems have threads of their own, so that one fold comes after the other, and its blocks serve the
        # next. A solution is a new array, which the next one does not change.
        solved = map_threads(solve, range(done, len(self.folds)), 1 if is_large else -1)
        self.weights = [*self.weights[:done], *solved]

    def held_out(self, weights: Sequence[Floats] | None = None) -> Floats:
        """The features times the weights, or times others, for the rows of each model's own fold."""
        triples = zip(self.problems, self.folds, self.weights if weights is None else weights, strict=True)
        return np.concatenate([problem.features[fold] @ weight for problem, fold, weight in triples])


def sort_by_fold(parts: Sequence[Ints]) -> tuple[Ints, list[slice]]:
    """The order of the rows that makes folds consecutive, and where each is then."""
    edges = np.cumsum([0, *(part.size for part in parts)])
    return np.concatenate(parts), [slice(a, b) for a, b in pairwise(edges)]


def rows_without(n_rows: int, fold: slice) -> Ints:
    """The rows outside a fold."""
    return np.delete(np.arange(n_rows), fold)
