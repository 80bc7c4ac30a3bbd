"""Slow, obvious versions of the projected-smooth, sigmoid, halfspace and decision errors, for tiny samples."""

from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog

from tests.reference import smooth_error_lp

TOLERANCE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def residuals(labels, proba, weight=None):
    """mass * (y - v), one row for each sample."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    return (weight / weight.sum())[:, None] * (np.eye(proba.shape[1])[labels] - proba)


def is_separable(proba, above):
    """Whether some hyperplane has exactly the rows marked ``above`` on its positive side, by a linear program."""
    sign = np.where(above, 1.0, -1.0)
    feasible = linprog(
        np.zeros(proba.shape[1]),
        A_ub=-sign[:, None] * proba,
        b_ub=-np.ones(len(sign)),
        bounds=(None, None),
        method="highs",
    )
    return feasible.status == 0


def dichotomies(proba):
    """Every way a hyperplane can divide the rows, as masks over all rows; equal rows stay together."""
    distinct, group = np.unique(proba, axis=0, return_inverse=True)
    masks = product([False, True], repeat=len(distinct) - 1)
    found = [np.array([False, *mask]) for mask in masks if is_separable(distinct, np.array([False, *mask]))]
    return [mask[group] for mask in found]


def halfspace_error(labels, proba, weight=None):
    """For each class the best dichotomy: sum_l max |sum_i z_il sign_i|."""
    z = residuals(labels, proba, weight)
    signs = np.array([np.where(mask, 1.0, -1.0) for mask in dichotomies(proba)])
    return float(np.abs(signs @ z).max(axis=0).sum())


def decision_error(labels, proba, weight=None):
    """The best dichotomy for two actions: max ||sum of z on one side|| + ||sum on the other||."""
    z = residuals(labels, proba, weight)
    return max(
        np.linalg.norm(z[mask].sum(0)) + np.linalg.norm(z[~mask].sum(0)) for mask in dichotomies(proba)
    )


def sigmoid_error_grid(labels, proba, slope, weight=None, n_grid=161):
    """Two classes: the best of a grid of tanh(s p + b), |s| <= 2 L, and how much finer grids could add."""
    z = residuals(labels, proba, weight)[:, 1]
    slopes = np.linspace(-2 * slope, 2 * slope, n_grid)
    offsets = np.linspace(-2 * slope - 8, 2 * slope + 8, 2 * n_grid)
    inner = slopes[:, None, None] * proba[:, 1] + offsets[:, None]
    best = float((np.tanh(inner) @ z).max())
    rounding = (slopes[1] - slopes[0] + offsets[1] - offsets[0]) / 2 + 1 - np.tanh(8)
    return 2 * best, 2 * rounding * float(np.abs(z).sum())


def projected_error_two_classes(labels, proba, m, weight=None):
    """Two classes: all functions of p of Lipschitz constant min(2, sqrt(2 m)), by linear programming."""
    z = residuals(labels, proba, weight)[:, 1]
    return 2 * smooth_error_lp(min(2.0, np.sqrt(2 * m)) * proba[:, 1], z)


def projected_error_grid(labels, proba, weight=None, n_angles=60):
    """Three classes, m = 3: the best of a grid of directions, each stretched to fill [-1, 1]^3."""
    z = residuals(labels, proba, weight)
    total = 0.0
    for label in range(3):
        best = 0.0
        for angle in np.linspace(0, np.pi, n_angles, endpoint=False):
            # The two directions of the plane orthogonal to (1, 1, 1).
            a = np.cos(angle) * np.array([1, -1, 0]) + np.sin(angle) * np.array([1, 1, -2]) / np.sqrt(3)
            best = max(best, smooth_error_lp(proba @ a * 2 / np.ptp(a), z[:, label]))
        total += best
    return total


def full_smooth_error(labels, proba, weight=None):
    """Per coordinate all l1-Lipschitz functions of the prediction, by linear programming: above every psCE_m."""
    z = residuals(labels, proba, weight)
    pairs = list(combinations(range(len(labels)), 2))
    difference = np.array([np.eye(len(labels))[i] - np.eye(len(labels))[j] for i, j in pairs])
    distance = np.array([np.abs(proba[i] - proba[j]).sum() for i, j in pairs])
    constraints = (
        {} if not pairs else {"A_ub": np.vstack([difference, -difference]), "b_ub": np.tile(distance, 2)}
    )
    return sum(
        -linprog(-z[:, c], **constraints, bounds=(-1, 1), method="highs", options=TOLERANCE).fun
        for c in range(proba.shape[1])
    )


def subset_smooth_error(labels, proba, max_size, weight=None):
    """ssCE_m by trying all subsets of at most ``max_size`` classes."""
    z = residuals(labels, proba, weight)
    k = proba.shape[1]
    subsets = [list(s) for size in range(1, max_size + 1) for s in combinations(range(k), size)]
    return max(smooth_error_lp(proba[:, s].sum(axis=1), z[:, s].sum(axis=1)) for s in subsets)


def tiny_samples(n_cases, k, seed=0):
    """Continuous, confident and tied predictions for a handful of rows."""
    rng = np.random.default_rng(seed)
    for case in range(n_cases):
        n = int(rng.integers(2, 8))
        proba = rng.dirichlet(np.full(k, [0.3, 1.0, 3.0][case % 3]), n)
        if case % 4 == 3:
            proba = rng.multinomial(4, np.full(k, 1 / k), n) / 4
        yield rng.integers(0, k, n), proba


def planar_errors(labels, proba):
    """The halfspace and decision errors of three classes: every line through two rows, each row on it on either side.

    Rows on the line go to a side up to one of them and to the other from there, as when it is turned a little.
    """
    z, (x, y) = residuals(labels, proba), proba.T[:2]
    whole = z.sum(0)
    best, pair = np.abs(whole), np.linalg.norm(whole)
    for i, j in combinations(range(len(labels)), 2):
        dx, dy = x[j] - x[i], y[j] - y[i]
        if dx == dy == 0:
            continue
        side = np.round(dx * (y - y[i]) - dy * (x - x[i]), 13)
        along = np.round(dx * (x - x[i]) + dy * (y - y[i]), 13)
        on, left = side == 0, z[side > 0].sum(0)
        for cut in [-np.inf, *np.unique(along[on])]:
            for part in (on & (along <= cut), on & (along > cut)):
                total = left + z[part].sum(0)
                best = np.maximum(best, np.abs(2 * total - whole))
                pair = max(pair, np.linalg.norm(total) + np.linalg.norm(whole - total))
    return float(best.sum()), float(pair)


def planar_sample(n, decimals, seed=0):
    """Predictions of three classes, on a grid where there are few decimals, and labels of their own."""
    rng = np.random.default_rng(seed)
    proba = np.floor(rng.dirichlet(np.ones(3), n) * 10.0**decimals) / 10.0**decimals
    proba[:, 2] = 1.0 - proba[:, 0] - proba[:, 1]
    return rng.integers(0, 3, n), np.maximum(proba, 0.0)
