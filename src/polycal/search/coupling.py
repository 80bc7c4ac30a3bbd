"""The cheapest coupling of a sample with calibrated predictions, by column generation."""

from typing import Any

import numpy as np

from polycal._typing import Float64s
from polycal.search.atoms import Atoms, Clusters, starting_clusters, well_scaled
from polycal.search.targets import COARSEST, best_targets, rounding_cost

# Gains below this are the linear program's own tolerance.
_TOLERANCE = 1e-9
_MAX_ROUNDS = 300


def cheapest_coupling(atoms: Atoms, resolution: int) -> tuple[float, float, Clusters, Float64s]:
    """Bounds below and above on the distance to calibration, and the clusters, with amounts, that attain the upper.

    Every coupling with calibrated u is a mixture of clusters (given u, draw an atom of each class). So the
    distance is the linear program

        min sum_c q_c cost_c   subject to   sum of q_c u_c[y] over clusters c with member_y = a  =  mass_a,

    whose dual is: max sum_a mass_a price_a, such that no target has a positive gain (`best_targets`). The
    program is solved with the clusters found so far, and clusters of positive gain are added on a grid made
    twice as fine whenever it offers none, until the finest offers none. Lowering all prices by the largest
    gain over the simplex makes them feasible, which gives the lower bound.
    """
    k, level = atoms.classes.size, min(COARSEST, resolution)
    lower, best = 0.0, np.inf
    clusters = start = starting_clusters(atoms)
    own_points = np.vstack([start.targets, well_scaled(atoms.position[atoms.outside == 0])])
    own_points = np.unique(own_points, axis=0)
    upper, amount, price = _solve(atoms, clusters)
    for _ in range(_MAX_ROUNDS):
        gain, new = best_targets(atoms, price, level, own_points)
        while level < resolution and gain <= max(_TOLERANCE, rounding_cost(k, level) / 10):
            level *= 2
            gain, new = best_targets(atoms, price, level, own_points)
        lower = max(lower, float(atoms.mass @ price) - gain - rounding_cost(k, level))
        if gain <= _TOLERANCE:
            break
        if upper < best - _TOLERANCE:
            # Only after a gain: forgetting clusters at a standstill would go round in circles.
            best, useful = upper, clusters.cost - clusters.worth(price) < rounding_cost(k, level)
            # The start keeps the program feasible whatever the solver's tolerance did to small masses.
            clusters = start.union(clusters.take(np.flatnonzero(useful | (amount > 0))))
        clusters = clusters.union(new)
        upper, amount, price = _solve(atoms, clusters)
    return min(lower, upper), upper, clusters, amount


def _solve(atoms: Atoms, clusters: Clusters) -> tuple[float, Float64s, Float64s]:
    """The least cost, the amount of each cluster, and the price of each atom."""
    from scipy.optimize import linprog  # noqa: PLC0415 - not at `import polycal`
    from scipy.sparse import csc_array  # noqa: PLC0415

    column, y = np.nonzero(clusters.members >= 0)
    share: Any = csc_array(
        (clusters.targets[column, y], (clusters.members[column, y], column)),
        shape=(atoms.mass.size, clusters.cost.size),
    )
    solution: Any = linprog(
        clusters.cost,
        A_eq=share,
        b_eq=atoms.mass,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.x is None:
        raise RuntimeError(f"The linear program of the coupling was not solved: {solution.message}")
    return float(solution.fun), solution.x, solution.eqlin.marginals
