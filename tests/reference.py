"""Slow, obvious versions of every algorithm: the oracles of the tests."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def smooth_error_lp(values, residual, tolerance=1e-10):
    """max sum r_i x_i, |x_i| <= 1, |x_{i+1} - x_i| <= u_{i+1} - u_i, by HiGHS.

    HiGHS's own tolerance, 1e-7, lets constraints between close values be broken by as much.
    """
    order = np.argsort(values, kind="stable")
    u, r = np.asarray(values, float)[order], np.asarray(residual, float)[order]
    if u.size == 1:
        return float(abs(r[0]))
    n = u.size
    step = sparse.diags([np.ones(n - 1), -np.ones(n - 1)], [1, 0], shape=(n - 1, n))
    solution = linprog(
        -r,
        A_ub=sparse.vstack([step, -step]),
        b_ub=np.tile(np.diff(u), 2),
        bounds=(-1, 1),
        method="highs",
        options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
    )
    return -float(solution.fun)


def subset_residual(labels, proba, subset, weight=None):
    """The predicted probability of a subset, and the weighted residual of each row."""
    member = np.isin(np.arange(proba.shape[1]), subset)
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    predicted = proba[:, member].sum(axis=1)
    return predicted, weight / weight.sum() * (member[labels] - predicted)


def smooth_error(labels, proba, subset, weight=None):
    """smCE_T by linear programming."""
    return smooth_error_lp(*subset_residual(labels, proba, subset, weight))


def equal_width_bin(p, n_bins):
    """The bin of p when a bin holds its upper edge, by walking the edges."""
    for b in range(n_bins):
        if p <= np.linspace(0, 1, n_bins + 1)[b + 1]:
            return b
    return n_bins - 1


def binned_gaps(predicted, hits, weight, bins):
    """[(mass, |frequency - mean prediction|)] of each non-empty bin, by loops."""
    out = []
    for b in sorted(set(bins)):
        rows = [i for i in range(len(bins)) if bins[i] == b and weight[i] > 0]
        if rows:
            w = sum(weight[i] for i in rows)
            gap = abs(sum(weight[i] * (hits[i] - predicted[i]) for i in rows)) / w
            out.append((w / sum(weight), gap))
    return out


def reduce_gaps(gaps, norm):
    """Mean, root mean square or maximum of the gaps."""
    if norm == "max":
        return max(g for _, g in gaps)
    if norm == "l2":
        return sum(m * g * g for m, g in gaps) ** 0.5
    return sum(m * g for m, g in gaps)


def canonical_error(labels, proba, weight=None):
    """E || E[y | v] - v ||_1 by grouping rows in a dictionary."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    groups = {}
    for v, y, w in zip(proba, labels, weight / weight.sum(), strict=True):
        residual = -np.asarray(v, float)
        residual[y] += 1
        groups[tuple(v)] = groups.get(tuple(v), 0) + w * residual
    return sum(np.abs(total).sum() for total in groups.values())


def brier_score(labels, proba, weight=None):
    """Mean of ||y - v||^2 by loops."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    total = 0.0
    for v, y, w in zip(proba, labels, weight, strict=True):
        total += w * sum((float(c == y) - p) ** 2 for c, p in enumerate(v))
    return total / weight.sum()


def top_set(labels, proba, m):
    """The probability of the m most likely classes and whether one is true, row by row, by sorting."""
    total, hits = [], []
    for y, row in zip(labels, proba, strict=True):
        chosen = sorted(range(len(row)), key=lambda c: (-row[c], c))[:m]
        total.append(min(sum(float(row[c]) for c in chosen), 1.0))
        hits.append(int(y) in chosen)
    return np.array(total), np.array(hits)


def mean_of_labels_nearby(new, proba, labels, weight, width, prior_rows, floor=1e-10):
    """Each new prediction, mixed with the labels of the rows near it, row by row."""

    def logs(row):
        return np.array([np.log(max(value, floor)) for value in row])

    squares = [((logs(a) - logs(b)) ** 2).sum() for i, a in enumerate(proba) for b in proba[:i]]
    scale = width * np.sqrt(np.median([square for square in squares if square > 1e-14]))
    out = []
    for row in new:
        votes = prior_rows * np.asarray(row, float)
        for other, label, times in zip(proba, labels, weight, strict=True):
            distance = np.linalg.norm(logs(row) - logs(other))
            votes[label] += times * np.exp(-(distance**2) / (2 * scale**2))
        out.append(votes / votes.sum())
    return np.array(out)
