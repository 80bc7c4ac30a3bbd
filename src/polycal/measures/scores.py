"""Accuracy, Brier score and log loss."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_real, check_sample
from polycal.listed import ListedSample
from polycal.sample import Remainder, Sample

SCORES = ("accuracy", "brier_score", "log_loss")


class ScoreInterval(NamedTuple):
    """What lists of classes tell about a score: that of the full predictions lies between these."""

    low: float
    high: float


def brier_score(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    remainder: Remainder = "unknown",
) -> float | ScoreInterval:
    r"""Compute the Brier score, the mean squared distance of the prediction to the outcome. Lower is better.

    Parameters
    ----------
    y_true, y_proba, sample_weight, class_names, from_logits, remainder
        As for `smooth_calibration_error`.

    Returns
    -------
    float, or for lists ScoreInterval
        From 0 to 2 (the sum over all classes; for two classes twice scikit-learn's binary score).

    Notes
    -----
    Definition: :math:`\mathbb{E}\,\|y - v\|_2^2` with one-hot y. Estimator: the (weighted) sample mean, unbiased.
    Cost: one pass, O(nk).

    Lists leave r over for m classes that are not listed, each of at most c. Their squares add up to at least
    :math:`r^2/m`, shared equally, and at most to those of as many classes with c as there is probability for. A true
    class that is not listed has t between :math:`r - (m-1)c` and c, at most r, and the score falls with t. So the
    interval is the sharpest there is.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.brier_score([0, 1], [[0.5, 0.5], [0.0, 1.0]])
    0.25
    """
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        remainder=remainder,
    )
    return _score(sample, "brier_score")


def log_loss(
    y_true: Any,
    y_proba: Any,
    *,
    eps: float | None = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    remainder: Remainder = "unknown",
) -> float | ScoreInterval:
    r"""Compute the mean negative log probability of the true class. Lower is better.

    Parameters
    ----------
    y_true, y_proba
        As for `smooth_calibration_error`.
    eps : float, optional
        Probabilities of the true class below this count as this. By default the machine epsilon of the
        predictions' dtype (as in scikit-learn), so that one exact zero does not make the score infinite;
        pass 0 for the score as defined.
    sample_weight, class_names, from_logits, remainder
        As for `smooth_calibration_error`.

    Returns
    -------
    float, or for lists ScoreInterval

    Notes
    -----
    Definition: :math:`\mathbb{E}[-\log v_y]`. Estimator: the (weighted) sample mean, unbiased but for `eps`.
    Cost: O(n). Lists that leave the true class out hide its probability, see `brier_score`; it may be 0, so that the
    upper end depends on `eps`.

    Examples
    --------
    >>> import polycal as pc
    >>> round(pc.log_loss([0, 1], [[0.5, 0.5], [0.0, 1.0]]), 4)
    0.3466
    """
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        remainder=remainder,
    )
    floor = None if eps is None else check_real(eps, "eps", low=0, high=1)
    if not isinstance(sample, ListedSample):
        return float(np.average(log_losses(sample, floor), weights=sample.sample_weight))
    ends = [
        np.average(_logs(sample, end, floor), weights=sample.sample_weight) for end in sample.true_range()
    ]
    return ScoreInterval(float(ends[1]), float(ends[0]))


def accuracy(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    remainder: Remainder = "unknown",
) -> float:
    """Compute the share of rows whose most likely class (the first of equals) is right. Higher is better.

    Parameters
    ----------
    y_true, y_proba, sample_weight, class_names, from_logits, remainder
        As for `smooth_calibration_error`.

    Returns
    -------
    float

    Examples
    --------
    >>> import polycal as pc
    >>> pc.accuracy([0, 1], [[0.7, 0.3], [0.6, 0.4]])
    0.5
    """
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        remainder=remainder,
    )
    return float(np.average(sample.top_class()[0] == sample.labels, weights=sample.sample_weight))


def log_losses(sample: Sample, eps: float | None = None) -> Float64s:
    """``-log v_y`` of each row, with probabilities floored at ``eps`` (default: the dtype's epsilon)."""
    return _logs(sample, sample.true_proba().astype(np.float64), eps)


def _logs(sample: Sample, proba: Float64s, eps: float | None) -> Float64s:
    floor = _default_floor(sample) if eps is None else eps
    with np.errstate(divide="ignore"):
        return -np.log(np.clip(proba, floor, 1.0))


def sample_scores(sample: Sample) -> dict[str, float]:
    """Accuracy, Brier score and log loss of a sample; those that lists hide as in `named_scores`."""
    weight = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    return named_scores(score_sums(sample, weight) / weight.sum())


def named_scores(ends: Float64s) -> dict[str, float]:
    """Scores by name. Where lists hide them these are the least that they can be, and ``<name>_high`` the most."""
    low, high = ends.reshape(-1, len(SCORES))[[0, -1]].tolist()
    hidden = {f"{name}_high": b for name, a, b in zip(SCORES, low, high, strict=True) if b > a}
    return dict(zip(SCORES, low, strict=True)) | hidden


def score_sums(sample: Sample, weight: Float64s) -> Float64s:
    """The weighted sums of the scores, named `SCORES`, over the rows; of lists the least and the most, in two rows."""
    from polycal._compiled import rows as kernels  # noqa: PLC0415 - imports numba

    if isinstance(sample, ListedSample):
        return _listed_sums(sample, weight)
    sums: Float64s = kernels.score_sums(sample.proba, sample.labels, weight, _default_floor(sample))
    return sums


def _score(sample: Sample, name: str) -> float | ScoreInterval:
    scores = sample_scores(sample)
    return (
        ScoreInterval(scores[name], scores.get(f"{name}_high", scores[name]))
        if sample.is_listed
        else scores[name]
    )


def _listed_sums(sample: ListedSample, weight: Float64s) -> Float64s:
    """The sums of the least and of the most that the scores of each row can be."""
    top, _, doubt = sample.likely_class()
    right, outside = top == sample.labels, sample.label_entry < 0
    least, most = sample.true_range()
    # The more a true class that is not listed has, the lower are Brier score and log loss.
    low = weight @ (right & ~doubt), *_losses(sample, weight, most, _least_squares)
    if not sample.hides:
        return np.array([low, low])
    return np.array(
        [low, (weight @ (right | (doubt & outside)), *_losses(sample, weight, least, _most_squares))]
    )


def _losses(
    sample: ListedSample, weight: Float64s, true: Float64s, squares: Callable[..., Float64s]
) -> tuple[float, float]:
    """The sums of Brier score and log loss, for these probabilities of the true classes."""
    outside = sample.label_entry < 0
    rest = sample.rest - np.where(outside, true, 0.0)
    square = sample.row_sums(sample.values**2) + np.where(outside, true**2, 0.0)
    square += squares(rest, sample.n_classes - sample.n_listed - outside, sample.most)
    return float(weight @ (square + 1.0 - 2.0 * true)), float(weight @ _logs(sample, true, None))


def _least_squares(rest: Float64s, n_others: Ints, most: Float64s) -> Float64s:  # noqa: ARG001 - equal shares fit
    """The least sum of squares of so many numbers that add up to the rest."""
    least: Float64s = rest**2 / np.maximum(n_others, 1)
    return least


def _most_squares(rest: Float64s, n_others: Ints, most: Float64s) -> Float64s:  # noqa: ARG001 - they are enough
    """The largest sum of squares of numbers, each at most ``most``, that add up to the rest."""
    each = np.maximum(most, 1e-300)
    count = np.floor(rest / each + 1e-9)
    squares: Float64s = count * each**2 + np.maximum(rest - count * each, 0.0) ** 2
    return squares


def _default_floor(sample: Sample) -> float:
    return float(np.finfo(sample.proba.dtype).eps)
