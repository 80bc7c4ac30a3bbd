"""The kernel calibrator: multiplicative kernel regression on the residual, chosen and guarded by cross-validation."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_integer, check_sample, to_numpy
from polycal.calibrators.base import Calibrator, counted_index, counted_rows
from polycal.calibrators.kernel.alike import find_groups, grouped_parts
from polycal.calibrators.kernel.baseline import Baseline, fit_baseline
from polycal.calibrators.kernel.pooling import TIMID, Pool, cross_fit, fit_pool
from polycal.calibrators.kernel.selection import Choice, Trial, choose_first, choose_model
from polycal.calibrators.kernel.tuning import BASELINE_NUMBERS, DOUBTFUL_ERRORS, FEW_ROWS, POOL_ERRORS
from polycal.calibrators.loss import total_weight
from polycal.calibrators.regression import sort_by_fold
from polycal.sample import Sample, split_rows
from polycal.steps import Affine, Linear, Log, Program, Softmax, Sum


class KernelCalibrator(Calibrator):
    r"""Repair what one class's probability says about another: the calibrator to try first.

    Temperature scaling, bent where the data ask for it, and on top of it a regression of the label on all
    probabilities and their logarithms. How much of it is used is chosen within the calibration data; where those
    are few, it is averaged with simpler maps and with the input, as each predicts rows it has not seen.

    Parameters
    ----------
    n_folds : int
        Parts of the data for cross-validation. The final model is the mean of the folds' models.
    random_state : int
        Seed of the parts.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    used_ : {"kernel", "temperature", "pool", "identity"}
        What predicts: the kernel, its baseline only, a pool of several maps, or the input as it is.
    shares_ : ndarray of shape (4,)
        The shares of the input, temperature scaling, vector scaling and the kernel.
    temperature_ : float
        T, in the baseline.
    background_ : ndarray of shape (n_classes,)
        What the baseline mixes in.
    slopes_ : ndarray of shape (6,)
        What the curve of the baseline adds to its slope at 0.5, 0.2, 0.05, 0.01, 0.001 and 0.0001.
    features_of_ : {"baseline", "input"}
        What the features of the kernel are of.
    n_landmarks_ : int
        The number of calibration rows that predictions are compared with; 0 where likeness is not used.
    mixes_matrix_ : bool
        Whether matrix scaling is a part of the model.
    regularisation_ : float
        The penalty :math:`\lambda` chosen; infinite where the kernel is not used.
    mixing_ : float
        The part :math:`\alpha` of the kernel's change that is kept; 0 where the kernel is not used.
    cv_log_loss_ : ndarray of shape (n_tried, 5)
        Penalty, mixing, and cross-validated log loss, Brier score and accuracy of every model tried: first those with
        features of the baseline, then, where these were tried, of the input, with landmarks, and with matrix scaling.

    Notes
    -----
    *Model.* The baseline is :math:`q = (1 - \epsilon)\,\mathrm{softmax}(\log v / T) + \epsilon u` with a background u
    between class frequencies and uniform, which keeps every class possible, followed by
    :math:`\mathrm{softmax}(g(\log q))` with one piecewise linear curve g for all classes: nine numbers, by maximum
    likelihood. The kernel part is :math:`p = \mathrm{softmax}(\gamma \log q + \alpha W^\top x(q))` with features
    :math:`x(q) = [1, q, \log(\max(q, \tau) / \tau) / \log(1/\tau)]` and :math:`\tau = 10^{-4}`: a function of the
    degree-1 multinomial kernel of probabilities and logarithms, fitted by the log loss with a penalty of
    :math:`\lambda` on W (a tenth of it on the bias and on a class's own probability, a hundredth on its own
    logarithm). With more than 512 classes :math:`\tau = 10^{-3}`, for speed.

    *More than that*, for no more than 512 classes, where the data may carry it. Where :math:`\epsilon` is a
    thousandth or more, x is also tried of :math:`s = \mathrm{softmax}(\log v / T)` instead of q, with :math:`\tau =
    10^{-20}` and less of a penalty on bias and own logarithm: behind the background, q does not tell small
    probabilities apart. With a hundred rows a class, or where a penalty of :math:`10^{-4}` or less is best, the same
    with likeness to landmarks is tried: to up to 1,000 calibration rows (60,000/k with more than 60 classes), by a
    Gaussian kernel on :math:`\log \max(s, 10^{-10})` of a scale of 0.32 median distances (Nystrom features, with
    0.3 of the penalty). That bends what is linear otherwise. And where so small a penalty is best and there are no more
    than 255 classes, the logits of `MatrixScaling`, fitted on the same folds, are mixed in.

    *Selection.* Penalties are tried from large to small, on all but one fold each time. For each of them
    :math:`\gamma` and :math:`\alpha` are fitted to the held-out rows, and parts of that change tried too. The model
    that gains most on the baseline in log loss and Brier score, each as a part of the baseline's, is taken; a path ends
    where it stops getting better. Other features, and matrix scaling, must gain more than two standard errors of
    the paired difference on the best before; their path begins near the best penalty before. The weights of the
    folds' models are averaged, which is averaging their logits.

    *Few rows.* Up to 2,000 rows, a pool predicts: :math:`(1 - t) v + t m`, with a mean m (half linear, half geometric)
    of three maps: the kernel's; `TemperatureScaling`; and vector scaling with a background,
    :math:`(1 - e)\,\mathrm{softmax}(e^{a + a_j} \log v_j + b_j) + e u`, with Gaussian priors of widths 1 for a and
    :math:`b_j`, 0.3 for :math:`a_j` and 2 for the log odds of e, about -5 (for two classes, a beta curve). All predict
    rows that they have not seen: for the kernel, baseline and weights are fitted again without each fold, and
    :math:`\gamma` and :math:`\alpha` to the others. The shares maximise the log likelihood of the linear mean of these
    predictions, with a Dirichlet prior of three rows, half of them for the kernel (more beyond 100 rows), and with up
    to one row of any label, since rows without a mistake do not show that there is none. The part t maximises what
    the mean gains on the input less a standard error (0.7 beyond some hundred rows; 0.5 more where the guard would
    leave the input as it is): it is 0 without evidence. Fewer than two rows a fold have no pool.

    *Rows that are alike.* Near copies of a row in other folds make models look better than they are. So the model
    chosen is fitted again on folds that keep every row with the one nearest to it in log probability (if that makes at
    least 0.3 groups a row, as copies do), and the best model with features of the baseline also on folds of groups of
    ten, joined by the same rule. Where less than 0.3 of the gain on the baseline is left by the former, or the log
    loss is doubled by the latter, by more than 1.5 standard errors, all is chosen again with these groups held out
    together, and the rows count for as many as there are groups. Given ``groups`` are held out together, and nothing
    is looked for.

    *Guard*, with more rows. On held-out rows a model must beat the baseline by more than a standard error of the
    paired difference, and must not lose more than 0.3 points of accuracy against the input, with half a standard error
    to spare (also for the kernel's map in the pool); without such a model the baseline is used. Where the input is no
    worse than that, allowing for what nine fitted numbers gain by chance, the input stays as it is.

    *Cost.* Some hundred products of an (n, 2k) by a (2k, k) matrix in float32, the former sparse where few classes are
    likely, and as many again for each other kind of features, with up to 1,000 columns more for landmarks;
    preconditioned by each class's block of the Hessian; for few rows, twice that. Memory: some ten arrays of the
    input's size in float32, :math:`10^4 k` numbers, and with landmarks up to half a GiB (from 67,000 rows on there are
    fewer of them). Predicting with landmarks costs a product of an (n, k) by a (k, 1000) matrix and 1,000 exponentials
    a row.

    References
    ----------
    .. [1] Gopalan, Hu, Rothblum (2024), "On computationally efficient multi-class calibration": kernels that see
       every projection, and recalibration from what they see.

    Examples
    --------
    >>> import polycal as pc
    >>> sample = pc.datasets.load_fashion("calibration")
    >>> calibrator = pc.KernelCalibrator().fit(sample.proba, sample.labels)
    >>> calibrator.used_
    'kernel'
    """

    family: ClassVar[str] = "kernel"
    saved_attributes: ClassVar[tuple[str, ...]] = (
        "used_",
        "shares_",
        "temperature_",
        "background_",
        "slopes_",
        "features_of_",
        "n_landmarks_",
        "mixes_matrix_",
        "regularisation_",
        "mixing_",
        "cv_log_loss_",
    )
    used_: str
    temperature_: float
    background_: Float64s
    slopes_: Float64s
    # Files of earlier versions do not say it.
    shares_: Float64s = np.empty(0)
    features_of_: str = "baseline"
    n_landmarks_: int = 0
    mixes_matrix_: bool = False
    regularisation_: float
    mixing_: float
    cv_log_loss_: Float64s

    def __init__(self, *, n_folds: int = 4, random_state: int = 0, from_logits: bool = False) -> None:
        self.n_folds = n_folds
        self.random_state = random_state
        self.from_logits = from_logits

    def fit(
        self, proba: Any, y: Any, sample_weight: Any = None, *, class_names: Any = None, groups: Any = None
    ) -> Self:
        """Learn the map.

        Parameters
        ----------
        proba : array-like or data frame of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predicted probabilities (logits with ``from_logits=True``) of rows the classifier was not trained on.
            The names of a frame's columns become the class names.
        y : array-like of shape (n_samples,)
            Class indices, or class names when these are known.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; a row of weight 2 counts as two rows.
        class_names : sequence of str, optional
            Names of the classes, in the order of the columns.
        groups : array-like of shape (n_samples,), optional
            A label for each row, the same for rows that belong together (frames of a film, visits of a patient): these
            are held out together. Without it, rows that are alike are looked for.

        Returns
        -------
        KernelCalibrator
            Itself.
        """
        sample = check_sample(
            y, proba, sample_weight=sample_weight, class_names=class_names, from_logits=self.from_logits
        )
        return self._fit_sample(sample, groups=_check_row_groups(groups, sample.n_samples))

    def _fit(self, sample: Sample, groups: Ints | None = None) -> Program:
        n_folds = check_integer(self.n_folds, "n_folds", minimum=2)
        seed = check_integer(self.random_state, "random_state", minimum=0)
        groups = None if groups is None else groups[counted_index(sample)]
        plan = _plan(counted_rows(sample), groups, n_folds, seed)
        trial, baseline, sample = plan.trial, plan.baseline, plan.trial.sample
        choice = plan.choice
        if plan.groups is not None and plan.groups.max() < FEW_ROWS:
            pool = _fit_pool(trial, plan.groups, choice)
        else:
            pool = Pool(np.array([0.0, 0.0, 1.0]), 0.0 if _input_is_enough(trial, choice.gain) else 1.0)
        self._set_fitted(baseline, choice, pool)
        maps = [fit(sample) if share else () for fit, share in zip(TIMID, pool.shares, strict=False)]
        return pool.steps([*maps, _program(baseline, choice)])

    def _set_fitted(self, baseline: Baseline, choice: Choice, pool: Pool) -> None:
        """Set what is said about the fit."""
        self.temperature_, self.background_ = baseline.mixture.temperature, baseline.mixture.background
        self.slopes_ = baseline.curve.slopes
        self.cv_log_loss_ = np.array(choice.table, dtype=np.float64).reshape(-1, 5)
        self.shares_ = np.array([1.0 - pool.part, *(pool.part * pool.shares)])
        if self.shares_[0] == 1.0:
            self.used_ = "identity"
        elif self.shares_[3] < 1.0:
            self.used_ = "pool"
        else:
            self.used_ = "temperature" if choice.features is None else "kernel"
        if self.shares_[3] == 0.0:
            choice = Choice()
        self.features_of_ = "baseline" if choice.features is None else choice.features.source
        self.n_landmarks_ = 0 if choice.features is None else choice.features.n_landmarks
        self.mixes_matrix_ = choice.matrix is not None
        self.regularisation_, self.mixing_ = choice.penalty, choice.mixing


@dataclass(frozen=True, eq=False)
class _Plan:
    """Folds, and what is known once they are settled.

    Attributes
    ----------
    trial : Trial
    baseline : Baseline
        Of all rows.
    choice : Choice
        The model chosen by them.
    groups : ndarray of int64, shape (n_samples,), or None
        The number of each row's group, or of the row where there are none; None where there are too few to hold out.
    """

    trial: Trial
    baseline: Baseline
    choice: Choice
    groups: Ints | None


def _plan(sample: Sample, groups: Ints | None, n_folds: int, seed: int) -> _Plan:
    """Folds of random rows, or of groups where there are some or rows are found to be alike."""
    if groups is None:
        parts = split_rows(sample, (1.0,) * n_folds, seed)
    else:
        parts = grouped_parts(sample, groups, n_folds, seed)
    order, folds = sort_by_fold(parts)
    sample, of_row = sample.take(order), np.arange(order.size) if groups is None else groups[order]
    baseline = fit_baseline(sample)
    trial = Trial.of(sample, folds, [baseline.seen(sample)])
    if sample.n_samples < 2 * n_folds or len(folds) < 2:
        return _Plan(trial, baseline, Choice(), None)
    first = choose_first(trial)
    choice = choose_model(trial, baseline.mixture, seed, first)
    if groups is None:
        groups = find_groups(trial, baseline, (first, choice), seed)
        if groups is not None:
            return _plan(_counted_once(sample, groups), groups, n_folds, seed)
    return _Plan(trial, baseline, choice, of_row)


def _counted_once(sample: Sample, groups: Ints) -> Sample:
    """The sample with weights that make it count for as many rows as it has groups."""
    weight = np.ones(groups.size) if sample.sample_weight is None else sample.sample_weight
    return replace(sample, sample_weight=weight * (groups.max() + 1) / groups.size)


def _check_row_groups(groups: Any, n_samples: int) -> Ints | None:
    """The number of each row's group."""
    if groups is None:
        return None
    labels = to_numpy(groups, "groups")
    if labels.shape != (n_samples,):
        raise ValueError(f"groups must have shape ({n_samples},), a label for each row; got {labels.shape}.")
    return np.unique(labels, return_inverse=True)[1]


def _fit_pool(trial: Trial, groups: Ints, choice: Choice) -> Pool:
    """The pool of the input, temperature scaling, vector scaling and the model chosen."""
    sample, folds, rows = trial.sample, trial.folds, np.arange(trial.sample.n_samples)
    without = [fit_baseline(sample.take(np.delete(rows, fold))).seen(sample) for fold in folds]
    chosen = Trial.of(sample, folds, without).held_out(choice)
    errors = DOUBTFUL_ERRORS if _input_is_enough(trial, choice.gain) else POOL_ERRORS
    return fit_pool(sample, groups, [*(cross_fit(fit, sample, folds) for fit in TIMID), chosen], errors)


def _program(baseline: Baseline, choice: Choice) -> Program:
    """The model chosen."""
    mixture = baseline.mixture
    tempered, logits = mixture.tempering_steps(), (*mixture.mixing_steps(), *baseline.curve.logit_steps())
    if choice.features is None:
        return *tempered, *logits, Softmax()
    scaled = (Affine(np.array([choice.scale]), np.zeros(1)),)
    change = choice.features.steps(choice.final_weight())
    if choice.features.source == "input":
        total: Program = *tempered, Sum(((*logits, *scaled), change))
    else:
        total = *tempered, *logits, Sum((scaled, (Softmax(), *change)))
    if choice.matrix is None:
        return *total, Softmax()
    matrix = Log(), Linear(choice.matrix[:-1], choice.matrix[-1])
    return Sum((total, matrix)), Softmax()


def _input_is_enough(trial: Trial, gain: float) -> bool:
    """Whether the input is no worse than a model of this gain on the baseline, less what numbers gain by chance."""
    chance = BASELINE_NUMBERS / total_weight(trial.sample)
    luck = chance / max(trial.baseline.log_loss, chance)
    possible = bool(np.isfinite(trial.input.log_loss))
    return possible and trial.input.relative_gain(trial.baseline)[0] + luck >= gain
