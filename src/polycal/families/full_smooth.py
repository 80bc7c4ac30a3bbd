"""All Lipschitz functions of the whole prediction, by optimal transport."""

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Float64s, Floats, Ints, Seed
from polycal._validation import CalibrationWarning, check_integer, keep_seed
from polycal.families.notion import ErrorEstimate, Notion
from polycal.families.witness import Witness
from polycal.inference.redraw import null_draws
from polycal.sample import Sample, row_blocks
from polycal.steps import Affine, Clip, Distances, InBlocks, LargestOf, Program
from polycal.storage.rules import Array, Rows

# Upper bound minus attained value, above which the number is no longer called exact.
_EXACT = 1e-9


@dataclass(frozen=True)
class FullSmooth(Notion):
    r"""Full smooth calibration: is each class as frequent as predicted, among predictions near one another?

    The strongest smooth notion, and one no sample of ordinary size can estimate: the weights of a class are
    any slowly varying function of all k probabilities, and with so much freedom they follow the noise of the
    labels. So the error is large for perfectly calibrated predictions too, and computing it warns, with the
    noise floor beside it. Needs the POT library (``pip install 'polycal[transport]'``).

    Parameters
    ----------
    n_floor_draws : int, default 1
        How often to draw labels from the predictions themselves and compute the error again. The mean is the
        noise floor told by the warning and by the estimate's `method`. Each draw costs as much as the error.
        0 leaves out the floor and the warning: what to use inside a test that draws labels itself.
    random_state : int, Generator or None, default 0
        Seed of these draws.

    Notes
    -----
    Definition: the weight of each class is any :math:`h : \Delta_k \to [-1, 1]` with
    :math:`|h(v) - h(v')| \le \|v - v'\|_1` [1]_. The error is from 0 to 2, and at least `SubsetSmooth`'s.

    Estimator: the exact supremum on the sample. For class :math:`\ell` with weighted residuals
    :math:`r_i = m_i (1[y_i = \ell] - v_{i\ell})` the dual of

    .. math:: \max \sum_i r_i x_i \quad\text{subject to}\quad |x_i| \le 1,\ |x_i - x_j| \le \|v_i - v_j\|_1

    ships positive residual (rows labelled :math:`\ell`) to negative residual (the others) at cost
    :math:`\|v_i - v_j\|_1` a unit, or throws away residual of either sign at cost 1 a unit. No distance
    exceeds 2, so throwing away one unit of each sign never beats shipping the one to the other, and an
    optimum throws away only the net: the error of a class is its mean residual plus a partial optimal
    transport. It is solved on nearest-neighbour arcs by a network simplex, adding arcs until none left out
    has a negative reduced cost. Equal predictions are merged first.

    Cost: distances between rows of a class and all others, :math:`O(n^2 k)` over all classes and in blocks,
    and one sparse transport per class; seconds for n = 5,000 and k = 10. Bias: upwards, and it
    shrinks only like :math:`n^{-1/(k-1)}` for k > 3; an auditor needs exponentially many samples in k [1]_.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), "On Computationally Efficient Multi-Class Calibration",
       Definition of full smooth calibration and Section "Sample Complexity of Canonical Calibration".

    Examples
    --------
    >>> from polycal import calibration_error
    >>> import polycal as pc
    >>> y_proba = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    >>> calibration_error([0, 1], y_proba, pc.FullSmooth(n_floor_draws=0))
    0.625
    """

    n_floor_draws: int = 1
    random_state: Seed = 0
    name: ClassVar[str] = "full-smooth"

    def __post_init__(self) -> None:
        check_integer(self.n_floor_draws, "n_floor_draws", minimum=0)
        keep_seed(self)

    def estimate(self, sample: Sample) -> ErrorEstimate:
        """Compute the error on a validated sample."""
        value, upper, witness = best_full_smooth(sample)
        floor = f"; {self._floor_words(sample)}" if self.n_floor_draws else ""
        if floor:
            warnings.warn(
                f"The full smooth calibration error overfits: {value:.4g} here{floor}. Judge it by a test that "
                "draws labels (polycal.calibration_test with FullSmooth(n_floor_draws=0)), or use SubsetSmooth.",
                CalibrationWarning,
                stacklevel=3,
            )
        return ErrorEstimate(
            value=value,
            kind="exact" if upper - value <= _EXACT else "lower bound",
            notion=self,
            method=f"optimal transport for each class{floor}",
            n_steps=sample.n_classes,
            n_samples=sample.n_samples,
            witness=witness,
        )

    def _floor_words(self, sample: Sample) -> str:
        floors = null_draws(
            sample, lambda redrawn: best_full_smooth(redrawn)[0], self.n_floor_draws, self.random_state
        )
        draws = "1 draw" if self.n_floor_draws == 1 else f"{self.n_floor_draws} draws"
        return f"{floors.mean():.4g} with labels drawn from the predictions themselves ({draws})"


@dataclass(frozen=True, eq=False, repr=False)
class FullSmoothWitness(Witness):
    """w_l(v) = max(-1, max_i (heights_i - ||v - points_i||_1)) over the stored points of class l.

    The smallest l1-Lipschitz function into [-1, 1] that reaches the heights at the points (McShane's
    extension), on the whole simplex. A class without stored points has the constant weight -1.

    Attributes
    ----------
    points : ndarray of float64, shape (n_points, n_classes)
        Predictions seen with a class more often than predicted.
    classes : ndarray of int64, shape (n_points,)
        The class each point speaks about.
    heights : ndarray of float64, shape (n_points,)
        The weight of that class there, in [-1, 1].

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.estimate_error(made.labels[:50], made.proba[:50], pc.FullSmooth(n_floor_draws=0)).witness
    >>> witness(made.proba).shape
    (800, 4)
    """

    points: Annotated[Float64s, Rows("float64", "n_points n_classes")]
    classes: Annotated[Ints, Array("int64", "n_points", low=0, below="n_classes")]
    heights: Annotated[Float64s, Array("float64", "n_points", low=-1, high=1)]
    n_classes: int
    class_names: tuple[str, ...] | None = None
    family: ClassVar[str] = "full-smooth"

    def evaluate(self, proba: Floats) -> Float64s:
        """The weight of each class, from the nearest high points of that class."""
        out = np.full(proba.shape, -1.0)
        for label in np.unique(self.classes):
            own = self.classes == label
            out[:, label] = lipschitz_values(proba, self.points[own], self.heights[own])
        return out

    def describe(self) -> str:
        """The question asked."""
        return (
            "is each class as frequent as predicted, among predictions near one another? "
            f"({self.heights.size} predictions stored)"
        )

    def to_steps(self) -> Program:
        """The heights less the distances, and the largest of each class."""
        # A class without points gets one that is too low to count.
        classes = np.concatenate([self.classes, np.arange(self.n_classes)])
        order = np.argsort(classes, kind="stable")
        points = np.concatenate([self.points, np.zeros((self.n_classes, self.n_classes))])[order]
        heights = np.concatenate([self.heights, np.full(self.n_classes, -3.0)])[order]
        starts = np.searchsorted(classes[order], np.arange(self.n_classes + 1))
        program = Distances(points), Affine(-np.ones(1), heights), LargestOf(starts), Clip(-1.0, 1.0)
        return (InBlocks((program,), float(order.size)),)


def lipschitz_values(proba: Floats, points: Floats, heights: Float64s) -> Float64s:
    """``max(-1, max_i (heights_i - ||v - points_i||_1))`` for each row v, in blocks."""
    from scipy.spatial.distance import cdist  # noqa: PLC0415 - not at `import polycal`

    out = np.empty(proba.shape[0])
    for rows in row_blocks(proba.shape[0], heights.size):
        below = cdist(proba[rows], points, "cityblock")
        np.subtract(heights, below, out=below)
        out[rows] = below.max(axis=1, initial=-1.0)
    return out


# Arcs to the nearest neighbours first; nearly always these hold the optimum.
_N_NEIGHBOURS = 16
# Above the network simplex's own tolerance, far below any error worth reporting.
_TOLERANCE = 1e-11
# Below this part of the total mass a residual is rounding error.
_NEGLIGIBLE = float(np.finfo(np.float64).eps)
_MAX_ROUNDS = 50
_MAX_PIVOTS = 10**9


def best_full_smooth(sample: Sample) -> tuple[float, float, FullSmoothWitness]:
    """The best witness of full smooth calibration, its correlation, and an upper bound on every other's."""
    distinct, group = np.unique(sample.proba, axis=0, return_inverse=True)
    points = distinct.astype(np.float64)
    mass = sample.mass
    share = np.bincount(group, weights=mass)

    def solve(label: int) -> tuple[float, float, Ints, Float64s]:
        own = sample.labels == label
        hits = np.bincount(group[own], weights=mass[own], minlength=share.size)
        residual = hits - share * points[:, label]
        sources, heights, upper = best_lipschitz(points, residual)
        return float(residual @ lipschitz_values(points, points[sources], heights)), upper, sources, heights

    found = map_threads(solve, range(sample.n_classes))
    witness = FullSmoothWitness(
        points[np.concatenate([sources for _, _, sources, _ in found])],
        np.repeat(np.arange(sample.n_classes), [sources.size for _, _, sources, _ in found]),
        np.concatenate([heights for _, _, _, heights in found]),
        sample.n_classes,
        sample.class_names,
    )
    return sum(value for value, *_ in found), sum(upper for _, upper, *_ in found), witness


def best_lipschitz(points: Float64s, residual: Float64s) -> tuple[Ints, Float64s, float]:
    """Maximise ``sum_i residual_i h(points_i)`` over l1-Lipschitz h into [-1, 1].

    Returns the points of positive residual, the best h there, and an upper bound on the maximum (equal to it
    when the network simplex ends normally). Elsewhere `lipschitz_values` extends h without loss: it is the
    smallest function with these heights, and the other residuals are negative.

    The dual ships positive residual to negative at cost ``||v - v'||_1`` a unit, or throws away either at
    cost 1 a unit. Arcs are added until no arc left out would lower the cost, so the result is that of all
    arcs.
    """
    sources, sinks = np.flatnonzero(residual > _NEGLIGIBLE), np.flatnonzero(residual < -_NEGLIGIBLE)
    if sources.size == 0 or sinks.size == 0:
        return sources, np.ones(sources.size), float(np.abs(residual).sum())
    supply, demand = residual[sources], -residual[sinks]
    arcs = _Arcs(points[sources], points[sinks])
    arcs.add(np.zeros(sources.size), np.zeros(sinks.size), -np.inf)
    for _ in range(_MAX_ROUNDS):
        cost, high, low = _ship(supply, demand, arcs)
        if not arcs.add(high, low, _TOLERANCE):
            break
    rounding = float(np.abs(residual[np.abs(residual) <= _NEGLIGIBLE]).sum())
    return sources, np.clip(high, -1.0, 1.0), cost + rounding


class _Arcs:
    """The arcs from sources to sinks that the transport may use, with their lengths."""

    def __init__(self, sources: Float64s, sinks: Float64s) -> None:
        self.sources, self.sinks = sources, sinks
        self.code = np.empty(0, dtype=np.int64)
        self.length = np.empty(0)

    def add(self, high: Float64s, low: Float64s, excess: float) -> bool:
        """Add arcs with ``high_i - low_j > length + excess``, a few for each point; whether there were any."""
        n_sinks = low.size
        i, j, sink_length = _tightest(self.sources, self.sinks, low)
        b, a, source_length = _tightest(self.sinks, self.sources, -high)
        code = np.concatenate([i * n_sinks + j, a * n_sinks + b])
        length = np.concatenate([sink_length, source_length])
        new = high[code // n_sinks] - low[code % n_sinks] > length + excess
        new &= ~np.isin(code, self.code)
        self.code, first = np.unique(np.append(self.code, code[new]), return_index=True)
        self.length = np.append(self.length, length[new])[first]
        return bool(new.any())


def _tightest(rows: Floats, columns: Floats, offset: Float64s) -> tuple[Ints, Ints, Float64s]:
    """For each row the few columns of smallest ``offset + distance``: row, column and distance of each pair."""
    from scipy.spatial.distance import cdist  # noqa: PLC0415 - not at `import polycal`

    count = min(_N_NEIGHBOURS, offset.size)
    near = np.empty((rows.shape[0], count), dtype=np.int64)
    distance = np.empty(near.shape)
    for block in row_blocks(rows.shape[0], offset.size):
        length = cdist(rows[block], columns, "cityblock")
        near[block] = np.argpartition(length + offset, count - 1, axis=1)[:, :count]
        distance[block] = np.take_along_axis(length, near[block], axis=1)
    return np.repeat(np.arange(rows.shape[0]), count), near.ravel(), distance.ravel()


def _ship(supply: Float64s, demand: Float64s, arcs: _Arcs) -> tuple[float, Float64s, Float64s]:
    """The cheapest transport along the arcs, with throwing away at cost 1: its cost and both potentials.

    Throwing away is one more sink, and one more source, that could take all; what they need not take goes
    from one to the other for nothing.
    """
    from scipy.sparse import coo_array  # noqa: PLC0415 - not at `import polycal`

    n, m = supply.size, demand.size
    tail = np.concatenate([arcs.code // m, np.arange(n), np.full(m + 1, n)])
    head = np.concatenate([arcs.code % m, np.full(n, m), np.arange(m + 1)])
    cost = np.concatenate([arcs.length, np.ones(n + m), [0.0]])
    _, log = _solver().emd(
        np.append(supply, demand.sum()),
        np.append(demand, supply.sum()),
        coo_array((cost, (tail, head)), shape=(n + 1, m + 1)),
        numItermax=_MAX_PIVOTS,
        check_marginals=False,
        log=True,
    )
    # Where the solver gives up its flow need not be one: then the cost of throwing all away.
    total = log["cost"] if log["warning"] is None else supply.sum() + demand.sum()
    # Potentials are free up to a constant: make that of throwing away 0.
    return float(total), log["u"][:n] + log["v"][m], log["v"][m] - log["v"][:m]


def _solver() -> Any:
    """The optimal transport library."""
    try:
        import ot  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError("FullSmooth needs the POT library: pip install 'polycal[transport]'.") from error
    return ot
