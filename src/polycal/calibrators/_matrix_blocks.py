"""A preconditioner for maps with a full matrix: each class's block of the Hessian, and vector scaling on top."""

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators._newton_blocks import rows_that_matter
from polycal.sample import row_blocks

# With more features than this, blocks are made of a few rows each instead of being stored in full.
_LARGEST = 256
_ROWS = 8
# No strength of the ridge counts for less than this multiple of the curvature's rounding error: some may be 0.
_WEAKEST = 10.0
# What makes the matrix of vector scaling safe to invert, on a diagonal of ones.
_JITTER = 1e-8


class MatrixBlocks:
    """Something like the inverse of ``H + diag(ridge)``, H the Hessian of the log loss of ``softmax(log v W + b)``.

    The sum of two inverses: that of H without what couples the classes, one block a class; and that of H for the
    diagonal of W and for b alone, which the ridge often holds least and where the coupling matters most.

    Parameters
    ----------
    features : ndarray of float, shape (n_samples, n_classes + 1)
        Log probabilities, and ones.
    proba : ndarray of float, shape (n_samples, n_classes)
        Where the curvature is taken.
    mass : ndarray of float, shape (n_samples,)
        Weights of the rows, of sum 1.
    ridge : ndarray of shape (n_classes + 1, n_classes)
    """

    def __init__(self, features: Floats, proba: Floats, mass: Floats, ridge: Float64s) -> None:
        largest = float(np.einsum("i,ij,ij->j", mass, features, features).max())
        ridge = np.maximum(ridge, _WEAKEST * float(np.finfo(features.dtype).eps) * largest)
        self._root: Floats = (1.0 / np.sqrt(ridge.T)).astype(features.dtype)
        kind = _FullBlocks if features.shape[1] <= _LARGEST else _FewRows
        self._blocks = kind(features, proba, mass, self._root)
        self._vector = _invert_vector(features, proba, mass, np.diagonal(ridge), ridge[-1])

    def solve(self, gradient: Float64s) -> Float64s:
        """The step for a gradient of shape (n_classes + 1, n_classes)."""
        scaled: Floats = (gradient.T * self._root).astype(self._root.dtype)
        step: Float64s = (self._blocks.solve(scaled) * self._root).T.astype(np.float64, order="C")
        own, bias = np.split(self._vector @ np.concatenate([np.diagonal(gradient), gradient[-1]]), 2)
        np.fill_diagonal(step, np.diagonal(step) + own)
        step[-1] += bias
        return step


class _FullBlocks:
    """Blocks stored as inverses; ``root`` scales the features of each class so that the ridge is 1."""

    def __init__(self, features: Floats, proba: Floats, mass: Floats, root: Floats) -> None:
        k, size = root.shape
        one = np.eye(size, dtype=features.dtype)
        self._inverses = np.empty((k, size, size), dtype=features.dtype)
        for c, scale in enumerate(root):
            rows, curvature = rows_that_matter(proba[:, c], mass)
            scaled = features[rows]
            scaled *= np.sqrt(curvature)[:, None]
            self._inverses[c] = np.linalg.inv(scaled.T @ scaled * np.outer(scale, scale) + one)

    def solve(self, gradient: Floats) -> Floats:
        """Each class's inverse times its row."""
        out: Floats = np.matmul(self._inverses, gradient[:, :, None])[:, :, 0]
        return out


class _FewRows:
    """Blocks of the few rows of largest curvature and the mean of all others: ``U^T U`` with a flat U.

    Woodbury's formula makes ``1 - U^T (1 + U U^T)^-1 U`` of it, so memory is a multiple of W's.
    """

    def __init__(self, features: Floats, proba: Floats, mass: Floats, root: Floats) -> None:
        n_rows = min(_ROWS, features.shape[0])
        self._rows = np.empty((root.shape[0], n_rows + 1, root.shape[1]), dtype=features.dtype)
        for c, scale in enumerate(root):
            curvature = proba[:, c] * (1.0 - proba[:, c]) * mass
            largest = np.argpartition(-curvature, n_rows - 1)[:n_rows]
            self._rows[c, :-1] = features[largest] * np.sqrt(curvature[largest])[:, None]
            curvature[largest] = 0.0
            total = max(float(curvature.sum()), float(np.finfo(curvature.dtype).tiny))
            self._rows[c, -1] = curvature @ features / np.sqrt(total, dtype=curvature.dtype)
            self._rows[c] *= scale
        inner = np.matmul(self._rows, self._rows.transpose(0, 2, 1))
        self._inner = np.linalg.inv(inner + np.eye(n_rows + 1, dtype=inner.dtype))

    def solve(self, gradient: Floats) -> Floats:
        """Each class's inverse times its row."""
        seen = np.matmul(self._inner, np.matmul(self._rows, gradient[:, :, None]))
        out: Floats = gradient - np.matmul(seen.transpose(0, 2, 1), self._rows)[:, 0]
        return out


def _invert_vector(
    features: Floats, proba: Floats, mass: Floats, diagonal: Float64s, bias: Float64s
) -> Float64s:
    """The inverse of the Hessian by the diagonal of W and by b, of shape (2k, 2k)."""
    k = proba.shape[1]
    hessian = np.diag(np.concatenate([diagonal, bias]))
    # The mean of the diagonal is free.
    hessian[:k, :k] -= diagonal / k
    for rows in row_blocks(features.shape[0], 2 * k):
        likely = proba[rows].astype(np.float64)
        logs, weight = features[rows, :k].astype(np.float64), mass[rows, None].astype(np.float64)
        along = np.hstack([logs * likely, likely])
        hessian -= along.T @ (weight * along)
        likely *= weight
        sums = [np.einsum("ij,ij->j", likely, logs**power) for power in (0, 1, 2)]
        hessian += np.block([[np.diag(sums[2]), np.diag(sums[1])], [np.diag(sums[1]), np.diag(sums[0])]])
    root: Float64s = 1.0 / np.sqrt(np.diagonal(hessian))
    scales: Float64s = np.outer(root, root)
    scaled = hessian * scales + _JITTER * np.eye(2 * k)
    inverse: Float64s = np.linalg.inv(scaled) * scales
    return inverse
