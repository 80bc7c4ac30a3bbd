"""Products with kernel matrices that are never stored: blocks of rows, in one pass."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import numpy as np

from polycal._threads import one_blas_thread
from polycal._typing import Float64s, Floats
from polycal.kernels.kernels import Kernel
from polycal.sample import Sample, row_blocks

# Side of a block. Large, so that the matrix products run at full speed: 16 MiB in float32.
_SIDE = 2048
# Samples with more rows than this are searched in float32.
_FLOAT32_ROWS = 4096


def search_dtype(sample: Sample) -> type[np.floating]:
    """Float32 for large samples: a search may round, what it finds is judged in float64."""
    return np.float32 if sample.n_samples > _FLOAT32_ROWS else np.float64


def residuals(sample: Sample, dtype: type[np.floating]) -> Floats:
    """``weight_i (y_i - v_i)`` with weights of mean 1: (n, k), in ``dtype``."""
    weight = sample.mass * sample.n_samples
    out = np.empty(sample.proba.shape, dtype=dtype)
    for rows in row_blocks(*out.shape):
        np.negative(sample.proba[rows], out=out[rows])
        out[rows][np.arange(rows.stop - rows.start), sample.labels[rows]] += 1
        if sample.sample_weight is not None:
            out[rows] *= weight[rows, None]
    return out


def lower_blocks(
    kernel: Kernel, points: Floats, *, diagonal: bool = True
) -> Iterator[tuple[slice, slice, Floats]]:
    """The blocks on and below the diagonal of the kernel matrix: (rows, columns, block).

    Without ``diagonal`` the entries of equal row and column are 0.
    """
    sides = _sides(points.shape[0])
    for i, rows in enumerate(sides):
        for columns in sides[: i + 1]:
            block = kernel.block(points[rows], points[columns])
            if rows == columns and not diagonal:
                np.fill_diagonal(block, 0)
            yield rows, columns, block


def kernel_times(
    kernel: Kernel, points: Floats, values: Floats, *, at: Floats | None = None, diagonal: bool = True
) -> Float64s:
    """``K @ values``, where K holds the kernel of each row of ``at`` (by default the points) with each point.

    Parameters
    ----------
    kernel : Kernel
    points : ndarray of shape (n, k)
    values : ndarray of shape (n, p)
    at : ndarray of shape (m, k), optional
        By default the points; each block is then computed once and used for both of its places.
    diagonal : bool, default True
        Whether pairs of a point with itself count (without ``at`` only).

    Returns
    -------
    ndarray of float64, shape (m, p)
    """
    if at is None:
        return _symmetric_times(kernel, points, values, diagonal=diagonal)
    out = np.zeros((at.shape[0], values.shape[1]))
    with block_threads(points):
        for rows in _sides(at.shape[0]):
            for columns in _sides(points.shape[0]):
                out[rows] += kernel.block(at[rows], points[columns]) @ values[columns]
    return out


def _symmetric_times(kernel: Kernel, points: Floats, values: Floats, *, diagonal: bool) -> Float64s:
    out = np.zeros((points.shape[0], values.shape[1]))
    with block_threads(points):
        for rows, columns, block in lower_blocks(kernel, points, diagonal=diagonal):
            out[rows] += block @ values[columns]
            if rows != columns:
                out[columns] += block.T @ values[rows]
    return out


def cross_times(
    kernel: Kernel, left: Floats, right: Floats, left_values: Floats, right_values: Floats
) -> tuple[Float64s, Float64s]:
    """``K @ right_values`` and ``K.T @ left_values`` for the kernel K of left and right points, in one pass."""
    at_left = np.zeros((left.shape[0], right_values.shape[1]))
    at_right = np.zeros((right.shape[0], left_values.shape[1]))
    with block_threads(left):
        for rows in _sides(left.shape[0]):
            for columns in _sides(right.shape[0]):
                block = kernel.block(left[rows], right[columns])
                at_left[rows] += block @ right_values[columns]
                at_right[columns] += block.T @ left_values[rows]
    return at_left, at_right


def quadratic_forms(kernel: Kernel, points: Floats, values: Floats, *, diagonal: bool = True) -> Float64s:
    """``sum_ij values_i^l values_j^l ker(v_i, v_j)`` for each column l.

    Half the work of `kernel_times`: a block's transpose adds the same amount as the block.
    """
    total = np.zeros(values.shape[1])
    with block_threads(points):
        for rows, columns, block in lower_blocks(kernel, points, diagonal=diagonal):
            form = np.einsum("ij,ij->j", values[rows], block @ values[columns], dtype=np.float64)
            total += form if rows == columns else 2 * form
    return total


def block_threads(points: Floats) -> AbstractContextManager[None]:
    """One thread for the products of blocks, unless these are large."""
    return one_blas_thread(min(_SIDE, points.shape[0]) ** 2 * points.shape[1])


def _sides(n: int) -> list[slice]:
    return [slice(start, min(start + _SIDE, n)) for start in range(0, n, _SIDE)]
