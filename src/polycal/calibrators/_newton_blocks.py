"""A preconditioner for multinomial regression: each class's own block of the Hessian, where it is large."""

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Floats
from polycal.sample import row_blocks

# Rows whose curvature for a class is below this part of the class's largest are left out of its block.
_NEGLIGIBLE = 1e-3


class NewtonBlocks:
    """Approximate inverse of ``H + strength * diag(penalty)`` for any strength.

    The Hessian H of the log loss is taken as block-diagonal, one block a class; in each block the ``block_size``
    features of largest curvature (relative to their penalty) are taken with their correlations, the others by
    their diagonal. Few rows have a curvature ``q (1 - q)`` for a given class that matters, so blocks are cheap;
    one eigendecomposition serves every strength of the path and every fold.

    Parameters
    ----------
    features : ndarray of float, shape (n_samples, n_features)
    proba : ndarray of float, shape (n_samples, n_classes)
        Where the curvature is taken.
    mass : ndarray of float, shape (n_samples,)
        Weights of the rows, of sum 1.
    penalty : ndarray of float, shape (n_features, n_classes)
        Weights of the ridge.
    block_size : int
        Features in a block.
    """

    def __init__(
        self, features: Floats, proba: Floats, mass: Floats, penalty: Floats, block_size: int
    ) -> None:
        n_classes = proba.shape[1]
        size = min(block_size, features.shape[1])
        self._penalty = penalty
        self._diagonal = _diagonals(features, proba, mass)
        relative = self._diagonal / penalty
        self._members = np.argpartition(-relative, size - 1, axis=0)[:size].T.copy()
        self._root = 1.0 / np.sqrt(np.take_along_axis(penalty.T, self._members, axis=1))
        self._values = np.empty((n_classes, size), dtype=features.dtype)
        self._vectors = np.empty((n_classes, size, size), dtype=features.dtype)
        for c in range(n_classes):
            block = _block(features, proba[:, c], mass, self._members[c], self._root[c])
            values, self._vectors[c] = np.linalg.eigh(block)
            self._values[c] = np.maximum(values, 0.0)

    def solve(self, gradient: Floats, strength: float) -> Floats:
        """The step for a gradient of shape (n_features, n_classes)."""
        # The softmax couples the classes: twice the blocks bounds the whole Hessian from above.
        curvature = 2.0 * self._diagonal + float(strength) * self._penalty
        out: Floats = (gradient / curvature).astype(gradient.dtype, copy=False)
        own = np.take_along_axis(gradient.T, self._members, axis=1) * self._root
        turned = np.matmul(own[:, None, :], self._vectors)
        turned /= (2.0 * self._values + float(strength))[:, None, :]
        back = np.matmul(self._vectors, turned.transpose(0, 2, 1))[:, :, 0] * self._root
        np.put_along_axis(out.T, self._members, back, axis=1)
        return out


def _diagonals(features: Floats, proba: Floats, mass: Floats) -> Floats:
    """The Hessian's diagonal, ``sum_i mass_i q_il (1 - q_il) x_ij^2``."""
    out = np.zeros((features.shape[1], proba.shape[1]), dtype=features.dtype)
    for rows in row_blocks(features.shape[0], features.shape[1]):
        curvature = proba[rows] * (1.0 - proba[rows]) * mass[rows, None]
        out += np.square(features[rows]).T @ curvature
    return out


def _block(features: Floats, proba: Floats, mass: Floats, members: NDArray[np.intp], root: Floats) -> Floats:
    """One class's scaled block over the rows that matter to it."""
    rows, curvature = rows_that_matter(proba, mass)
    scaled = features[np.ix_(rows, members)] * root
    block: Floats = (scaled.T * curvature) @ scaled
    return block


def rows_that_matter(proba: Floats, mass: Floats) -> tuple[NDArray[np.intp], Floats]:
    """The rows with more than a negligible curvature for a class, from its predictions, and that curvature."""
    curvature = proba * (1.0 - proba) * mass
    rows = np.flatnonzero(curvature > _NEGLIGIBLE * curvature.max())
    return rows, curvature[rows]
