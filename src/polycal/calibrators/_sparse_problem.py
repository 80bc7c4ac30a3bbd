"""The ridge problem for many classes, of which each row holds few to be likely."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Ints
from polycal.calibrators._ridge import RidgeProblem

Float32s = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SparseProblem(RidgeProblem):
    """The problem with the features of the likely classes of each row; those of the others are all but 0.

    Attributes
    ----------
    starts, columns : ndarray of int64
        Row i has features ``columns[starts[i]:starts[i + 1]]``.
    values : ndarray of float32
        What they are.
    offset : ndarray of float32, shape (n_samples, n_classes)
        Logits to start from.
    labels : ndarray of int64, shape (n_samples,)
    mass : ndarray of float32, shape (n_samples,)
        Weights of the rows, of sum 1.
    penalty : ndarray of float32, shape (n_features, n_classes)
        Relative weights of the ridge.
    """

    starts: Ints
    columns: Ints
    values: Float32s
    offset: Float32s
    labels: Ints
    mass: Float32s
    penalty: Float32s

    @classmethod
    def from_features(
        cls, features: Float32s, offset: Float32s, labels: Ints, mass: Float32s, penalty: Float32s
    ) -> "SparseProblem":
        """The problem of these arrays, which are those of `DenseProblem`."""
        n, k = offset.shape
        likely = np.ones(features.shape, dtype=np.bool_)
        np.greater(features[:, k + 1 :], 0.0, out=likely[:, k + 1 :])
        likely[:, 1 : k + 1] = likely[:, k + 1 :]
        starts = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.count_nonzero(likely, axis=1), out=starts[1:])
        columns = np.nonzero(likely)[1]
        return cls(starts, columns, features[likely], offset, labels, mass, penalty)

    def with_mass(self, mass: Float32s) -> "SparseProblem":
        """The same with other weights; rows of weight 0 cost nothing."""
        return replace(self, mass=mass)

    def log_loss(self, weight: Float32s) -> tuple[float, Float32s]:
        """The mean log loss and its gradient."""
        from polycal._compiled.sparse_ridge import sparse_log_loss  # noqa: PLC0415 - compiles on first use

        gradient = np.zeros_like(weight)
        value = sparse_log_loss(
            self.starts, self.columns, self.values, self.offset, self.labels, self.mass, weight, gradient
        )
        return float(value), gradient
