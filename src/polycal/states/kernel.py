"""A kernel witness from one pass: sums of residuals weighed by likeness to landmarks."""

import hashlib
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal._validation import check_integer, check_proba
from polycal._validation_lists import check_landmarks
from polycal.families.auditor import amplified_gains
from polycal.families.kernel import KernelWitness
from polycal.families.kernel_lists import (
    Landmarks,
    LandmarkSums,
    ListedKernelWitness,
    ListedSums,
    best_amplification,
    landmark_coefficients,
)
from polycal.kernels.kernels import Gaussian, Kernel, unpack_kernel
from polycal.kernels.products import kernel_times
from polycal.listed import ListedSample
from polycal.sample import Sample, refuse_lists, row_blocks
from polycal.states.base import State
from polycal.states.rows import BottomLists, BottomRows, KeyedRows, Keys, row_keys
from polycal.storage.model import Arrays


def choose_landmarks(sample: Sample, n_random: int = 400) -> Floats:
    """The mean prediction of the rows of each most likely class, and the first ``n_random`` rows, in float32.

    With many classes the means matter most: predictions gather near the corners, and rows drawn at random miss
    most of a thousand of them.
    """
    top = np.argmax(sample.proba, axis=1)
    order = np.argsort(top, kind="stable")
    alike = np.split(order, np.flatnonzero(np.diff(top[order])) + 1)
    means = [sample.proba[rows].mean(axis=0, dtype=np.float64) for rows in alike]
    return np.concatenate([means, sample.proba[:n_random]]).astype(np.float32)


_PURPOSE = 2
_DEFAULT_KERNEL = Gaussian(0.2)
_HELD_BACK = 4096
# Rows whose keys are among this share of all keys may be held back to choose the amplification.
_SHARE_HELD_BACK = 4


class KernelState(State):
    r"""The kernel auditor on any number of rows: one D x k matrix of sums, with D landmarks.

    Parameters
    ----------
    landmarks : array-like of shape (n_landmarks, n_classes)
        Predictions whose likenesses serve as features: say, the mean prediction for each most likely class, and a
        few hundred rows drawn at random (see `SketchState`). Sums are accumulated in float64, products computed in
        the dtype of the landmarks.
    kernel : Kernel, default Gaussian(0.2)
        What "alike" means.
    n_held_back : int, default 4096
        Rows kept to choose the amplification on, at most a quarter of all. 0: no amplification.
    random_state : int, default 0
        Seed of the choice of those rows.

    See Also
    --------
    KernelAuditor : All pairs of rows, at a cost of the square of their number.

    Notes
    -----
    With landmarks :math:`u_1, \dots, u_D`, :math:`\mathbf k(v) = (\ker(u_j, v))_j` and K the kernel matrix of the
    landmarks, the state is :math:`A = \sum_i \mathbf k(v_i) z_i^T`: additive, and independent of K. `finish` returns
    the best witness of the unit ball of the span of the landmarks' features (Nystrom's approximation [1]_),

    .. math:: w_\ell(v) = \frac{\mathbf k(v)^T K^{-1} A_\ell}{\lambda_\ell s}, \qquad
              \lambda_\ell^2 = A_\ell^T K^{-1} A_\ell,

    which is the projection of the kernel auditor's own witness onto that span, and a `KernelWitness` like it, with
    the landmarks as its points. It stays in [-1, 1] for the same reason, also with the small ridge that is added to K:
    the norm of the sum before scaling is at most :math:`\lambda_\ell`. The amplification is chosen on rows held
    back from the sums; then these are added too. An approximation here never endangers a finding, because findings
    are judged on other rows.

    Chosen by measurement (50,000 rows of 100 classes): 500 landmarks keep 96 % of the exact auditor's held-out
    correlation at a few hundredths of its time, 500 random Fourier features 86 %. With 1,000 classes the means of the
    most likely classes keep 98 % (rows drawn at random: 57 %).
    Cost: 4 n D k multiply-adds; memory: D k numbers and the rows held back.

    References
    ----------
    .. [1] Williams and Seeger (2001), "Using the Nystrom method to speed up kernel machines".

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.states.kernel import KernelState
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> state = KernelState(fit.proba[:200])
    >>> for start in range(0, 4000, 1000):
    ...     part = slice(start, start + 1000)
    ...     _ = state.update(fit.labels[part], fit.proba[part])
    >>> state.finish().correlation(fresh) > 0.03
    True
    """

    family: ClassVar[str] = "kernel"

    def __init__(
        self,
        landmarks: Any,
        kernel: Kernel = _DEFAULT_KERNEL,
        *,
        n_held_back: int = _HELD_BACK,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel such as Gaussian(0.2); got {kernel!r}.")
        self.landmarks = np.unique(check_proba(landmarks, name="landmarks")[0], axis=0)
        self.kernel = kernel.resolve(self.landmarks)
        self.random_state = check_integer(random_state, "random_state", minimum=0)
        self.n_held_back = check_integer(n_held_back, "n_held_back", minimum=0)
        self._held_back = BottomRows(n_held_back)
        self._sums = LandmarkSums.zero(*self.landmarks.shape)

    def finish(self) -> KernelWitness:
        """The witness found in all rows."""
        n_classes = self._seen()
        held_back, sums = self._held_back.rows, self._sums
        amplification = 1.0
        if held_back is not None:
            amplification = self._amplification(held_back)
            sums = sums + self._products(held_back.proba, held_back.labels, held_back.weight)
        coefficients, norms = landmark_coefficients(self.kernel, self.landmarks, sums)
        return KernelWitness(
            self.kernel,
            self.landmarks,
            coefficients.astype(self.landmarks.dtype),
            norms / (self.total_weight * np.sqrt(self.kernel.bound)),
            amplification,
            n_classes,
            self.class_names,
        )

    def parameters(self) -> dict[str, Any]:
        """Kernel, landmarks (their checksum), and how rows are held back."""
        return {
            "kernel": self.kernel.describe(),
            "landmarks": hashlib.sha256(self.landmarks.tobytes()).hexdigest(),
            "n_held_back": self.n_held_back,
            "random_state": self.random_state,
        }

    def arrays(self) -> Arrays:
        """Kernel, landmarks, sums and the rows held back."""
        return {
            **self.kernel.state(),
            "landmarks": self.landmarks,
            "matrix": self._sums.matrix,
            "absolute": self._sums.absolute,
            **self._held_back.arrays(),
        }

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        size, seed = int(parameters["n_held_back"]), int(parameters["random_state"])
        state = cls(arrays["landmarks"], unpack_kernel(arrays), n_held_back=size, random_state=seed)
        state._sums = LandmarkSums(arrays["matrix"], arrays["absolute"])
        state._held_back = BottomRows.rebuild(size, arrays)
        return state

    def _open(self, n_classes: int) -> None:
        if n_classes != self.landmarks.shape[1]:
            raise ValueError(
                f"the chunk has {n_classes} classes but the landmarks have {self.landmarks.shape[1]}."
            )

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        refuse_lists(sample, "KernelState (but not ListedKernelState)")
        keys = row_keys(rows, self.random_state, _PURPOSE)
        chosen = _held_out(self._held_back, keys, weight)
        # Without weight instead of left out: that would copy all others.
        summed = weight.copy()
        summed[chosen] = 0.0
        self._sums += self._products(sample.proba, sample.labels, summed)
        self._hold_back(KeyedRows(sample.proba[chosen], sample.labels[chosen], weight[chosen], keys[chosen]))

    def _merge(self, other: "KernelState") -> None:
        self._sums += other._sums
        if other._held_back.rows is not None:
            self._hold_back(other._held_back.rows)

    def _hold_back(self, rows: KeyedRows) -> None:
        """Keep the rows, as far as there is room; those that have to go are added to the sums."""
        if rows.keys.size:
            out = self._held_back.admit(rows)
            self._sums += self._products(out.proba, out.labels, out.weight)

    def _products(self, proba: Floats, labels: Ints, weight: Float64s) -> LandmarkSums:
        """The sums over some rows."""
        sums = LandmarkSums.zero(*self.landmarks.shape)
        for rows in row_blocks(proba.shape[0], max(self.landmarks.shape)):
            points = proba[rows].astype(self.landmarks.dtype, copy=False)
            residual = _residual(points, labels[rows], weight[rows])
            sums.matrix += self.kernel.block(self.landmarks, points) @ residual
            sums.absolute += np.abs(residual).sum(axis=0, dtype=np.float64)
        return sums

    def _amplification(self, rows: KeyedRows) -> float:
        """The amplification that suits rows that are not in the sums."""
        coefficients, _ = landmark_coefficients(self.kernel, self.landmarks, self._sums)
        points = rows.proba.astype(self.landmarks.dtype, copy=False)
        values = kernel_times(self.kernel, self.landmarks, coefficients, at=points)
        residual = _residual(points, rows.labels, rows.weight)
        gains = amplified_gains(residual, values, np.ones(values.shape[1]))
        return best_amplification(gains)


def _residual(proba: Floats, labels: Ints, weight: Float64s) -> Floats:
    """``weight_i (y_i - v_i)``, in the dtype of the predictions."""
    residual: Floats = -proba
    residual[np.arange(labels.size), labels] += 1
    residual *= weight.astype(proba.dtype)[:, None]
    return residual


def _held_out(kept: BottomRows | BottomLists, keys: Keys, weight: Float64s) -> Ints:
    """The rows that may be kept apart: of all rows a share, by their keys."""
    if kept.size == 0:
        return np.empty(0, dtype=np.int64)
    chosen = kept.below(keys)
    candidate = keys[chosen] < np.uint64((2**64 - 1) // _SHARE_HELD_BACK)
    return chosen[candidate & (weight[chosen] > 0)]


class ListedKernelState(State):
    r"""The kernel auditor on any number of lists of classes, none of which is made dense.

    Parameters
    ----------
    landmarks : SciPy sparse matrix of shape (n_landmarks, n_classes), or Landmarks
        Lists whose likenesses serve as features: say, a few hundred rows drawn at random.
    kernel : Kernel, default Gaussian(0.2)
        What "alike" means: a kernel of inner products (Gaussian, Laplace, Multinomial).
    n_held_back, random_state
        As for `KernelState`, but by default there is no amplification.

    See Also
    --------
    KernelState : The same for full predictions.

    Notes
    -----
    The lists themselves are the points that are compared, and nothing is assumed of what they leave over. The residual
    of a class is known where it is listed; of all classes that a row does not list, the sum of their residuals is
    known, ``[label not listed] - rest``, and they share one weight. So every correlation is exact, for every way of
    completing the lists; the price is that classes are not told apart where they are not listed. Lists without
    a rest give the witness of `KernelState`.

    Cost: O(D) for each listed entry, and the likenesses with D landmarks; memory: D (k + 1) numbers, blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> import polycal as pc
    >>> from polycal.states.kernel import ListedKernelState
    >>> top = csr_array(np.repeat([[0.6, 0.0, 0.3, 0.0], [0.0, 0.7, 0.0, 0.2]], 50, axis=0))
    >>> y_true = np.repeat([0, 2, 1, 3], [20, 30, 35, 15])
    >>> witness = ListedKernelState(top[::10]).update(y_true, top).finish()
    >>> round(pc.certify(witness, y_true, top).estimate, 3)
    0.371
    """

    family: ClassVar[str] = "truncated-kernel"
    remainder = "anywhere"

    def __init__(
        self,
        landmarks: Any,
        kernel: Kernel = _DEFAULT_KERNEL,
        *,
        n_held_back: int = 0,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel such as Gaussian(0.2); got {kernel!r}.")
        self.landmarks = (
            landmarks if isinstance(landmarks, Landmarks) else Landmarks.of(check_landmarks(landmarks))
        )
        self.kernel = kernel.resolve(self.landmarks.points)
        self.random_state = check_integer(random_state, "random_state", minimum=0)
        self.n_held_back = check_integer(n_held_back, "n_held_back", minimum=0)
        self._held_back = BottomLists(n_held_back)
        self._sums = ListedSums.zero(self.landmarks)

    def finish(self) -> ListedKernelWitness:
        """The witness found in all rows."""
        self._seen()
        amplification, sums, held_back = 1.0, self._sums, self._held_back.rows
        if held_back is not None and held_back.sample_weight is not None and held_back.n_samples:
            amplification = best_amplification(self._witness(sums).amplified_gains(held_back))
            sums = ListedSums(sums.matrix.copy(), sums.absolute.copy())
            sums.add(self.kernel, self.landmarks, held_back, held_back.sample_weight)
        return replace(self._witness(sums), amplification=amplification)

    def parameters(self) -> dict[str, Any]:
        """Kernel, landmarks (their checksum), and how rows are held back, if they are."""
        contents = self.landmarks.columns.tobytes() + self.landmarks.points.tobytes()
        told: dict[str, Any] = {
            "kernel": self.kernel.describe(),
            "landmarks": hashlib.sha256(contents).hexdigest(),
        }
        if self.n_held_back:
            told |= {"n_held_back": self.n_held_back, "random_state": self.random_state}
        return told

    def arrays(self) -> Arrays:
        """Kernel, landmarks, sums and the rows held back."""
        return {
            **self.kernel.state(),
            "columns": self.landmarks.columns,
            "points": self.landmarks.points,
            "matrix": self._sums.matrix,
            "absolute": self._sums.absolute,
            **self._held_back.arrays(),
        }

    @classmethod
    def rebuild(cls, parameters: dict[str, Any], arrays: Arrays) -> Self:
        """A state from what was saved."""
        landmarks = Landmarks(arrays["columns"], arrays["points"], int(arrays["absolute"].size) - 1)
        size, seed = int(parameters.get("n_held_back", 0)), int(parameters.get("random_state", 0))
        state = cls(landmarks, unpack_kernel(arrays), n_held_back=size, random_state=seed)
        state._sums = ListedSums(arrays["matrix"], arrays["absolute"])
        state._held_back = BottomLists.rebuild(size, arrays)
        return state

    def _open(self, n_classes: int) -> None:
        if n_classes != self.landmarks.n_classes:
            raise ValueError(
                f"the chunk has {n_classes} classes but the landmarks have {self.landmarks.n_classes}."
            )

    def _add(self, sample: Sample, weight: Float64s, rows: Ints) -> None:
        if not isinstance(sample, ListedSample):
            raise TypeError(
                "y_proba must be a SciPy sparse matrix; for full predictions there is KernelState."
            )
        keys = row_keys(rows, self.random_state, _PURPOSE)
        chosen = _held_out(self._held_back, keys, weight)
        summed = weight.copy()
        summed[chosen] = 0.0
        self._sums.add(self.kernel, self.landmarks, sample, summed)
        if chosen.size:
            self._hold_back(replace(sample.take(chosen), sample_weight=weight[chosen]), keys[chosen])

    def _merge(self, other: "ListedKernelState") -> None:
        self._sums.merge(other._sums)
        if other._held_back.rows is not None:
            self._hold_back(other._held_back.rows, other._held_back.keys)

    def _hold_back(self, rows: ListedSample, keys: Keys) -> None:
        """Keep the rows, as far as there is room; those that have to go are added to the sums."""
        out, _ = self._held_back.admit(rows, keys)
        if out.sample_weight is not None and out.n_samples:
            self._sums.add(self.kernel, self.landmarks, out, out.sample_weight)

    def _witness(self, sums: ListedSums) -> ListedKernelWitness:
        return sums.witness(self.kernel, self.landmarks, self.total_weight, self.class_names)


def kernel_state(sample: Sample, kernel: Kernel = _DEFAULT_KERNEL, random_state: int = 0) -> State:
    """The kernel search of rows like these, with landmarks among them."""
    if isinstance(sample, ListedSample):
        return ListedKernelState(
            Landmarks.among(sample), kernel, n_held_back=_HELD_BACK, random_state=random_state
        )
    return KernelState(choose_landmarks(sample), kernel, random_state=random_state)
