"""What the leaderboard says of predictions: scores, binned errors, and errors that need care to be honest."""

import numpy as np

import polycal as pc
from polycal.families.subset import SubsetAuditor
from polycal.sample import Sample

# Rows for the debiased canonical error, whose cost is their square.
CANONICAL_ROWS = 5_000
# Rows that sum to 1 up to this are taken as they are, up to rounding.
ROW_TOLERANCE = 1e-3


def as_proba(out, shape):
    """A method's answer as probability vectors, and a note of what had to be done to it.

    Rows that do not sum to 1 are divided by their sum. Answers of the wrong shape, numbers that are not finite,
    negative ones and rows of zeros are errors of the method.
    """
    if out.shape != shape:
        raise ValueError(f"the answer has shape {out.shape} instead of {shape}")
    sums = out.sum(axis=1)
    bad = ~np.isfinite(sums) | (out < -1e-9).any(axis=1) | (sums <= 0)
    if bad.any():
        raise ValueError(f"{np.count_nonzero(bad)} of {shape[0]} rows of the answer are not probabilities")
    off = float(np.abs(sums - 1).max())
    out = np.maximum(out, 0)
    note = f"rows summed to 1 only within {off:.2g}" if off > ROW_TOLERANCE else ""
    return out / out.sum(axis=1, keepdims=True), note


def judge(labels, proba, seed=0):
    """All columns of the leaderboard for one set of predictions; lower is better but for accuracy."""
    return {
        "brier": pc.brier_score(labels, proba),
        "log_loss": pc.log_loss(labels, proba),
        "accuracy": pc.accuracy(labels, proba),
        "ece": pc.calibration_error(labels, proba, pc.Confidence(n_bins=15)),
        "classwise_ece": pc.calibration_error(labels, proba, pc.Classwise(n_bins=15, reduce="mean")),
        "canonical": canonical_error(labels, proba, seed=seed),
        **worst_subset(labels, proba, seed=seed),
    }


def canonical_error(labels, proba, *, max_rows=CANONICAL_ROWS, seed=0):
    r"""Squared canonical calibration error :math:`E\|E[y|v] - v\|_2^2`, without the bias of the labels' noise.

    With residuals :math:`z_i = y_i - v_i` and :math:`N_i` the :math:`m = \sqrt n` rows whose predictions are nearest
    to :math:`v_i` (in Euclidean distance, i left out), it is

    .. math:: \frac1n \sum_i \frac1m \sum_{j \in N_i} \langle z_i, z_j \rangle.

    Given the predictions, labels of different rows are independent, and neighbours are chosen by predictions alone;
    so the expectation of a term is :math:`\langle c(v_i), c(v_j) \rangle`, where :math:`c(v) = E[y|v] - v`. It is
    exactly 0 for calibrated predictions, however many classes there are (the estimate is then as often negative as
    positive), and close to the squared error where c varies little between neighbours. Where c varies faster, it
    is too small: it never invents an error. The plug-in and the kernel density estimates in use, which read well above
    0 for calibrated predictions when k is large, cannot be compared between methods that sharpen differently.

    Cost: the square of the number of rows, of which a random `max_rows` are used.
    """
    rows = np.random.default_rng([seed, 2]).permutation(labels.size)[:max_rows]
    labels, proba = labels[rows], proba[rows]
    n = labels.size
    m = max(1, round(np.sqrt(n)))
    squares = np.einsum("ij,ij->i", proba, proba)
    total = 0.0
    for start in range(0, n, 500):
        block = np.arange(start, min(start + 500, n))
        products = proba[block] @ proba.T
        distances = squares - 2 * products
        distances[np.arange(block.size), block] = np.inf
        near = np.argpartition(distances, m - 1, axis=1)[:, :m]
        own = labels[block][:, None]
        total += np.sum(
            (labels[near] == own)
            - proba[near, own]
            - np.take_along_axis(proba[block], labels[near], axis=1)
            + np.take_along_axis(products, near, axis=1)
        )
    return float(total / (n * m))


def worst_subset(labels, proba, seed=0):
    """Search one half of the rows for the worst subset of the classes, and judge it on the other half.

    ``worst_subset`` is the exact smooth calibration error of that subset on the half that the search has not seen (its
    own noise, of order n^-1/2, included); ``worst_subset_gain`` the correlation there of the weight function found,
    which is unbiased and may be negative.
    """
    order = np.random.default_rng([seed, 1]).permutation(labels.size)
    sample = Sample(proba, labels)
    search, held_out = (sample.take(np.sort(half)) for half in np.array_split(order, 2))
    witness = SubsetAuditor(random_state=seed).find_witness(search.labels, search.proba)
    return {
        "worst_subset": pc.smooth_calibration_error(held_out.labels, held_out.proba, subset=witness.members),
        "worst_subset_gain": float(witness.correlations(held_out).mean()),
    }
