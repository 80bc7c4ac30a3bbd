"""How large a degree and how many rows the paper's theorems ask for, with every constant written out."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from polycal._validation import check_integer, check_positive, check_real
from polycal.families.canonical import Canonical
from polycal.families.decision import Decision
from polycal.families.full_smooth import FullSmooth
from polycal.families.halfspace import Halfspace
from polycal.families.kernel import KernelAuditor
from polycal.families.low_degree import LowDegree
from polycal.families.notion import Notion
from polycal.families.projected import ProjectedSmooth
from polycal.families.questions import Classwise
from polycal.families.sigmoid import Sigmoid
from polycal.families.subset import SubsetSmooth
from polycal.hardness.packing import guaranteed_points
from polycal.kernels.degree import bounded_radius_squared, lipschitz_degree, sigmoid_degree
from polycal.kernels.kernels import Multinomial


@dataclass(frozen=True)
class SampleRequirement:
    """How many rows an error takes to be found, according to a theorem.

    Attributes
    ----------
    n_samples : int
        The number of rows.
    kind : {"sufficient", "necessary"}
        "sufficient": given so many rows, the auditor that `auditor` makes succeeds on every distribution with that
        error. "necessary": with fewer, every algorithm fails on some distribution.
    degree : int or None
        Of the multinomial kernel.
    correlation : float or None
        What the witness found is promised to correlate with the residual, at least.
    notion : Notion
    alpha, delta : float
    n_classes : int

    Examples
    --------
    >>> import polycal as pc
    >>> needed = pc.hardness.required_samples(pc.LowDegree(2), 0.1, 10)
    >>> needed.kind, needed.n_samples
    ('sufficient', 236932)
    """

    n_samples: int
    kind: Literal["sufficient", "necessary"]
    degree: int | None = field(repr=False)
    correlation: float | None = field(repr=False)
    notion: Notion
    alpha: float
    n_classes: int
    delta: float

    def __int__(self) -> int:
        return self.n_samples

    def auditor(self) -> KernelAuditor:
        """Make the auditor of the theorem, which looks at every row given: `KernelAuditor` by itself does not.

        Returns
        -------
        KernelAuditor
            With the multinomial kernel of `degree`, without amplification and without a limit on rows.
        """
        if self.degree is None:
            raise ValueError(
                f"so many rows are necessary for {self.notion!r}; no auditor is known to do with them."
            )
        return KernelAuditor(Multinomial(self.degree), amplify=False, max_samples=None)


def required_degree(notion: Notion, alpha: float) -> int:
    r"""Compute the degree of the multinomial kernel that reveals any error of a notion above `alpha`.

    Parameters
    ----------
    notion : LowDegree, Sigmoid, ProjectedSmooth, SubsetSmooth, or Classwise with ``smooth=True``
    alpha : float
        The error to be found, more than 0 and at most 2.

    Returns
    -------
    int

    Notes
    -----
    A polynomial within :math:`\alpha/4` of every weight function keeps half of the error, since
    :math:`\|y - v\|_1 \le 2`. For Lipschitz weights that takes `lipschitz_degree` of :math:`\alpha/4`, the whole
    number below :math:`2\pi/\alpha` (Jackson's theorem with the best constant); for sigmoids `sigmoid_degree`,
    :math:`O(L \log(L/\alpha))`; low-degree calibration says its degree. Halfspaces jump, and no degree approximates
    them.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.hardness.required_degree(pc.ProjectedSmooth(), 0.1), pc.hardness.required_degree(pc.Sigmoid(2), 0.1)
    (62, 10)
    """
    alpha = check_positive(alpha, "alpha", high=2)
    if isinstance(notion, LowDegree):
        return int(notion.degree)
    if isinstance(notion, Sigmoid):
        return sigmoid_degree(notion.slope, alpha / 4)
    if isinstance(notion, ProjectedSmooth | SubsetSmooth) or _is_smooth_classwise(notion):
        return lipschitz_degree(alpha / 4)
    raise ValueError(f"no degree is known to suffice for {notion!r}: {_reason(notion)}")


def required_samples(notion: Notion, alpha: float, n_classes: int, delta: float = 0.05) -> SampleRequirement:
    r"""Compute how many rows the paper's theorems ask for, to find an error of a notion above `alpha`.

    These numbers hold for the worst distribution, and are astronomical for smooth notions; in practice far fewer rows
    are needed. They are finite, and polynomial in `n_classes`: that is what the theorems say. For full smooth
    calibration the number is one below which nothing can work.

    Parameters
    ----------
    notion : LowDegree, Sigmoid, ProjectedSmooth, SubsetSmooth, Classwise with ``smooth=True``, or FullSmooth
    alpha : float
        The error to be found, more than 0 and at most 2.
    n_classes : int
        k, at least 2.
    delta : float, default 0.05
        The probability of failure allowed, below 1/2.

    Returns
    -------
    SampleRequirement

    Notes
    -----
    *Kernel auditor.* Suppose that some w in :math:`B(r)^k` has correlation :math:`\alpha'` with the residual, and
    :math:`\ker(v, v) \le s^2`. By the proof of the paper's theorem the auditor succeeds, with correlation
    :math:`\alpha'/(3 r s)`, if :math:`\Delta = \sum_\ell \|\tilde w_0^\ell - w_0^\ell\| \le \alpha'/(3 r)`. The mean of
    :math:`\Delta` is at most :math:`s \sqrt{2 k/n}`; a row changes :math:`\Delta` by at most :math:`4 s/n`, as
    :math:`\|z\|_1 \le 2`, so by McDiarmid's inequality it exceeds its mean by
    :math:`s \sqrt{8 \ln(1/\delta)/n}` with probability at most :math:`\delta`. Hence

    .. math:: n = \Big\lceil \frac{9\,r^2 s^2}{\alpha'^2}
              \big(\sqrt{2 k} + \sqrt{8 \ln(1/\delta)}\big)^2 \Big\rceil .

    For the multinomial kernel :math:`s^2 = d + 1`. Low-degree calibration has :math:`r = 1` and
    :math:`\alpha' = \alpha`. For the others :math:`d` is `required_degree`, :math:`\alpha' = \alpha/2`, and
    :math:`r = (1 + \alpha/4)` times the root of `bounded_radius_squared` of d and m, the largest squared length of a
    direction: `m` of `ProjectedSmooth`, `max_size` of `SubsetSmooth`, 1 for `Classwise`, otherwise k. That is
    :math:`(1 + \sqrt2)^d m^{d/2}` at most, where the paper has :math:`4^d m^{d/2}`.

    *Full smooth calibration.* On a packing of :math:`|V|` points at distance :math:`6 \alpha`, labels fixed once per
    point have an error of at least :math:`\alpha`, and are told from calibrated ones with probability
    :math:`1 - \delta` each only if a point is seen twice with probability :math:`1 - 2\delta`: so
    :math:`n (n - 1) \ge 2 (1 - 2 \delta) |V|`, with :math:`|V|` from the volumes of balls. For few classes this says
    little, for `alpha` above 1/6 nothing.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.hardness.required_samples(pc.LowDegree(2), 0.1, 10).n_samples
    236932
    >>> pc.hardness.required_samples(pc.FullSmooth(), 0.005, 20).kind
    'necessary'
    """
    alpha = check_positive(alpha, "alpha", high=2)
    k = check_integer(n_classes, "n_classes", minimum=2)
    delta = _check_delta(delta)
    if isinstance(notion, FullSmooth):
        # Farther apart the points show no more than 1/6.
        n = _birthday(guaranteed_points(k, 6 * alpha) if alpha <= 1 / 6 else 0.0, delta)
        return SampleRequirement(n, "necessary", None, None, notion, alpha, k, delta)
    degree = required_degree(notion, alpha)
    kept, radius_squared = _kept_error(notion, alpha, degree, k)
    deviation = (math.sqrt(2 * k) + math.sqrt(8 * math.log(1 / delta))) ** 2
    ratio = radius_squared * (degree + 1) / Fraction(kept) ** 2
    n = math.ceil(9 * ratio * Fraction(deviation))
    # Floats would overflow where whole numbers do not.
    correlation = math.exp(-0.5 * (math.log(ratio.numerator) - math.log(ratio.denominator))) / 3
    return SampleRequirement(n, "sufficient", degree, correlation, notion, alpha, k, delta)


def _kept_error(notion: Notion, alpha: float, degree: int, k: int) -> tuple[float, Fraction]:
    """What is left of the error over polynomials, and the square of the radius of the ball that holds them."""
    if isinstance(notion, LowDegree):
        return alpha, Fraction(1)
    beyond_one = Fraction(1 + alpha / 4) ** 2
    return alpha / 2, beyond_one * bounded_radius_squared(degree, _squared_length(notion, k))


def _squared_length(notion: Notion, k: int) -> float:
    """The largest squared length of a direction in the notion's family."""
    if isinstance(notion, Classwise):
        return 1.0
    limit = {ProjectedSmooth: "m", SubsetSmooth: "max_size"}.get(type(notion))
    given = getattr(notion, limit) if limit else None
    return float(k if given is None else min(given, k))


def _birthday(n_points: float, delta: float) -> int:
    """The fewest rows n with ``n (n - 1) >= 2 (1 - 2 delta) n_points``."""
    if math.isinf(n_points):
        raise ValueError(
            "alpha is so small, or n_classes so large, that the number of rows is beyond floats."
        )
    target = 2 * (1 - 2 * delta) * max(n_points, 0.0)
    return max(1, math.ceil((1 + math.sqrt(1 + 4 * target)) / 2))


def _is_smooth_classwise(notion: Notion) -> bool:
    return isinstance(notion, Classwise) and notion.smooth and notion.reduce == "max"


def _reason(notion: Notion) -> str:
    """Why the theorems say nothing."""
    if isinstance(notion, Halfspace | Decision):
        return "its weights jump, and auditing it is as hard as learning halfspaces. Use Sigmoid."
    if isinstance(notion, Canonical):
        return "labels fixed once per prediction look calibrated until predictions repeat. Use SubsetSmooth."
    if isinstance(notion, FullSmooth):
        return "it takes exponentially many rows in the number of classes. Use ProjectedSmooth."
    return (
        "the theorems are about LowDegree, Sigmoid, ProjectedSmooth, SubsetSmooth and Classwise(smooth=True)."
    )


def _check_delta(delta: float) -> float:
    if not 0 < check_real(delta, "delta", low=0, high=0.5) < 0.5:
        raise ValueError(f"delta must be more than 0 and less than 0.5; got {delta!r}.")
    return float(delta)
