"""Kernel auditing of lists of classes: one matrix of sums, however many rows."""

import hashlib
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.kernels._base import Kernel
from polycal.kernels.radial import Gaussian
from polycal.kernels.saved import unpack_kernel
from polycal.sparse._gate import check_lists
from polycal.sparse._lists import Landmarks, known_residual
from polycal.sparse._sample import SparseSample, sums_at
from polycal.sparse.kernel import ListKernelWitness
from polycal.states._landmarks import LandmarkSums, landmark_coefficients
from polycal.states._lists import ListState
from polycal.storage.model import Arrays

_DEFAULT_KERNEL = Gaussian(0.2)
# Classes whose coefficients are solved for at once.
_BLOCK_CLASSES = 8192


class TruncatedKernelState(ListState):
    r"""The kernel auditor on any number of lists of classes, none of which is made dense.

    Parameters
    ----------
    landmarks : SciPy sparse matrix of shape (n_landmarks, n_classes)
        Lists whose likenesses serve as features: say, a few hundred rows drawn at random.
    kernel : Kernel, default Gaussian(0.2)
        What "alike" means: a kernel of inner products (Gaussian, Laplace, Multinomial).

    See Also
    --------
    KernelState : The same for full predictions.

    Notes
    -----
    The lists themselves are the points that are compared, and nothing is assumed of what they leave over. The residual
    of a class is known where it is listed; of all classes that a row does not list, the sum of their residuals is
    known, ``[label not listed] - rest``, and they share one weight. So every correlation is exact, for every way of
    completing the lists; the price is that classes are not told apart where they are not listed. Lists without
    a rest give the witness of `KernelState` without amplification; `ListKernelWitness.amplified` chooses that.

    Cost: O(D) for each listed entry, and the likenesses with D landmarks; memory: D (k + 1) numbers, blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> import polycal.sparse
    >>> from polycal.states.truncated_kernel import TruncatedKernelState
    >>> top = csr_array(np.repeat([[0.6, 0.0, 0.3, 0.0], [0.0, 0.7, 0.0, 0.2]], 50, axis=0))
    >>> y_true = np.repeat([0, 2, 1, 3], [20, 30, 35, 15])
    >>> witness = TruncatedKernelState(top[::10]).update(y_true, top).finish()
    >>> round(float(witness.correlations(polycal.sparse.sparse_sample(y_true, top)).mean()), 3)
    0.371
    """

    family: ClassVar[str] = "truncated-kernel"
    remainder = "anywhere"

    def __init__(self, landmarks: Any, kernel: Kernel = _DEFAULT_KERNEL) -> None:
        super().__init__()
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel such as Gaussian(0.2); got {kernel!r}.")
        if isinstance(landmarks, Landmarks):
            self.landmarks = landmarks
        else:
            lists, n_classes = check_lists(landmarks, "landmarks")
            if lists.indices.size == 0:
                raise ValueError("landmarks lists no class; give some rows of the predictions.")
            self.landmarks = Landmarks.of(lists.indptr, lists.indices, lists.values, n_classes)
        self.kernel = kernel.resolve(self.landmarks.points)
        self._matrix = np.zeros((self.landmarks.n_classes + 1, self.landmarks.size))
        self._absolute = np.zeros(self.landmarks.n_classes + 1)

    def finish(self) -> ListKernelWitness:
        """The witness found in all rows."""
        n_classes = self._seen()
        coefficients = np.empty(self._matrix.shape, dtype=np.float32)
        norms = np.empty(n_classes + 1)
        for start in range(0, n_classes + 1, _BLOCK_CLASSES):
            block = slice(start, start + _BLOCK_CLASSES)
            sums = LandmarkSums(np.ascontiguousarray(self._matrix[block].T), self._absolute[block])
            found, norms[block] = landmark_coefficients(self.kernel, self.landmarks.points, sums)
            coefficients[block] = found.T
        return ListKernelWitness(
            self.kernel,
            self.landmarks,
            coefficients,
            norms / (self.total_weight * np.sqrt(self.kernel.bound)),
            1.0,
            n_classes,
            self.class_names,
        )

    def parameters(self) -> dict[str, Any]:
        """Kernel and landmarks (their checksum)."""
        contents = self.landmarks.columns.tobytes() + self.landmarks.points.tobytes()
        return {"kernel": self.kernel.describe(), "landmarks": hashlib.sha256(contents).hexdigest()}

    def arrays(self) -> Arrays:
        """Kernel, landmarks and sums."""
        return {
            **self.kernel.state(),
            "columns": self.landmarks.columns,
            "points": self.landmarks.points,
            "matrix": self._matrix,
            "absolute": self._absolute,
        }

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:  # noqa: ARG003 - all is in the arrays
        """A state from what was saved."""
        landmarks = Landmarks(arrays["columns"], arrays["points"], int(arrays["absolute"].size) - 1)
        state = cls(landmarks, unpack_kernel(arrays))
        state._matrix, state._absolute = arrays["matrix"], arrays["absolute"]
        return state

    def _open(self, n_classes: int) -> None:
        if n_classes != self.landmarks.n_classes:
            raise ValueError(
                f"the chunk has {n_classes} classes but the landmarks have {self.landmarks.n_classes}."
            )

    def _add(self, sample: Any, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        from polycal._compiled.lists import add_outer  # noqa: PLC0415 - imports numba

        for block in self.landmarks.blocks(sample):
            part: SparseSample = sample.take(np.arange(block.start, block.stop))
            indptr, indices, values = known_residual(part, weight[block])
            add_outer(self._matrix, indptr, indices, values, self.landmarks.likeness(self.kernel, part))
            self._absolute += sums_at(indices, np.abs(values), self._absolute.size)

    def _merge(self, other: "TruncatedKernelState") -> None:
        self._matrix += other._matrix
        self._absolute += other._absolute
