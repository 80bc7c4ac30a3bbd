"""The swap regret of one question: what the worst decision problem could save if the predictions were put right."""

from typing import Any

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_sample, check_subset
from polycal.sample import Question, ask, refuse_lists


def swap_regret(
    y_true: Any,
    y_proba: Any,
    *,
    subset: Any = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> float:
    r"""Compute the most that anybody who acts on a yes/no question could save per row by correcting its answers first.

    Answers: over all decision problems whose costs lie between 0 and 1, whatever the actions, how much dearer is acting
    on the predicted probability of the event than acting on the best increasing function of it? 0 is best, 1 is worst.

    Parameters
    ----------
    y_true, y_proba, sample_weight, class_names, from_logits
        As for `smooth_calibration_error`; lists of classes are refused.
    subset : list of class indices or names, optional
        The classes that count as "yes", as for `smooth_calibration_error`.

    Returns
    -------
    float
        Times the largest difference of costs of a decision problem, no more than this can be saved in it.

    See Also
    --------
    decision_cost : What acting costs for one loss.
    smooth_calibration_error : The error that no slowly varying weight can see beyond.

    Notes
    -----
    Definition: the calibration decision loss [1]_ over increasing functions [2]_,

    .. math:: \sup_{\ell} \Big( \mathbb{E}\,\ell(u, y) - \min_{\kappa \text{ increasing}} \mathbb{E}\,\ell(\kappa(u), y)
              \Big),

    over all proper losses into [0, 1], each of which is a decision problem: :math:`\ell(u, y)` is what the action that
    looks best at u costs. Where increasing functions are all there is to correct (distinct answers whose frequencies
    rise), it is the whole calibration decision loss, which lies between the square and twice the expected calibration
    error.

    Estimator: exact on the sample. One isotonic regression :math:`\kappa^*` (the pool-adjacent-violators algorithm) is
    the best for all proper losses at once. Proper losses are mixtures of thresholds t, at each of which
    :math:`g(t) = \mathbb{E}\big[(y - t)\,(1[\kappa^*(u) > t] - 1[u > t])\big]` is saved, a piecewise linear function.
    That costs stay between 0 and 1 bounds the mixture's masses of t and of 1 - t by 1, so that the supremum is twice
    the value at 1/2 of the least concave function above g. Cost: two sorts and a few passes of O(n). Bias: upwards, as
    a regression fits noise: calibrated predictions do not read 0.

    References
    ----------
    .. [1] Hu and Wu (2024), "Predict to minimize swap regret for all payoff-bounded tasks".
    .. [2] Gopalan and others (2025), "Efficient calibration for decision making", arXiv 2511.13699.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.swap_regret([1, 1, 0, 0], [0.5, 0.5, 0.5, 0.5])
    0.0
    >>> round(pc.swap_regret([1, 1, 1, 0], [0.5, 0.5, 0.5, 0.5]), 4)
    0.5
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    refuse_lists(sample, "swap_regret")
    return question_regret(ask(sample, check_subset(subset, sample)))


def question_regret(question: Question) -> float:
    """The swap regret of a question whose answers are all known."""
    u, places = np.unique(question.predicted, return_inverse=True)
    weight = np.ones(places.size) if question.weight is None else question.weight
    mass = np.bincount(places, weights=weight)
    hits = np.bincount(places, weights=weight * question.hits)
    kept = mass > 0
    u, mass, hits = u[kept], mass[kept] / weight.sum(), hits[kept] / weight.sum()
    return 2.0 * _envelope_at_half(*_savings(u, _increasing(hits / mass, mass), mass, hits))


def _increasing(means: Float64s, mass: Float64s) -> Float64s:
    """The increasing values nearest to the means."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - not at `import polycal`

    fitted: Float64s = isotonic_regression(means, weights=mass).x
    return fitted


def _savings(u: Float64s, best: Float64s, mass: Float64s, hits: Float64s) -> tuple[Float64s, Float64s]:
    """Thresholds and what is saved at each, at both ends of every piece on which that is linear.

    Between ``u`` and ``best`` the two answers differ: there a threshold t saves ``hits - t mass`` if the better answer
    is the larger one, else the opposite.
    """
    sign = np.sign(best - u)
    ends = np.concatenate([np.minimum(u, best), np.maximum(u, best)])
    jumps = np.concatenate([sign, -sign]) * np.stack([np.tile(hits, 2), np.tile(mass, 2)])
    order = np.argsort(ends, kind="stable")
    t = ends[order]
    # Ends that coincide leave no piece between them.
    pieces = np.flatnonzero(np.diff(t) > 0)
    level, slope = np.cumsum(jumps[:, order], axis=1)[:, pieces]
    left, right = t[pieces], t[pieces + 1]
    values = np.concatenate([[0.0, 0.0], level - slope * left, level - slope * right])
    return np.concatenate([[0.0, 1.0], left, right]), values


def _envelope_at_half(t: Float64s, values: Float64s) -> float:
    """The value at 1/2 of the least concave function above the points; those at 0 and 1 come first.

    The line over two points on either side of 1/2 is replaced by one through the point furthest above it, until there
    is none: every step raises the value, and a few suffice.
    """
    left, right = 0, 1
    while True:
        a, b = t[left], t[right]
        slope = (values[right] - values[left]) / (b - a) if b > a else 0.0
        above = values - values[left] - slope * (t - a)
        highest = int(np.argmax(above))
        if above[highest] <= 1e-15:
            return float(values[left] + slope * (0.5 - a))
        if t[highest] <= 0.5:
            left = highest
        else:
            right = highest
