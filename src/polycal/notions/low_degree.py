"""Low-degree calibration: do residuals correlate with polynomials of the prediction?"""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

import numpy as np

from polycal._validation import check_choice, check_integer
from polycal.kernels.ball import ball_norms, ball_scale
from polycal.kernels.multinomial import Multinomial
from polycal.kernels.products import quadratic_forms, residuals
from polycal.notions._base import ErrorEstimate, Notion
from polycal.sample import Sample
from polycal.search.monomials import best_monomials
from polycal.witness.kernel import KernelWitness
from polycal.witness.monomial import MonomialWitness


@dataclass(frozen=True)
class LowDegree(Notion):
    r"""Low-degree calibration: do residuals correlate with polynomials of the prediction?

    Parameters
    ----------
    degree : int, default 2
        d, at least 0.
    bound : {"lower", "upper"}
        "lower" searches the monomials: exact when none had to be left out, else a lower bound. "upper" is the error
        over the unit ball of the multinomial kernel, which holds all these polynomials.
    max_terms : int, default 5000
        For "lower": how many pairs of a class and a monomial are extended from each degree to the next.

    Notes
    -----
    Definition: in each coordinate a polynomial of degree d whose coefficients' absolute values sum to at most 1 (the
    class :math:`P(d, 1)^k` of [1]_). A linear function on such a set is largest at a monomial, so the error is

    .. math:: \sum_\ell \max_{|e| \le d} \big| \mathbb{E}\, (y_\ell - v_\ell)\, v^e \big| ,

    from 0 to 2. Estimator: the plug-in value by branch and bound, often exact with few of the
    :math:`\binom{k + d}{d}` monomials tried. The upper bound is :math:`\sum_\ell \|\mathbb{E}\, z_\ell
    \ker(v, \cdot)\|`. Cost: :math:`O(n k)` per pair extended, at most `max_terms` per degree; upper bound
    :math:`n^2 k`. Bias: upwards, and for the upper bound by about :math:`\sqrt{k (d + 1) / n}`.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Section "Auditing for the Multinomial Kernel"; the notion is from Gopalan,
       Kim, Singhal and Zhao (2022).

    Examples
    --------
    >>> import polycal as pc
    >>> from polycal.notions.low_degree import LowDegree
    >>> y_proba = [[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.9, 0.1]]
    >>> estimate = pc.estimate_error([0, 1, 1, 1], y_proba, LowDegree(1))
    >>> round(estimate.value, 4), estimate.kind
    (0.9, 'exact')
    """

    degree: int = 2
    _: KW_ONLY
    bound: Literal["lower", "upper"] = "lower"
    max_terms: int = 5000
    name: ClassVar[str] = "low-degree"

    def __post_init__(self) -> None:
        check_integer(self.degree, "degree", minimum=0)
        check_choice(self.bound, "bound", ("lower", "upper"))
        check_integer(self.max_terms, "max_terms", minimum=1)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        return self._searched(sample) if self.bound == "lower" else self._kernel_bound(sample)

    def _searched(self, sample: Sample) -> ErrorEstimate:
        found = best_monomials(sample, self.degree, self.max_terms)
        strengths = np.abs(found.correlations)
        return ErrorEstimate(
            value=float(strengths.sum()),
            kind="exact" if found.is_exact else "lower bound",
            notion=self,
            method="best monomial of each class, by branch and bound",
            n_steps=found.n_tried,
            n_samples=sample.n_samples,
            witness=MonomialWitness(
                found.factors, np.sign(found.correlations), strengths, sample.n_classes, sample.class_names
            ),
        )

    def _kernel_bound(self, sample: Sample) -> ErrorEstimate:
        kernel = Multinomial(self.degree)
        points, values = sample.proba.astype(np.float64, copy=False), residuals(sample, np.float64)
        forms = quadratic_forms(kernel, points, values)
        norms = ball_norms(kernel, values, forms)
        strengths = norms / (sample.n_samples * np.sqrt(kernel.bound))
        return ErrorEstimate(
            value=float(np.sqrt(np.maximum(forms, 0.0)).sum()) / sample.n_samples,
            kind="upper bound",
            notion=self,
            method=f"unit ball of the {kernel.describe()}",
            n_steps=sample.n_classes,
            n_samples=sample.n_samples,
            witness=KernelWitness(
                kernel,
                points,
                values * ball_scale(kernel, norms),
                strengths,
                1.0,
                sample.n_classes,
                sample.class_names,
            ),
        )
