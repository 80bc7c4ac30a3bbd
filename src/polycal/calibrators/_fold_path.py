"""Cross-validated ridge path: fold by fold, from strong to weak, each solution the start of the next."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from polycal._typing import Floats, Ints
from polycal.calibrators._kernel_features import Features
from polycal.calibrators._newton_blocks import NewtonBlocks
from polycal.calibrators._ridge import DenseProblem, RidgeProblem
from polycal.calibrators._sparse_problem import SparseProblem
from polycal.sample import Sample

_TOLERANCE = 1e-4
_BLOCK_SIZE = 96
# With a smaller part of the classes likely, sparse products are faster than dense ones.
_SPARSE = 0.15


class FoldPath:
    """The models of all folds at each strength of the ridge.

    Rows are sorted by fold, so that parts are slices. The preconditioner is made once, from all rows: it affects
    the way to a solution, not the solution.

    Parameters
    ----------
    sample : Sample
        Labels and weights of the rows.
    log_proba : ndarray of float, shape (n_samples, n_classes)
        Log q of the base, which the models change.
    kind : Features
        The features, and the ridge on their weights.
    seen : ndarray of float, shape (n_samples, n_classes)
        Logarithms of the predictions that the features are of.
    parts : sequence of ndarray of int64
        The rows of each fold, none empty.
    """

    def __init__(
        self, sample: Sample, log_proba: Floats, kind: Features, seen: Floats, parts: Sequence[Ints]
    ) -> None:
        self.order: Ints = np.concatenate(parts)
        self.sample = sample.take(self.order)
        self.log_proba = log_proba[self.order]
        self.features = kind.of(self.log_proba if seen is log_proba else seen[self.order])
        # Of the base: where the features are of it, they hold it.
        own = self.features[:, 1 : sample.n_classes + 1]
        self._proba = own if seen is log_proba else np.exp(self.log_proba)
        edges = np.cumsum([0, *(part.size for part in parts)])
        self.folds = [slice(a, b) for a, b in pairwise(edges)]
        self._mass = self.sample.mass.astype(log_proba.dtype)
        self._penalty = kind.penalty(sample.n_classes).astype(log_proba.dtype)
        arrays = self.features, self.log_proba, self.sample.labels, self._mass, self._penalty
        likely = np.count_nonzero(self.features[:, sample.n_classes + 1 :]) / log_proba.size
        self._sparse = (
            SparseProblem.from_features(*arrays)
            if likely < _SPARSE and log_proba.dtype == np.float32
            else None
        )

    def solutions(
        self, strengths: Sequence[float], start: Sequence[Floats] = ()
    ) -> Iterator[tuple[float, list[Floats], Floats]]:
        """For each strength: itself, the weights of the folds' models, and what each of them adds to the logits of
        the rows it has not seen.

        They begin at the weights ``start``, which may be of the first features only; else at 0.
        """
        blocks = NewtonBlocks(self.features, self._proba, self._mass, self._penalty, _BLOCK_SIZE)
        weights = [np.zeros_like(self._penalty) for _ in self.folds]
        for weight, begin in zip(weights, start, strict=False):
            weight[: begin.shape[0]] = begin
        change = np.empty_like(self.log_proba)
        for strength in strengths:
            for i, fold in enumerate(self.folds):
                problem = self._without(fold)
                weights[i] = problem.solve(weights[i], strength, blocks, _TOLERANCE)
                change[fold] = self.features[fold] @ weights[i]
            # A solution is a new array, which the next one does not change.
            yield strength, list(weights), change

    def _without(self, fold: slice) -> RidgeProblem:
        """The problem on the rows outside a fold."""
        if self._sparse is not None:
            mass = self._mass.copy()
            mass[fold] = 0.0
            return self._sparse.with_mass(mass / mass.sum())
        mass = np.delete(self._mass, fold)
        return DenseProblem(
            np.delete(self.features, fold, axis=0),
            np.delete(self.log_proba, fold, axis=0),
            np.delete(self.sample.labels, fold),
            mass / mass.sum(),
            self._penalty,
        )
