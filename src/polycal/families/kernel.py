"""Functions in the ball of a reproducing kernel: the paper's Algorithm 2, its amplification, and a learner."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

import numpy as np

from polycal._typing import Float64s, Floats, Seed
from polycal._validation import check_integer, check_kernel, check_positive, keep_seed
from polycal.families.auditor import Auditor, amplified_gains, weighted_rows
from polycal.families.kernel_lists import ListedKernelWitness, best_amplification, find_in_lists
from polycal.families.witness import Witness, kernel_steps, linear
from polycal.kernels.degree import lipschitz_degree, sigmoid_degree
from polycal.kernels.kernels import Gaussian, Kernel, Multinomial, ball_norms, ball_scale
from polycal.kernels.products import cross_times, kernel_times, quadratic_forms, residuals, search_dtype
from polycal.listed import ListedSample
from polycal.sample import Sample, split_rows
from polycal.steps import Clip, InBlocks, Program
from polycal.storage.rules import Array, Part, Real, Rows

# Coefficients and amplification beyond this could overflow in single precision.
_STEEPEST = 1e20


@dataclass(frozen=True, eq=False, repr=False)
class KernelWitness(Witness):
    """w_l(v) = c sum_i a_il ker(v_i, v), clipped to [-1, 1].

    Attributes
    ----------
    kernel : Kernel
        The likeness of two predictions.
    points : ndarray of shape (n_points, n_classes)
        The predictions v_i it was found on.
    coefficients : ndarray of shape (n_points, n_classes)
        a_il.
    strengths : ndarray of shape (n_classes,)
        What each class adds to the correlation on the rows it was found on, with c = 1.
    amplification : float
        c, at least 1. With c = 1 the clipping only removes rounding.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.KernelAuditor().find_witness(made.labels, made.proba)
    >>> pc.certify(witness, made.labels, made.proba).estimate > 0.1
    True
    """

    kernel: Annotated[Kernel, Part((Kernel,))]
    points: Annotated[Floats, Rows("floats", "n_points n_classes")]
    coefficients: Annotated[Floats, Array("floats", "n_points n_classes", low=-_STEEPEST, high=_STEEPEST)]
    strengths: Annotated[Float64s, Array("float64", "n_classes")]
    amplification: Annotated[float, Real(low=1, high=_STEEPEST)]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "kernel"

    def evaluate(self, proba: Floats) -> Float64s:
        """The weighted sums, in blocks."""
        at = proba.astype(self.points.dtype, copy=False)
        values = kernel_times(self.kernel, self.points, self.coefficients, at=at)
        values *= self.amplification
        return np.clip(values, -1.0, 1.0, out=values)

    def describe(self) -> str:
        """The kernel, and the classes that count most."""
        strongest = [c for c in np.argsort(-self.strengths, kind="stable")[:3] if self.strengths[c] > 0]
        classes = ", ".join(self.name(int(c)) for c in strongest) or "no class"
        return f"{self.kernel.describe()} over {self.points.shape[0]} predictions, strongest for {classes}"

    def to_steps(self) -> Program:
        """The kernel with each of the points, their weighted sum, and the clipping."""
        kernels = kernel_steps(self.kernel, self.points)
        if kernels is None:
            return super().to_steps()
        total = linear(self.coefficients.astype(np.float64) * self.amplification)
        return (InBlocks(((*kernels, total, Clip(-1.0, 1.0)),), float(self.points.shape[0])),)


_DEFAULT_KERNEL = Gaussian(0.2)


@dataclass(frozen=True)
class KernelAuditor(Auditor):
    r"""Look for the witness of largest correlation in a ball of a reproducing kernel Hilbert space.

    Parameters
    ----------
    kernel : Kernel, default Gaussian(0.2)
        What "alike" means: `Multinomial` carries the guarantees of the paper for low-degree polynomials, sigmoids
        and projections (see `for_projected_smooth`, `for_sigmoid`); `Gaussian` and `Laplace` with a small scale
        find more in practice.
    amplify : bool, default True
        Whether to use ``clip(c w, -1, 1)`` instead of w, with the c that correlates best when w is fitted on one
        half of the rows and judged on the other. False is Algorithm 2 to the letter.
    max_samples : int or None, default 20000
        Use at most this many rows, drawn without replacement: the cost grows with the square of it. None: all.
    random_state : int, Generator or None, default 0
        Seed of the choice of rows and of the halves.

    Notes
    -----
    With :math:`z_i = y_i - v_i` (times the row's weight) and :math:`\ker(v, v) \le s^2`,

    .. math:: \lambda_\ell = \Big(\sum_{ij} z_i^\ell z_j^\ell \ker(v_i, v_j)\Big)^{1/2}, \qquad
              w_\ell(v) = \frac{1}{\lambda_\ell s} \sum_i z_i^\ell \ker(v_i, v),

    and :math:`w_\ell = 0` where :math:`\lambda_\ell = 0`. If some w of the ball of radius r in every class has
    correlation :math:`\alpha`, then :math:`O(k r^2 s^2 \alpha^{-2} \log(1/\delta))` rows give a witness of correlation
    at least :math:`\alpha / (3 r s)` with probability :math:`1 - \delta` [1]_. The rows are those looked at:
    `max_samples` must not be fewer (`polycal.hardness.required_samples` says how many, and makes the auditor).
    Scaling by 1/s keeps w in [-1, 1] at the worst prediction, and is loose elsewhere: amplification uses the slack.
    Cost: :math:`n^2 k` multiply-adds (a quarter more when amplified), in blocks, in float32 for large samples.

    Lists are compared with D of them, the landmarks (see `KernelState`), at a cost of O(D) for each listed entry and
    D (k + 1) numbers, at most 64 MiB. Nothing is assumed of what lists leave over: see `ListedKernelWitness`.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Algorithm 2 and the theorem on it.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> witness = pc.KernelAuditor(max_samples=2000).find_witness(fit.labels, fit.proba)
    >>> witness.correlation(fresh) > 0.03
    True
    """

    kernel: Kernel = _DEFAULT_KERNEL
    _: KW_ONLY
    amplify: bool = True
    max_samples: int | None = 20_000
    random_state: Seed = 0
    reads_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        if self.max_samples is not None:
            check_integer(self.max_samples, "max_samples", minimum=1)
        keep_seed(self)

    @classmethod
    def for_projected_smooth(cls, alpha: float, *, amplify: bool = True) -> "KernelAuditor":
        r"""Make the auditor whose kernel is rich enough for a projected smooth error of `alpha`.

        Parameters
        ----------
        alpha : float
            The error to be found, more than 0 and at most 2.
        amplify : bool, default True

        Returns
        -------
        KernelAuditor

        Notes
        -----
        Polynomials within :math:`\alpha/4` of every 1-Lipschitz function keep half of the error, as
        :math:`\|y - v\|_1 \le 2`; their degree is `lipschitz_degree` of that, :math:`O(1/\alpha)`.

        Examples
        --------
        >>> import polycal as pc
        >>> pc.KernelAuditor.for_projected_smooth(0.4).kernel
        Multinomial(degree=15)
        """
        return cls(Multinomial(lipschitz_degree(check_positive(alpha, "alpha", high=2) / 4)), amplify=amplify)

    @classmethod
    def for_sigmoid(cls, slope: float, alpha: float, *, amplify: bool = True) -> "KernelAuditor":
        r"""Make the auditor whose kernel is rich enough for an error of `alpha` over sigmoids of slope at most `slope`.

        Parameters
        ----------
        slope : float
            L, the largest slope of ``tanh(L <a, v> + b)``.
        alpha : float
            The error to be found, more than 0 and at most 2.
        amplify : bool, default True

        Returns
        -------
        KernelAuditor

        Notes
        -----
        As `for_projected_smooth`, with the degree from `sigmoid_degree`: :math:`O(L \log(L/\alpha))`.

        Examples
        --------
        >>> import polycal as pc
        >>> pc.KernelAuditor.for_sigmoid(2, 0.4).kernel
        Multinomial(degree=8)
        """
        return cls(
            Multinomial(sigmoid_degree(slope, check_positive(alpha, "alpha", high=2) / 4)), amplify=amplify
        )

    def find(self, sample: Sample) -> KernelWitness | ListedKernelWitness:
        """Look for a witness in a validated sample."""
        sample = self._halves(weighted_rows(sample))
        if isinstance(sample, ListedSample):
            return find_in_lists(sample, self.kernel, amplify=self.amplify)
        dtype = search_dtype(sample)
        kernel = self.kernel.resolve(sample.proba)
        points = sample.proba.astype(dtype, copy=False)
        values = residuals(sample, dtype)
        if self.amplify:
            norms, amplification = _cross_fitted(kernel, points, values)
        else:
            norms, amplification = ball_norms(kernel, values, quadratic_forms(kernel, points, values)), 1.0
        values *= ball_scale(kernel, norms)
        strengths = norms / (sample.n_samples * np.sqrt(kernel.bound))
        return KernelWitness(
            kernel, points, values, strengths, amplification, sample.n_classes, sample.class_names
        )

    def _halves(self, sample: Sample) -> Sample:
        """At most `max_samples` rows; two random halves one after the other, when the halves matter."""
        n = sample.n_samples
        size = n if self.max_samples is None else min(n, self.max_samples)
        if size == n and not self.amplify:
            return sample
        first, second, _ = split_rows(sample, (size / 2, size / 2, n - size), self.random_state)
        return sample.take(np.concatenate([first, second]))


def _cross_fitted(kernel: Kernel, points: Floats, values: Floats) -> tuple[Float64s, float]:
    """Norms for all rows, and the amplification that suits the witness of each half on the other half.

    A form of all rows is the sum of those of the halves and twice the form across, so the halves cost little more
    than the whole.
    """
    half = (points.shape[0] + 1) // 2
    first, second = points[:half], points[half:]
    z_first, z_second = values[:half], values[half:]
    forms_first, forms_second = (
        quadratic_forms(kernel, first, z_first),
        quadratic_forms(kernel, second, z_second),
    )
    at_first, at_second = cross_times(kernel, first, second, z_first, z_second)
    forms = forms_first + forms_second + 2 * np.einsum("ij,ij->j", z_first, at_first)
    gains = amplified_gains(z_first, at_first, ball_scale(kernel, ball_norms(kernel, z_second, forms_second)))
    gains += amplified_gains(
        z_second, at_second, ball_scale(kernel, ball_norms(kernel, z_first, forms_first))
    )
    return ball_norms(kernel, values, forms), best_amplification(gains)
