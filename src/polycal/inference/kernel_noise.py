"""A test of the whole prediction by all rows, in time linear in their number: alike predictions, told by landmarks."""

from collections.abc import Sequence

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.inference.redraw import Noise, draw_labels
from polycal.kernels.kernels import Kernel
from polycal.sample import Sample

# Predictions that others are compared with, and draws that the kernels' sizes are made comparable by.
_LANDMARKS, _PILOTS = 128, 20
# Rows up to which the test is worth its time: beyond, half of them show nearly as much.
MOST_ROWS = 20_000


def kernel_noise(sample: Sample, kernels: Sequence[Kernel], seed: int) -> Noise:
    r"""The largest of several kernels' statistics, and how to draw it for labels drawn from the predictions.

    Notes
    -----
    With :math:`\mathbf k(v)` the kernel between v and 128 of the predictions, a kernel's statistic is
    :math:`\sum_{i \ne j} \langle \mathbf k(v_i), \mathbf k(v_j) \rangle \langle r_i, r_j \rangle`, of mean 0 for
    calibrated predictions, in units of its size on labels drawn from these. Landmarks and units do not depend on
    the labels seen, so that the rank of the statistic among drawn ones is a valid p-value. A draw costs 128 n
    additions for each kernel.
    """
    rng = np.random.default_rng(seed)
    # By functions of the predictions that do not change with the order of rows or classes.
    squares = np.einsum("ij,ij->i", sample.proba, sample.proba, dtype=np.float64)
    sample = sample.take(np.lexsort([np.round(key, 9) for key in (sample.proba.max(axis=1), squares)]))
    landmarks = sample.proba[rng.permutation(sample.n_samples)[:_LANDMARKS]]
    forms = [_Form(kernel, sample, landmarks) for kernel in kernels]
    pilots = np.array([[form(draw_labels(sample.proba, rng)) for form in forms] for _ in range(_PILOTS)])
    units = np.sqrt(np.square(pilots).mean(axis=0)) + np.finfo(float).tiny

    def largest(labels: Ints) -> float:
        return max(form(labels) / float(unit) for form, unit in zip(forms, units, strict=True))

    return Noise(largest(sample.labels), lambda rng: largest(draw_labels(sample.proba, rng)))


class _Form:
    """``sum_{i != j} <k(v_i), k(v_j)> <r_i, r_j>`` as a function of the labels."""

    def __init__(self, kernel: Kernel, sample: Sample, landmarks: Floats) -> None:
        self._proba = sample.proba
        likeness = kernel.resolve(sample.proba).block(
            sample.proba.astype(np.float32, copy=False), landmarks.astype(np.float32, copy=False)
        )
        self._likeness = likeness * (sample.mass * sample.n_samples).astype(np.float32)[:, None]
        self._expected: Float64s = self._likeness.astype(np.float64).T @ sample.proba
        self._lengths = np.einsum("ij,ij->i", self._likeness, self._likeness, dtype=np.float64)
        self._squares = np.einsum("ij,ij->i", sample.proba, sample.proba, dtype=np.float64)

    def __call__(self, labels: Ints) -> float:
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

        n, k = self._proba.shape
        happened = csr_array((np.ones(n, dtype=np.float32), labels, np.arange(n + 1)), shape=(n, k))
        residual = (happened.T @ self._likeness).T - self._expected
        own = 1.0 + self._squares - 2.0 * np.take_along_axis(self._proba, labels[:, None], axis=1)[:, 0]
        return float(np.einsum("ij,ij->", residual, residual) - self._lengths @ own)
