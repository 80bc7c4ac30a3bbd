"""The kernel calibration error, unbiased, and its test."""

from typing import Any

import numpy as np

from polycal._threads import map_threads, thread_budget
from polycal._typing import Float64s, Floats, Seed
from polycal._validation import check_integer, check_kernel, check_level, check_sample, check_seed
from polycal.inference.redraw import CalibrationTest, draw_labels
from polycal.kernels.kernels import Kernel, Laplace
from polycal.kernels.products import block_threads, lower_blocks, quadratic_forms, residuals
from polycal.sample import Sample, row_blocks

# Rows of a block given to one thread at a time.
_THREAD_ROWS = 256


def kernel_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    kernel: Kernel | None = None,
    unbiased: bool = True,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    n_jobs: int | None = -1,
) -> float:
    r"""Compute the squared kernel calibration error: do alike predictions err alike?

    0 is best. The unbiased estimate has mean 0 for calibrated predictions, and so is negative about half the time.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities.
    kernel : Kernel, default Laplace()
        What "alike" means.
    unbiased : bool, default True
        Whether to leave out the pairs of a row with itself. They make the estimate non-negative, and biased upwards
        by about 1/n.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`. Weights say how much a row counts, not that it was seen often: for the
        unbiased estimate a row of weight 2 differs from two equal rows.
    n_jobs : int or None, default -1
        Number of threads, -1 for one per core.

    Returns
    -------
    float

    See Also
    --------
    kernel_test : Whether the error can be chance.

    Notes
    -----
    Definition: :math:`\mathbb{E} \ker(v, v') \langle y - v, y' - v' \rangle` over independent pairs: the square of the
    largest correlation of any w in the unit ball of the kernel's Hilbert space (one copy per class) [1]_. Estimator:
    the mean over the pairs of different rows. Cost: :math:`n^2 k / 2` multiply-adds twice, in blocks, in float64.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019), "Calibration tests in multi-class classification".

    Examples
    --------
    >>> import polycal as pc
    >>> y_proba = [[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
    >>> round(pc.kernel_calibration_error([1, 2], y_proba), 6)
    -0.103179
    """
    kernel = check_kernel(Laplace() if kernel is None else kernel)
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    pairs = _pair_weight(sample, diagonal=not unbiased)
    points = sample.proba.astype(np.float64, copy=False)
    with thread_budget(n_jobs):
        forms = quadratic_forms(
            kernel.resolve(points), points, residuals(sample, np.float64), diagonal=not unbiased
        )
    return float(forms.sum() / pairs)


def kernel_test(
    y_true: Any,
    y_proba: Any,
    *,
    kernel: Kernel | None = None,
    n_draws: int = 199,
    alpha: float = 0.05,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    random_state: Seed = 0,
    n_jobs: int | None = -1,
) -> CalibrationTest:
    r"""Test whether labels can have been drawn from the predictions.

    Parameters
    ----------
    y_true, y_proba, sample_weight, class_names, from_logits, n_jobs
        As for `kernel_calibration_error`.
    kernel : Kernel, default Laplace()
        What "alike" means. A smaller scale, such as ``Laplace(0.3)``, often sees more. It may depend on the
        predictions, as ``Laplace("median")`` does, but not on the labels.
    n_draws : int, default 199
        How often labels are redrawn. The smallest p-value possible is ``1 / (n_draws + 1)``.
    alpha : float, default 0.05
        The level: how often a calibrated predictor is rejected, at most.
    random_state : int, Generator or None, default 0
        Seed of the labels drawn.

    Returns
    -------
    CalibrationTest
        Its `notion` is the kernel.

    See Also
    --------
    calibration_test : The same test by any notion's error.

    Notes
    -----
    If labels are drawn from the predictions, then the labels seen and those redrawn are exchangeable given the
    predictions: with the statistic T of `kernel_calibration_error`, the p-value
    :math:`(1 + \#\{d : T_d \ge T\}) / (1 + D)` is valid for any n, k and kernel. What does not depend on labels is
    computed once: :math:`\sum_{i \ne j} \ker_{ij} \langle z_i, z_j \rangle` is
    :math:`\sum_{i \ne j} \ker_{ij} 1[y_i = y_j] - 2 \sum_i (K V)_{i, y_i}` plus a constant, so a draw costs one
    comparison per pair. Cost: :math:`n^2 (k + D / 2)` operations in all, in blocks.

    Examples
    --------
    >>> import polycal as pc
    >>> sample = pc.datasets.load_fashion("evaluation").take(slice(500))
    >>> pc.kernel_test(sample.labels, sample.proba, n_draws=99).p_value
    0.01
    """
    kernel = check_kernel(Laplace() if kernel is None else kernel)
    check_integer(n_draws, "n_draws", minimum=1)
    check_level(alpha)
    random_state = check_seed(random_state)
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    pairs = _pair_weight(sample, diagonal=False)
    kernel = kernel.resolve(sample.proba)
    with thread_budget(n_jobs), block_threads(sample.proba):
        values = _statistics(sample, kernel, _with_redrawn(sample, n_draws, random_state)) / pairs
    draws, levels = values[1:], sorted({alpha, 0.5, 1.0 - alpha})
    return CalibrationTest(
        statistic=float(values[0]),
        p_value=float((1 + np.count_nonzero(draws >= values[0])) / (1 + n_draws)),
        null_mean=float(draws.mean()),
        null_std=float(draws.std(ddof=1)) if n_draws > 1 else 0.0,
        null_quantiles=dict(zip(levels, np.quantile(draws, levels).tolist(), strict=True)),
        draws=draws,
        alpha=alpha,
        notion=kernel,
    )


def _pair_weight(sample: Sample, *, diagonal: bool) -> float:
    """The sum of the products of weights (of mean 1) over all pairs counted."""
    weight = sample.mass * sample.n_samples
    pairs = float(weight.sum() ** 2 - (0.0 if diagonal else weight @ weight))
    if np.count_nonzero(weight) < 2 and not diagonal:
        raise ValueError("y_proba has a single row (of positive weight); pairs need at least two.")
    return pairs


def _with_redrawn(sample: Sample, n_draws: int, random_state: int) -> Any:
    """The labels seen, then labels drawn from the predictions: (n, 1 + n_draws), in the smallest integers."""
    labels = np.empty((sample.n_samples, 1 + n_draws), dtype=np.min_scalar_type(sample.n_classes))
    labels[:, 0] = sample.labels
    seeds = np.random.SeedSequence(random_state).spawn(n_draws)

    def draw(d: int) -> None:
        labels[:, 1 + d] = draw_labels(sample.proba, np.random.default_rng(seeds[d]))

    map_threads(draw, range(n_draws))
    return labels


def _statistics(sample: Sample, kernel: Kernel, labels: Any) -> Float64s:
    """``sum_{i != j} ker_ij <z_i, z_j>`` for each column of labels, with one pass over the kernel."""
    points = sample.proba.astype(np.float64, copy=False)
    weight = None if sample.sample_weight is None else sample.mass * sample.n_samples
    expected = np.zeros(points.shape)
    agreement = np.zeros(labels.shape[1])
    for rows, columns, unweighted in lower_blocks(kernel, points, diagonal=False):
        block = unweighted if weight is None else unweighted * weight[rows, None] * weight[columns]
        expected[rows] += block @ points[columns]
        if rows != columns:
            expected[columns] += block.T @ points[rows]
        agreement += _agreement(block, labels[rows], labels[columns], below=rows == columns)
    constant = np.einsum("ij,ij->", points, expected)
    seen = np.zeros(labels.shape[1])
    for rows in row_blocks(*labels.shape):
        seen += np.take_along_axis(expected[rows], labels[rows].astype(np.int64), axis=1).sum(axis=0)
    statistics: Float64s = 2.0 * agreement - 2.0 * seen + constant
    return statistics


def _agreement(block: Floats, left: Any, right: Any, *, below: bool) -> Float64s:
    """Per draw, the sum of the block over the pairs with equal labels, on all cores."""
    from polycal._compiled.kernels import agreement_sums  # noqa: PLC0415 - imports numba

    starts = range(0, block.shape[0], _THREAD_ROWS)

    def part(start: int) -> Float64s:
        rows = slice(start, start + _THREAD_ROWS)
        sums: Float64s = agreement_sums(block[rows], left[rows], right, start if below else -1)
        return sums

    total: Float64s = np.array(map_threads(part, starts)).sum(axis=0)
    return total
