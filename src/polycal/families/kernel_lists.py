"""The kernel search by landmarks, and its form for lists: each row is compared with a few predictions, not with all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal._validation import check_sample
from polycal.families.auditor import AMPLIFICATIONS, amplified_gains
from polycal.families.witness import Witness
from polycal.kernels.kernels import Kernel, ball_scale
from polycal.listed import ListedSample, with_entries
from polycal.sample import Sample, row_blocks, sums_at
from polycal.storage.rules import Array, Part, Real, Rows, Whole, expect
from polycal.storage.saved import Checked, Saved

# Landmarks among lists, and numbers of their sums.
_MOST_LANDMARKS, _FEWEST_LANDMARKS, _MOST_SUMS = 512, 16, 1 << 23
# Classes whose coefficients are solved for at once.
_BLOCK_CLASSES = 8192
# Added to the diagonal, relative to the kernel's bound: landmarks may be (nearly) equal.
_RIDGE = 1e-5
# As for the kernel auditor: a norm this small beside the largest it could be is rounding.
_RELATIVE_ZERO = 1e-8
# Coefficients and amplification beyond this could overflow in single precision.
_STEEPEST = 1e20


@dataclass(eq=False)
class LandmarkSums(Saved):
    """``sum_i ker(u_j, v_i) z_i^l`` of shape (n_landmarks, k), of lists (k + 1, n_landmarks), and ``sum_i |z_i^l|``."""

    matrix: Annotated[Float64s, Array("float64", "height width")]
    absolute: Annotated[Float64s, Array("float64", "n_columns", low=0)]
    role: ClassVar[str] = "part"
    family: ClassVar[str] = "landmark-sums"

    def __iadd__(self, other: "LandmarkSums") -> "LandmarkSums":
        self.matrix += other.matrix
        self.absolute += other.absolute
        return self


def landmark_coefficients(kernel: Kernel, landmarks: Floats, sums: LandmarkSums) -> tuple[Float64s, Float64s]:
    """``(K + e)^-1 A_l / (lambda_l s)`` and lambda, its norm times s (or a little more)."""
    from scipy.linalg import cholesky, solve_triangular  # noqa: PLC0415 - slow to import

    points = landmarks.astype(np.float64)
    likeness = kernel.block(points, points)
    likeness[np.diag_indices_from(likeness)] += _RIDGE * kernel.bound
    factor = cholesky(likeness, lower=True, overwrite_a=True, check_finite=False)
    features = solve_triangular(factor, sums.matrix, lower=True, check_finite=False)
    forms = np.einsum("ij,ij->j", features, features)
    forms[forms <= _RELATIVE_ZERO * sums.absolute**2 * kernel.bound] = 0.0
    norms: Float64s = np.sqrt(forms)
    features *= ball_scale(kernel, norms)
    return solve_triangular(factor, features, lower=True, trans="T", check_finite=False), norms


@dataclass(frozen=True, eq=False)
class Landmarks(Checked):
    """Lists to which others are compared, kept in the columns of the classes that any of them lists.

    Attributes
    ----------
    columns : ndarray of int64
        These classes, increasing.
    points : ndarray of shape (n_landmarks, n_columns + 1)
        The listed probabilities, and a last column of zeros.
    n_classes : int
        Number of all classes.

    Notes
    -----
    Kernels here look at inner products only. Those with a landmark need no other class than the landmark's; the
    norm of a list is kept by putting that of all its other classes into one more column.
    """

    columns: Annotated[Ints, Array("int64", "n_columns", low=0, below="n_classes", rises=True)]
    points: Annotated[Floats, Rows("float64", "n_landmarks n_columns+1", listed=True)]
    n_classes: Annotated[int, Whole(low=2)]
    role: ClassVar[str] = "part"
    family: ClassVar[str] = "lists"

    def _check(self) -> None:
        super()._check()
        expect(self.points.size and not self.points[:, -1].any(), "the last column must be of zeros")

    @classmethod
    def of(cls, lists: Any) -> "Landmarks":
        """From a CSR array of lists, each kept once."""
        if lists.nnz == 0:
            raise ValueError("landmarks lists no class; give some rows of the predictions.")
        columns = np.unique(lists.indices).astype(np.int64)
        points = np.zeros((lists.shape[0], columns.size + 1))
        rows = np.repeat(np.arange(lists.shape[0]), np.diff(lists.indptr))
        points[rows, np.searchsorted(columns, lists.indices)] = lists.data
        return cls(columns, np.unique(points, axis=0), lists.shape[1])

    @classmethod
    def among(cls, sample: ListedSample) -> "Landmarks":
        """Rows of a sample at equal distances: as many as fit into 64 MiB of sums, at most 512."""
        size = min(
            _MOST_LANDMARKS, max(_FEWEST_LANDMARKS, _MOST_SUMS // (sample.n_classes + 1)), sample.n_samples
        )
        return cls.of(sample.proba[np.linspace(0, sample.n_samples - 1, size).astype(np.int64)])

    @property
    def size(self) -> int:
        """How many landmarks there are."""
        return int(self.points.shape[0])

    def blocks(self, sample: ListedSample) -> list[slice]:
        """Rows that can be compared at once."""
        return list(row_blocks(sample.n_samples, max(self.points.shape)))

    def likeness(self, kernel: Kernel, sample: ListedSample) -> Float64s:
        """The kernel of each row with each landmark: a few rows at a time, see `blocks`."""
        place = np.searchsorted(self.columns, sample.indices)
        found = self.columns[np.minimum(place, self.columns.size - 1)] == sample.indices
        points = np.zeros((sample.n_samples, self.points.shape[1]))
        points[sample.rows[found], place[found]] = sample.values[found]
        points[:, -1] = np.sqrt(sample.row_sums(np.where(found, 0.0, sample.values**2)))
        return self._block(kernel, points)

    def dense_likeness(self, kernel: Kernel, proba: Floats) -> Float64s:
        """The same for full predictions."""
        other: Bools = np.ones(self.n_classes, dtype=np.bool_)
        other[self.columns] = False
        norms = np.sqrt(np.einsum("ij,ij->i", proba[:, other], proba[:, other], dtype=np.float64))
        return self._block(kernel, np.column_stack([proba[:, self.columns], norms]).astype(np.float64))

    def _block(self, kernel: Kernel, points: Float64s) -> Float64s:
        block: Float64s = kernel.block(points, self.points).astype(np.float64)
        return block

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Of the sums: height, width, and number of residuals."""
        return self.n_classes + 1, self.size, self.n_classes + 1

    def zero(self) -> LandmarkSums:
        """The sums of no rows; the last row is that of all classes not listed."""
        return LandmarkSums(np.zeros((self.n_classes + 1, self.size)), np.zeros(self.n_classes + 1))

    def add(self, sums: LandmarkSums, kernel: Kernel, sample: Sample, weight: Float64s) -> LandmarkSums:
        """Take rows into the sums."""
        from polycal._compiled.lists import add_outer  # noqa: PLC0415 - imports numba

        if not isinstance(sample, ListedSample):
            raise TypeError("y_proba must be a SciPy sparse matrix, as the landmarks are.")
        for rows in self.blocks(sample):
            part = sample.take(rows)
            indptr, columns, values = known_residual(part, weight[rows])
            add_outer(sums.matrix, indptr, columns, values, self.likeness(kernel, part))
            sums.absolute += sums_at(columns, np.abs(values), sums.absolute.size)
        return sums

    def witness(
        self, sums: LandmarkSums, kernel: Kernel, total_weight: float, class_names: tuple[str, ...] | None
    ) -> "ListedKernelWitness":
        """The best witness of the unit ball, without amplification."""
        coefficients = np.empty(sums.matrix.shape, dtype=np.float32)
        norms = np.empty(sums.absolute.size)
        for start in range(0, norms.size, _BLOCK_CLASSES):
            block = slice(start, start + _BLOCK_CLASSES)
            part = LandmarkSums(np.ascontiguousarray(sums.matrix[block].T), sums.absolute[block])
            found, norms[block] = landmark_coefficients(kernel, self.points, part)
            coefficients[block] = found.T
        strengths = norms / (total_weight * np.sqrt(kernel.bound))
        return ListedKernelWitness(kernel, self, coefficients, strengths, 1.0, self.n_classes, class_names)

    def gains(self, sums: LandmarkSums, kernel: Kernel, sample: Sample) -> Float64s:
        """What the witness of the sums is worth on other rows, for every amplification of `AMPLIFICATIONS`."""
        return self.witness(sums, kernel, 1.0, None).amplified_gains(sample)


def known_residual(sample: ListedSample, weight: Float64s) -> tuple[Ints, Ints, Float64s]:
    """The residuals that lists tell, as CSR arrays of k + 1 columns, times the weight of the row.

    Column j holds ``y_j - v_j`` where j is listed. The last one holds the sum over all classes that are not listed,
    ``[label not listed] - rest``; rows without a rest know those classes too, and have the label among them in its
    own column.
    """
    missing = sample.label_entry < 0
    extra = np.flatnonzero(missing | (sample.rest > 0))
    columns = np.where(sample.rest[extra] == 0, sample.labels[extra], sample.n_classes)
    indptr, indices, values = with_entries(sample, extra, columns, sample.rest[extra] - missing[extra])
    values = -values
    moved = sample.label_entry + (indptr - sample.indptr)[:-1]
    values[moved[~missing]] += 1.0
    values *= np.repeat(weight, np.diff(indptr))
    return indptr, indices, values


@dataclass(frozen=True, eq=False, repr=False)
class ListedKernelWitness(Witness):
    r"""w_l(v) = c sum_j a_jl ker(u_j, t), clipped to [-1, 1], where t is the list that is kept of v.

    Classes that a list leaves out share one weight, that of a class "none of the listed". So the correlation of
    a row follows from its list, whatever the rest is like:
    :math:`\langle y - v, w \rangle = \sum_{l \in t} (y_l - v_l) w_l + ([\text{label not in } t] - \text{rest}) w_{k}`.

    Attributes
    ----------
    kernel : Kernel
        The likeness of two lists.
    landmarks : Landmarks
        The lists u_j.
    coefficients : ndarray of shape (n_classes + 1, n_landmarks)
        a_jl; the last row is that of all classes not listed.
    strengths : ndarray of shape (n_classes + 1,)
        What each class adds to the correlation on the rows it was found on, with c = 1.
    amplification : float
        c, at least 1.
    """

    kernel: Annotated[Kernel, Part((Kernel,))]
    landmarks: Annotated[Landmarks, Part((Landmarks,))]
    coefficients: Annotated[Floats, Array("floats", "n_classes+1 size", low=-_STEEPEST, high=_STEEPEST)]
    strengths: Annotated[Float64s, Array("float64", "n_classes+1")]
    amplification: Annotated[float, Real(low=1, high=_STEEPEST)]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "list-kernel"

    def _check(self) -> None:
        super()._check()
        agree = (
            self.landmarks.n_classes == self.n_classes and self.landmarks.size == self.coefficients.shape[1]
        )
        expect(agree, "the landmarks must be of the same classes and number")

    def evaluate(self, proba: Floats) -> Float64s:
        """At full predictions, which are lists without a rest."""
        values: Float64s = self.landmarks.dense_likeness(self.kernel, proba) @ self.coefficients[:-1].T
        values *= self.amplification
        return np.clip(values, -1.0, 1.0, out=values)

    def correlations(self, sample: Sample) -> Float64s:
        """``<y - v, w(v)>`` of each row, of lists or of full predictions."""
        if not isinstance(sample, ListedSample):
            return super().correlations(sample)
        self._check_classes(sample)
        out = np.empty(sample.n_samples)
        for part, rows, _, gains in self._gains(sample, np.ones(sample.n_samples)):
            out[part] = sums_at(rows, gains, part.stop - part.start)
        return out

    def contributions(self, sample: ListedSample) -> Float64s:
        """What each class adds to the correlation where it is listed."""
        total = np.zeros(self.n_classes + 1)
        for _, _, columns, gains in self._gains(sample, sample.mass):
            total += sums_at(columns, gains, total.size)
        return total[:-1]

    def amplified(self, y_true: Any, y_proba: Any, *, sample_weight: Any = None) -> "ListedKernelWitness":
        """Choose the amplification c that suits rows which the witness was not found on, and is not judged on.

        Parameters
        ----------
        y_true, y_proba, sample_weight
            As for `smooth_calibration_error`, with `y_proba` a SciPy sparse matrix.

        Returns
        -------
        ListedKernelWitness
        """
        sample = check_sample(y_true, y_proba, sample_weight=sample_weight, remainder="anywhere")
        return replace(self, amplification=best_amplification(self.amplified_gains(sample)))

    def amplified_gains(self, sample: Sample) -> Float64s:
        """The correlation for every amplification of `AMPLIFICATIONS`."""
        if not isinstance(sample, ListedSample):
            raise TypeError("y_proba must be a SciPy sparse matrix.")
        gains = np.zeros(AMPLIFICATIONS.size)
        for _, _, _, residual, values in self._entries(sample, sample.mass):
            gains += amplified_gains(residual[:, None], values[:, None], np.ones(1))
        return gains

    def describe(self) -> str:
        """The kernel, and the classes that count most."""
        names = [*(self.name(c) for c in np.argsort(-self.strengths[:-1], kind="stable")[:3].tolist())]
        return f"{self.kernel.describe()} over {self.landmarks.size} lists, strongest for {', '.join(names)}"

    def _gains(self, sample: ListedSample, weight: Float64s) -> Iterator[tuple[slice, Ints, Ints, Float64s]]:
        """Blocks of rows; and of their entries the row in the block, the column, and what it adds."""
        for part, rows, columns, residual, values in self._entries(sample, weight):
            yield part, rows, columns, residual * np.clip(self.amplification * values, -1.0, 1.0)

    def _entries(
        self, sample: ListedSample, weight: Float64s
    ) -> Iterator[tuple[slice, Ints, Ints, Float64s, Float64s]]:
        """The same with residual, and value of the witness before clipping."""
        from polycal._compiled.lists import entry_products  # noqa: PLC0415 - imports numba

        for part in self.landmarks.blocks(sample):
            block = sample.take(part)
            indptr, columns, residual = known_residual(block, weight[part])
            likeness = self.landmarks.likeness(self.kernel, block)
            values = entry_products(indptr, columns, likeness, self.coefficients)
            yield part, np.repeat(np.arange(block.n_samples), np.diff(indptr)), columns, residual, values


def best_amplification(gains: Float64s) -> float:
    """The one with the largest gain, if any gains."""
    return float(AMPLIFICATIONS[np.argmax(gains)]) if gains.max() > 0 else 1.0


def find_in_lists(sample: ListedSample, kernel: Kernel, *, amplify: bool) -> ListedKernelWitness:
    """The witness of two halves of rows, one after the other; each half chooses the amplification of the other's."""
    landmarks = Landmarks.among(sample)
    kernel = kernel.resolve(landmarks.points)
    cut, mass = (sample.n_samples + 1) // 2, sample.mass
    halves = slice(0, cut), slice(cut, None)
    parts = [sample.take(half) for half in halves]
    sums, other = (
        landmarks.add(landmarks.zero(), kernel, part, mass[half])
        for part, half in zip(parts, halves, strict=True)
    )
    amplification = 1.0
    if amplify and parts[1].n_samples:
        gains = landmarks.gains(sums, kernel, parts[1]) + landmarks.gains(other, kernel, parts[0])
        amplification = best_amplification(gains)
    sums += other
    return replace(landmarks.witness(sums, kernel, 1.0, sample.class_names), amplification=amplification)
