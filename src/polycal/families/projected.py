"""Directions: the worst 1-Lipschitz function of a linear projection of the prediction."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._threads import map_threads, one_blas_thread
from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_integer, check_real, keep_seed
from polycal.families._ascent import (
    Effort,
    Points,
    ascend,
    class_residual,
    distinct_points,
    into_family,
    projected,
    spread,
    start_directions,
    stretch,
)
from polycal.families.auditor import Auditor, cross_fit, weighted_rows
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.sigmoid import climb
from polycal.families.witness import (
    FUNCTIONS,
    DirectionsWitness,
    function_steps,
    leading_classes,
)
from polycal.measures.functions import LipschitzFunction, ScalarFunction
from polycal.measures.smooth import SmoothCurve, projected_curve
from polycal.sample import Sample
from polycal.steps import Program


@dataclass(frozen=True)
class ProjectedSmooth(Notion):
    r"""Projected smooth calibration: is each class right, seen through any weighted sum of the probabilities?

    The strongest notion known that can be audited in polynomial time in k (for a fixed error) [1]_: it bounds
    the smooth calibration error of every set of classes, and more.

    Parameters
    ----------
    m : float, optional
        Bound on the squared Euclidean length of the directions; by default k, which is no bound.

    Notes
    -----
    Definition: each coordinate :math:`\ell` of the weight is
    :math:`\varphi_\ell(\langle a_\ell, v\rangle)` with :math:`a_\ell \in [-1, 1]^k`,
    :math:`\|a_\ell\|_2^2 \le m` and :math:`\varphi_\ell` 1-Lipschitz into [-1, 1], so

    .. math:: \mathrm{psCE}_m = \sum_\ell \sup_{a, \varphi} \mathbb{E}[(y_\ell - v_\ell)\,\varphi(\langle a, v\rangle)].

    Estimator: along a given direction the best :math:`\varphi` is exact, as for `smooth_calibration_error`;
    directions are found by gradient ascent of that exact value from many starts, which are the same for every
    order of rows and (but for classes used exactly alike) of classes. What is found is a lower bound. Up to 6
    classes every set of classes is among the starts, so that the value is at least the subset smooth error
    of size m (of samples that are searched whole). A search looks at no more than 32,768 distinct predictions, or
    4 million probabilities; the value is that of the whole sample.

    *Two classes are exact.* Predictions are :math:`(1 - p, p)`, so
    :math:`\langle a, v\rangle = a_0 + (a_1 - a_0) p`, and a weight :math:`\varphi(\langle a, v\rangle)` is a
    function of p into [-1, 1] of Lipschitz constant :math:`|a_1 - a_0|`. In the box
    :math:`|a_1 - a_0| \le 2`, in the ball :math:`|a_1 - a_0| \le \sqrt{2 m}` (Cauchy-Schwarz with (-1, 1)); the
    direction :math:`(-c, c)` with :math:`c = \min(1, \sqrt{m/2})` lies in both and has the smaller of the two.
    Along it :math:`\varphi` runs through all functions of p with Lipschitz constant 2c, which
    contain those of every other direction. So one direction is enough.

    Cost: some hundred sorts of n numbers for each class, on all cores. Bias: upwards, and the more so the more
    classes there are: judge the witness on rows it has not seen.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration", Section
       "Efficient Auditing for Projected Smooth Calibration".

    Examples
    --------
    >>> import polycal as pc
    >>> estimate = pc.estimate_error([1, 0, 1], [0.2, 0.5, 0.9], pc.ProjectedSmooth())
    >>> round(estimate.value, 4), estimate.kind
    (0.4667, 'exact')
    """

    m: float | None = None
    name: ClassVar[str] = "projected-smooth"

    def __post_init__(self) -> None:
        if self.m is not None:
            check_real(self.m, "m", low=0)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        k = sample.n_classes
        m = float(k if self.m is None else min(self.m, k))
        two = k == 2
        witness = projected_witness(sample, _two_class_directions(m) if two else _directions(sample, m))
        return ErrorEstimate(
            value=float(witness.contributions.sum()),
            kind="exact" if two else "lower bound",
            notion=self,
            method="exact supremum over 1-Lipschitz weights, "
            + ("one direction for two classes" if two else "along directions found by gradient ascent"),
            n_steps=k,
            n_samples=sample.n_samples,
            witness=witness,
        )


def _two_class_directions(m: float) -> Float64s:
    """(-c, c) for both classes, as long as m allows."""
    c = min(1.0, np.sqrt(m / 2))
    return np.array([[-c, c], [-c, c]])


def _directions(sample: Sample, m: float) -> Float64s:
    """The best directions found, one row for each class."""
    points = distinct_points(sample)
    *_, best = search_directions(points, m, Effort.for_classes(sample.n_classes))
    return points.by_class_square(best)


# The weight of a class that a witness leaves out.
NOWHERE: ScalarFunction = LipschitzFunction(np.zeros(1), np.zeros(1))


@dataclass(frozen=True, eq=False, repr=False)
class ProjectedWitness(DirectionsWitness):
    """w_l(v) = phi_l(<a_l, v>) for each class l.

    Attributes
    ----------
    directions : ndarray of shape (k, k)
        a_l in row l, with entries in [-1, 1].
    phis : tuple of LipschitzFunction
        One function for each class.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.ProjectionAuditor().find_witness(made.labels, made.proba)
    >>> witness.directions.shape
    (4, 4)
    """

    directions: Float64s
    phis: Annotated[tuple[ScalarFunction, ...], FUNCTIONS]
    leading: Ints
    contributions: Float64s
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "projected"

    def _weights(self, values: Float64s) -> Float64s:
        out = np.empty(values.shape)
        for c, phi in enumerate(self.phis):
            out[:, c] = phi(values[:, c])
        return out

    def _weight_steps(self) -> Program:
        return function_steps(self.phis)

    def restricted(self, classes: Ints) -> "ProjectedWitness":
        """The same on some classes, 0 on the others."""
        phis = [NOWHERE] * self.n_classes
        contributions = np.zeros(self.n_classes)
        for c in classes:
            phis[c], contributions[c] = self.phis[c], self.contributions[c]
        return replace(self, phis=tuple(phis), contributions=contributions)


# Sigmoids of these slopes are climbed first: cheap, and close to what a 1-Lipschitz function can do.
_SLOPES = (1.0, 2.0)
# Directions handled at once by a thread.
_CHUNK_ROWS = 64


@one_blas_thread()
def search_directions(points: Points, m: float, effort: Effort, seed: int = 0) -> list[Float64s]:
    """Directions (k, k) for all coordinates: their own classes, the best screened, and the best climbed to."""
    k = points.n_classes
    starts = _candidate_directions(points, m, effort, seed)
    n_coordinates = max(1, min(_CHUNK_ROWS // effort.n_finalists, -(-k // 16)))
    chunks = [np.arange(k)[i : i + n_coordinates] for i in range(0, k, n_coordinates)]
    climbed = map_threads(lambda chunk: _climb(points, starts[:, chunk], chunk, m, effort), chunks)
    screened, best = (np.concatenate(part) for part in zip(*climbed, strict=True))
    return [stretch(np.eye(k), m), screened, best]


def _candidate_directions(points: Points, m: float, effort: Effort, seed: int) -> Float64s:
    """Starts (n_starts, k, k) for each coordinate: those of `start_directions` and those of its best sigmoids."""
    k = points.n_classes
    sigmoids = climb(points, _SLOPES, replace(effort, n_random=effort.n_random // 2), seed)
    starts = np.vstack([start_directions(points, effort.n_random, seed), *[s.curves for s in sigmoids]])
    return stretch(starts, m).reshape(-1, k, k)


def _climb(
    points: Points, starts: Float64s, coordinates: Ints, m: float, effort: Effort
) -> tuple[Float64s, Float64s]:
    """The best start of each coordinate, and the best direction climbed to from its best few starts."""
    n = coordinates.size
    values = np.vstack([_smooth_errors(points, start, coordinates)[0] for start in starts])
    order = np.argsort(-values, axis=0, kind="stable")[: effort.n_finalists]
    finalists = starts[order, np.arange(n)].reshape(-1, points.n_classes)
    position, reached = ascend(
        lambda directions, rows: _smooth_errors(points, directions, coordinates[rows % n]),
        lambda directions: into_family(directions, m),
        finalists,
        effort.n_steps,
        spread(points.proba),
    )
    best = reached.reshape(-1, n).argmax(axis=0) * n + np.arange(n)
    return finalists[:n], position[best]


def _smooth_errors(points: Points, directions: Float64s, coordinates: Ints) -> tuple[Float64s, Float64s]:
    """The exact smooth error of each direction for its coordinate, and the gradient by the direction."""
    values = directions @ points.proba.T
    errors, slopes = _kernels().smooth_slopes(
        values, points.residual.T[coordinates], np.argsort(values, axis=1)
    )
    return errors, slopes @ points.proba


def _kernels() -> Any:
    """The compiled pass; importing it imports numba, so only when first needed."""
    from polycal._compiled import projected as kernels  # noqa: PLC0415

    return kernels


@dataclass(frozen=True)
class ProjectionAuditor(Auditor):
    r"""Look for weighted sums of the probabilities through which each class looks wrong.

    Parameters
    ----------
    m : float, optional
        Bound on the squared Euclidean length of the directions; by default k, which is no bound.
    n_starts : int, default 2
        Random directions tried for each class, beside those that the data suggest.
    random_state : int, Generator or None, default 0
        Seed of the random directions and of the halves.

    Notes
    -----
    The witness is one of `ProjectedSmooth`: :math:`\varphi_\ell(\langle a_\ell, v\rangle)` for each class :math:`\ell`.
    Directions are sought in three degrees of freedom: each class's own, the best of those that the data suggest, and
    those reached from there by gradient ascent. Each half of the rows judges what was found on the other; the degree
    that does best is then searched for on all rows, and classes whose contribution does not hold up get weight 0.
    Cost: two searches in all on n rows, each some ten to hundred sorts of n numbers for each class.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> pc.ProjectionAuditor().find_witness(fit.labels[:4000], fit.proba[:4000]).correlation(fresh) > 0.05
    True
    """

    m: float | None = None
    _: KW_ONLY
    n_starts: int = 2
    random_state: Seed = 0

    def __post_init__(self) -> None:
        if self.m is not None:
            check_real(self.m, "m", low=0)
        check_integer(self.n_starts, "n_starts", minimum=0)
        keep_seed(self)

    def find(self, sample: Sample) -> ProjectedWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        level, kept = cross_fit(sample, self._levels, self.random_state)
        return self._levels(sample)[level].restricted(np.flatnonzero(kept))

    def _levels(self, sample: Sample) -> list[ProjectedWitness]:
        """Own classes, directions that the data suggest, directions climbed to."""
        points = distinct_points(sample)
        m = float(sample.n_classes if self.m is None else min(self.m, sample.n_classes))
        effort = Effort(self.n_starts, n_finalists=1, n_steps=15)
        found = search_directions(points, m, effort, self.random_state)
        return [projected_witness(sample, points.by_class_square(directions)) for directions in found]


def projected_witness(sample: Sample, directions: Float64s) -> ProjectedWitness:
    """The exact best 1-Lipschitz function of ``<directions_l, v>`` for each class l."""
    curves = map_threads(lambda c: _projected_curve(sample, c, directions[c]), range(sample.n_classes))
    phis: tuple[ScalarFunction, ...] = tuple(curve.phi.simplified() for curve in curves)
    values = np.array([curve.value for curve in curves])
    leading = leading_classes(sample, directions)
    return ProjectedWitness(directions, phis, leading, values, sample.n_classes, sample.class_names)


def _projected_curve(sample: Sample, label: int, direction: Float64s) -> SmoothCurve:
    return projected_curve(projected(sample, direction), class_residual(sample, label))
