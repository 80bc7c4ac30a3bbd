"""The best l1-Lipschitz weight of each class, by sparse optimal transport with an optimality check."""

from typing import Any

import numpy as np

from polycal._parallel import map_threads
from polycal._typing import Float64s, Floats, Ints
from polycal.sample import Sample, row_blocks
from polycal.witness.full_smooth import FullSmoothWitness, lipschitz_values

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
