"""States of predictions that are lists of classes."""

from typing import Annotated, Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_choice, check_kernel, check_real, class_set
from polycal.kernels.kernels import Gaussian, Kernel
from polycal.sparse._gate import REMAINDERS, check_lists, check_sparse_chunk
from polycal.sparse._lists import Landmarks, known_residual
from polycal.sparse._sample import Remainder, SparseSample, sums_at
from polycal.sparse.kernel import ListKernelWitness
from polycal.sparse.smooth import SmoothInterval
from polycal.states.base import State
from polycal.states.kernel import LandmarkSums, landmark_coefficients
from polycal.states.questions import Cells
from polycal.storage.rules import Array, ClassSet, Kept, Part, Real, expect


class ListState(State):
    """A state whose chunks are SciPy sparse matrices.

    Attributes
    ----------
    remainder : str
        What is said of the probability that lists leave over.
    """

    remainder: str

    def update(
        self,
        y_true: Any,
        y_proba: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        from_logits: bool = False,
        first_row: int | None = None,
    ) -> Self:
        """Take in a chunk of rows, as a SciPy sparse matrix; otherwise as every state."""
        del first_row
        if from_logits:
            raise ValueError("logits cannot be truncated: a class that is not listed would have logit 0.")
        sample = check_sparse_chunk(
            y_true, y_proba, remainder=self.remainder, sample_weight=sample_weight, class_names=class_names
        )
        self.absorb(sample, np.empty(0, dtype=np.int64))  # type: ignore[arg-type]  # it has what is asked of it
        return self


class TruncatedQuestionState(ListState):
    r"""The smooth calibration error of "is the label in `subset`?", from lists of the most likely classes.

    Parameters
    ----------
    subset : list of class indices
        The classes that count as "yes".
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        What is said of the probability that a list leaves over, as for `polycal.sparse.sparse_sample`.
    resolution : float, default 2**-16
        Width of the cells in which predictions are compacted, as for `QuestionState`.

    See Also
    --------
    polycal.sparse.smooth_calibration_error : The same for lists that fit into memory.

    Notes
    -----
    `update` takes a SciPy sparse matrix of shape (n, k), whose rows sum to at most 1, and never makes it dense. A
    stored 0 is a listed class of probability 0. `finish` returns a `SmoothInterval`.

    See `polycal.sparse.smooth_calibration_error` for what lists tell of a set of classes and what not. Its interval
    is the sharper one, because it looks at all rows at once; here those for references at the middles of the
    intervals, for constant weight functions and for the mean of :math:`|y - u|` are left, all of which are sums, and
    the bound for the cells is added. Cost: O(listed entries); memory: 2 / `resolution` numbers, whatever k.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> import polycal as pc
    >>> top = csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]])
    >>> summary = pc.TruncatedQuestionState([0, 1]).update([1, 2], top).finish()
    >>> round(summary.low, 3), round(summary.high, 3), round(summary.unknown, 3)
    (0.25, 0.353, 0.075)
    """

    family: ClassVar[str] = "truncated"

    subset: Annotated[list[int], ClassSet()]
    remainder: Annotated[str, Kept()]
    resolution: Annotated[float, Real(low=1e-6, high=0.5)]
    _cells: Annotated[Cells, Part((Cells,))]
    _sums: Annotated[Float64s, Array("float64", "5")]

    def __init__(
        self, subset: Any, *, remainder: Remainder = "unknown", resolution: float = 2.0**-16
    ) -> None:
        super().__init__()
        self.subset = [int(c) for c in np.unique(np.asarray(subset, dtype=np.int64))]
        check_choice(remainder, "remainder", REMAINDERS)
        self.remainder = remainder
        self.resolution = check_real(resolution, "resolution", low=1e-6, high=0.5)
        self._members: Ints = np.array(self.subset, dtype=np.int64)
        self._cells = Cells.empty(1, int(np.ceil(1.0 / self.resolution)))
        # Sums of weight times: the length of the interval, what leaving its middle changes at most, the least and the
        # negative of the most that the residual can be, and the most that its absolute value can be.
        self._sums = np.zeros(5)

    def finish(self) -> SmoothInterval:
        """The question's error over all rows, as far as it is known."""
        self._seen()
        summary = self._cells.summary(0, self.total_weight)
        unknown, slack, more, less, most = (float(total) for total in self._sums / self.total_weight)
        slack += summary.bound
        low = max(0.0, more, less, summary.value - slack)
        return SmoothInterval(low, max(low, min(most, summary.value + slack)), summary.value, unknown)

    def _check_sums(self, n_classes: int) -> None:
        self._open(n_classes)
        self._cells.check_sums(1, self.resolution, self.total_weight)
        expect(
            (np.abs(self._sums) <= 2.0 * self.total_weight * (1.0 + 1e-6)).all(),
            "intervals must lie in 0 to 1",
        )

    def _open(self, n_classes: int) -> None:
        self._members = class_set(self.subset, n_classes, None, "subset")

    def _add(self, sample: Any, weight: Float64s, rows: Ints) -> None:  # noqa: ARG002 - places do not matter
        low, high = sample.subset_range(self._members)
        hits = sample.subset_hits(self._members)
        middle, length = (low + high) / 2.0, high - low
        self._cells.add(middle[:, None], ~hits, weight)
        change = length / 2.0 * (1.0 + np.abs(hits - middle))
        most = np.maximum(np.abs(hits - low), np.abs(hits - high))
        self._sums += np.stack([length, change, hits - high, low - hits, most]) @ weight

    def _merge(self, other: "TruncatedQuestionState") -> None:
        self._cells.merge(other._cells)
        self._sums += other._sums


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
    >>> import polycal as pc
    >>> top = csr_array(np.repeat([[0.6, 0.0, 0.3, 0.0], [0.0, 0.7, 0.0, 0.2]], 50, axis=0))
    >>> y_true = np.repeat([0, 2, 1, 3], [20, 30, 35, 15])
    >>> witness = pc.TruncatedKernelState(top[::10]).update(y_true, top).finish()
    >>> round(float(witness.correlations(polycal.sparse.sparse_sample(y_true, top)).mean()), 3)
    0.371
    """

    family: ClassVar[str] = "truncated-kernel"

    landmarks: Annotated[Landmarks, Part((Landmarks,))]
    kernel: Annotated[Kernel, Part((Kernel,))]
    _matrix: Annotated[Float64s, Array("float64", "n_columns n_landmarks")]
    _absolute: Annotated[Float64s, Array("float64", "n_columns", low=0)]
    remainder = "anywhere"

    def __init__(self, landmarks: Any, kernel: Kernel = _DEFAULT_KERNEL) -> None:
        super().__init__()
        check_kernel(kernel)
        if isinstance(landmarks, Landmarks):
            self.landmarks = landmarks
        else:
            lists, n_classes = check_lists(landmarks, "landmarks")
            if lists.indices.size == 0:
                raise ValueError("landmarks lists no class; give some rows of the predictions.")
            self.landmarks = Landmarks.of(lists.indptr, lists.indices, lists.values, n_classes)
        self.kernel = kernel.resolve(self.landmarks.points)
        self._matrix = np.zeros((0, self.landmarks.size))
        self._absolute = np.zeros(0)

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

    def _check_sums(self, n_classes: int) -> None:
        expect(self.landmarks.n_classes == n_classes, "the landmarks must be of the same classes")
        expect(
            self._matrix.shape == (n_classes + 1, self.landmarks.size), "there must be sums for each landmark"
        )

    def _open(self, n_classes: int) -> None:
        if n_classes != self.landmarks.n_classes:
            raise ValueError(
                f"the chunk has {n_classes} classes but the landmarks have {self.landmarks.n_classes}."
            )
        self._matrix = np.zeros((n_classes + 1, self.landmarks.size))
        self._absolute = np.zeros(n_classes + 1)

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
