"""Accuracy, Brier score and log loss."""

from typing import Any

import numpy as np

from polycal._typing import Float64s
from polycal._validation import check_real, check_sample
from polycal.sample import Sample

SCORES = ("accuracy", "brier_score", "log_loss")


def brier_score(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> float:
    r"""Compute the Brier score, the mean squared distance of the prediction to the outcome. Lower is better.

    Parameters
    ----------
    y_true, y_proba, sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    float
        From 0 to 2 (the sum over all classes; for two classes twice scikit-learn's binary score).

    Notes
    -----
    Definition: :math:`\mathbb{E}\,\|y - v\|_2^2` with one-hot y. Estimator: the (weighted) sample mean, unbiased.
    Cost: one pass, O(nk).

    Examples
    --------
    >>> import polycal as pc
    >>> pc.brier_score([0, 1], [[0.5, 0.5], [0.0, 1.0]])
    0.25
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    return sample_scores(sample)["brier_score"]


def log_loss(
    y_true: Any,
    y_proba: Any,
    *,
    eps: float | None = None,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> float:
    r"""Compute the mean negative log probability of the true class. Lower is better.

    Parameters
    ----------
    y_true, y_proba
        As for `smooth_calibration_error`.
    eps : float, optional
        Probabilities of the true class below this count as this. By default the machine epsilon of the
        predictions' dtype (as in scikit-learn), so that one exact zero does not make the score infinite;
        pass 0 for the score as defined.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    float

    Notes
    -----
    Definition: :math:`\mathbb{E}[-\log v_y]`. Estimator: the (weighted) sample mean, unbiased but for `eps`.
    Cost: O(n).

    Examples
    --------
    >>> import polycal as pc
    >>> round(pc.log_loss([0, 1], [[0.5, 0.5], [0.0, 1.0]]), 4)
    0.3466
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    floor = None if eps is None else check_real(eps, "eps", low=0, high=1)
    return float(np.average(log_losses(sample, floor), weights=sample.sample_weight))


def accuracy(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> float:
    """Compute the share of rows whose most likely class (the first of equals) is right. Higher is better.

    Parameters
    ----------
    y_true, y_proba, sample_weight, class_names, from_logits
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
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    return sample_accuracy(sample)


def log_losses(sample: Sample, eps: float | None = None) -> Float64s:
    """``-log v_y`` of each row, with probabilities floored at ``eps`` (default: the dtype's epsilon)."""
    floor = _default_floor(sample) if eps is None else eps
    with np.errstate(divide="ignore"):
        return -np.log(np.clip(true_proba(sample), floor, 1.0))


def true_proba(sample: Sample) -> Float64s:
    """The probability given to the true class, as float64."""
    return np.take_along_axis(sample.proba, sample.labels[:, None], axis=1)[:, 0].astype(np.float64)


def sample_scores(sample: Sample) -> dict[str, float]:
    """Accuracy, Brier score and log loss of a sample."""
    weight = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    sums = score_sums(sample, weight) / weight.sum()
    return dict(zip(SCORES, sums.tolist(), strict=True))


def score_sums(sample: Sample, weight: Float64s) -> Float64s:
    """The weighted sums of the scores, named `SCORES`, over the rows."""
    from polycal._compiled import rows as kernels  # noqa: PLC0415 - imports numba

    sums: Float64s = kernels.score_sums(sample.proba, sample.labels, weight, _default_floor(sample))
    return sums


def sample_accuracy(sample: Sample) -> float:
    """The share of rows whose most likely class is right."""
    return sample_scores(sample)["accuracy"]


def _default_floor(sample: Sample) -> float:
    return float(np.finfo(sample.proba.dtype).eps)
