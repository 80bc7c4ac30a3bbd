"""Smooth calibration error: ours beside a minimum-cost flow, the idea of Hu, Jambulapati, Tian and Yang.

Their problem (arXiv 2402.13187) is the dual of the linear program: residual mass flows along the sorted predictions, at
the cost of the gap, or leaves the line at the cost of 1. They solve it by dynamic programming over the flow on each
edge, whose cost is convex and piecewise linear, in O(n log^2 n). The solver here is our own implementation of this
idea, neither their code nor a transcript of it: its break points are sorted in advance and counted in two Fenwick
trees, which takes O(n log n). It is compiled like ours, and both get the same sorted rows, so that what is compared is
the dynamic program with the isotonic regression of the theory page. Run with ``python -m benchmarks.flow``.
"""

import numpy as np
from numba import njit

from benchmarks.timing import best_times
from polycal._compiled.smooth import nearest_monotone, transport_cost

SIZES = (1_000, 10_000, 100_000, 1_000_000)
# Kinks that are left over from subtraction.
_ROUNDING = 1e-13


def flow_error(values, residual):
    """``max sum_i residual_i phi(values_i)`` over 1-Lipschitz phi, by minimum-cost flow."""
    order = np.argsort(values)
    return flow_cost(values[order], residual[order])


@njit(cache=True)
def flow_cost(u, residual):
    """The least cost, given the rows in the order of their values.

    ``A_i(f)`` is the least cost of the first i rows if f flows on from them. A row moves its break points by the
    residual and cuts slopes off beyond -1 and 1; the edge after it adds a kink at 0. Break points are counted from the
    total residual so far, so that a row moves none of them, and their places are known, and sorted, in advance.
    """
    n = u.size
    total = np.cumsum(residual)
    places = np.append(-total[: n - 1], 0.0)
    order = np.argsort(places)
    place, rank = places[order], np.empty(n, np.int64)
    rank[order] = np.arange(n)
    kinks, moments = np.zeros(n + 1), np.zeros(n + 1)
    _add(kinks, moments, place, rank[n - 1], 2.0)
    lowest, cost = place[rank[n - 1]], 0.0
    for i in range(n - 1):
        gap = u[i + 1] - u[i]
        cost += gap * abs(lowest + total[i])
        _add(kinks, moments, place, rank[i], 2.0 * gap)
        found = place[_quantile(kinks, 1.0 + gap)]
        cost += _integral(kinks, moments, place, -1.0 - gap, lowest, found)
        lowest = found
        _cut(kinks, moments, place, gap, True)
        _cut(kinks, moments, place, gap, False)
    return cost + _integral(kinks, moments, place, -1.0, lowest, -total[n - 1])


@njit(cache=True)
def _cut(kinks, moments, place, amount, left):
    """Take kinks of this total size off one end."""
    while amount > _ROUNDING:
        at = _quantile(kinks, _ROUNDING if left else _sum(kinks, place.size) - _ROUNDING)
        part = min(_sum(kinks, at + 1) - _sum(kinks, at), amount)
        if part <= 0.0:
            return
        _add(kinks, moments, place, at, -part)
        amount -= part


@njit(cache=True)
def _integral(kinks, moments, place, slope, start, stop):
    """What the function grows by from ``start`` to ``stop``, with this slope left of all kinks."""
    first, last = np.searchsorted(place, start), np.searchsorted(place, stop)
    grown = slope * (stop - start)
    grown += stop * _sum(kinks, last) - _sum(moments, last)
    return grown - start * _sum(kinks, first) + _sum(moments, first)


@njit(cache=True)
def _add(kinks, moments, place, at, amount):
    """A kink more, or less, in both trees (Fenwick's)."""
    moment = amount * place[at]
    i = at + 1
    while i < kinks.size:
        kinks[i] += amount
        moments[i] += moment
        i += i & -i


@njit(cache=True)
def _sum(tree, count):
    """The sum of the first ``count`` entries."""
    total = 0.0
    while count > 0:
        total += tree[count]
        count -= count & -count
    return total


@njit(cache=True)
def _quantile(tree, target):
    """The first entry at which the sums reach the target."""
    step = 1
    while 2 * step < tree.size:
        step *= 2
    at = 0
    while step > 0:
        if at + step < tree.size and tree[at + step] < target:
            at += step
            target -= tree[at]
        step //= 2
    return min(at, tree.size - 2)


def our_cost(u, residual):
    """The same by polycal, from the same sorted rows."""
    cumulative = np.cumsum(residual)
    if cumulative[-1] < 0:
        cumulative = -cumulative
    return cumulative[-1] + transport_cost(u, cumulative, nearest_monotone(u, cumulative))


def case(n, seed=0):
    """Sorted predictions that are too sure, and their residuals."""
    rng = np.random.default_rng(seed)
    u = np.sort(rng.random(n))
    return u, ((rng.random(n) < 0.5 + 0.8 * (u - 0.5)) - u) / n


def compare(n, repeats=3):
    """Seconds of the flow and of polycal, and by how much the values differ."""
    rows = case(n)
    flow, ours = flow_cost(*rows), our_cost(*rows)
    times = best_times([lambda: flow_cost(*rows), lambda: our_cost(*rows)], repeats)
    return {
        "n": n,
        "flow": times[0],
        "polycal": times[1],
        "ratio": times[0] / times[1],
        "off": abs(flow - ours),
    }


def main():
    """One line for each size."""
    for n in SIZES:
        row = compare(n)
        print(
            f"n = {n:>9,}  flow {1e3 * row['flow']:8.3f} ms  polycal {1e3 * row['polycal']:7.3f} ms  "
            f"ratio {row['ratio']:4.1f}  values differ by {row['off']:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
