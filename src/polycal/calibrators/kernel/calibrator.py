"""The kernel calibrator: multiplicative kernel regression on the residual, chosen and guarded by cross-validation."""

from typing import Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_integer, check_seed
from polycal.calibrators.base import Calibrator
from polycal.calibrators.kernel.baseline import Baseline
from polycal.calibrators.kernel.pooling import Pool
from polycal.calibrators.kernel.search import Found, Last, go_on, search
from polycal.calibrators.kernel.trial import Choice
from polycal.calibrators.kernel.words import to_array, told
from polycal.calibrators.rows import counted_index, counted_rows
from polycal.sample import Sample
from polycal.steps import Program


class KernelCalibrator(Calibrator):
    r"""Repair what one class's probability says about another: the calibrator to try first.

    Temperature scaling, bent where the data ask for it, and on top of it a regression of the label on all
    probabilities and their logarithms. How much of it is used is chosen within the calibration data; where those
    are few, it is averaged with simpler maps and with the input, as each predicts rows it has not seen.

    Parameters
    ----------
    n_folds : int
        Parts of the data for cross-validation. The final model is the mean of the folds' models.
    random_state : int, Generator or None, default 0
        Seed of the parts.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    used_ : {"kernel", "temperature", "pool", "identity"}
        What predicts: the kernel, its baseline only, a pool of several maps, or the input as it is.
    shares_ : ndarray of shape (5,)
        The shares of the input, temperature scaling, vector scaling, the kernel and labels nearby (four, without the
        last, in older files).
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
    gains_ : ndarray of shape (n_parts, 4)
        What each part saved of the log loss of held-out rows in the last search: number of the part, gain, standard
        error, rows that would show it. `summary` says it in words.
    n_samples_, n_groups_ : int
        Rows fitted on, and groups of them that were held out together.

    Notes
    -----
    *Model.* The baseline is :math:`q = (1 - \epsilon)\,\mathrm{softmax}(\log v / T) + \epsilon u` with a background u
    between class frequencies and uniform, which keeps every class possible, followed by
    :math:`\mathrm{softmax}(g(\log q))` with one piecewise linear curve g for all classes: nine numbers, by maximum
    likelihood. The kernel part is :math:`p = \mathrm{softmax}(\gamma \log q + \alpha W^\top x(q))` with features
    :math:`x(q) = [1, q, \log(\max(q, \tau) / \tau) / \log(1/\tau)]` and :math:`\tau = 10^{-4}`: a function of the
    degree-1 multinomial kernel of probabilities and logarithms, fitted by the log loss with a penalty of
    :math:`\lambda` on W (a tenth of it on the bias and on a class's own probability, a hundredth on its own
    logarithm). With more than 512 classes :math:`\tau = 10^{-3}`, for speed, and with fewer rows than classes too there
    is no kernel part, since it would gain nothing.

    *More than that*, for no more than 512 classes, where the data may carry it. Where :math:`\epsilon` is a
    thousandth or more, x is also tried of :math:`s = \mathrm{softmax}(\log v / T)` instead of q, with :math:`\tau =
    10^{-20}` and less of a penalty on bias and own logarithm: behind the background, q does not tell small
    probabilities apart. With a hundred rows a class, or where a penalty of :math:`10^{-4}` or less is best, the same
    with likeness to landmarks is tried for up to 70 classes: to up to 1,000 calibration rows (60,000/k with more than
    60 classes), by a Gaussian kernel on :math:`\log \max(s, 10^{-10})` of a scale of 0.32 median distances (Nystrom
    features, with 0.3 of the penalty). That bends what is linear otherwise. With :math:`nk^2` above 8 million it is
    left out where x of s was tried and gained nothing. And where so small a penalty is best and there are no more than
    255 classes, the logits of `MatrixScaling`, fitted on the same folds, are mixed in.

    *Selection.* Penalties are tried from large to small, on all but one fold each time. For each of them
    :math:`\gamma` and :math:`\alpha` are fitted to the held-out rows, and parts of that change tried too. The model
    that gains most on the baseline in log loss and Brier score, each as a part of the baseline's, is taken; a path ends
    where it stops getting better. Other features, and matrix scaling, must gain more than two standard errors of
    the paired difference on the best before; their path begins near the best penalty before. With more than 2,000 rows,
    300 landmarks and matrix scaling are tried on one fold first: all landmarks and the other folds follow where that is
    better by 1.5 of its standard errors. With :math:`nk^2` above 8 million (268 million for fewer rows) everything is
    tried on one fold first, with every other penalty from a middle one on (larger ones, if that is the best); the other
    folds are fitted by the last three penalties of the path that was better, which are looked at again.
    The weights of the folds' models are averaged, which is averaging their logits.

    *More rows.* The fold of a row, beyond 2,000 of them, and the landmarks are drawn by lots that depend on the row and
    the seed alone: `partial_fit` and a fit to all rows agree about them. After `partial_fit` the baseline is fitted
    again, and the models of the folds go on from where they were, with the same features, landmarks and shares of the
    pool: at the penalty chosen; at the one before it and at smaller ones that have become better, with :math:`nk^2` up
    to 8 million; with landmarks, at smaller ones only, and only where it was 1e-4 or less. Old rows stay in their
    folds. All is searched again beyond 1.5 times the rows of the last search (1.15 times where a pool predicts), from
    1.05 times on where the rows are nearly as many as would show the gain of another kind of model, and where the
    model is no longer safe.

    *Few rows.* Up to 2,000 rows, a pool predicts: :math:`(1 - t) v + t m`, with a mean m (half linear, half geometric)
    of four maps: the kernel's; `TemperatureScaling`; vector scaling with a background,
    :math:`c(v) = (1 - e)\,\mathrm{softmax}(e^{a + a_j} \log v_j + b_j) + e u`, with Gaussian priors of widths 1 for a
    and :math:`b_j`, 0.3 for :math:`a_j` and 2 for the log odds of e, about -5 (for two classes, a beta curve); and, for
    up to 70 classes, labels nearby, :math:`(r c(v) + \sum_i K_i 1_{y_i}) / (r + \sum_i K_i)`, where :math:`K_i` is a
    Gaussian kernel between the logarithms of c(v) and of :math:`c(v_i)` and r the rows that c counts for (0.5, 2, 8 or
    32, and more with fewer than 50 rows; the width is 1/16 to 1 median distances: whichever pair predicts held-out rows
    best). All predict rows that they have not seen: for the kernel, baseline and weights are fitted again without each
    fold, and :math:`\gamma` and :math:`\alpha` to the others. The shares maximise the log likelihood of the linear mean
    of these predictions, with a Dirichlet prior of five rows (of which labels nearby have 0.4, temperature and vector
    scaling 0.1 and 0.25 up to 100 rows and less beyond, the kernel the rest; with n < 50 rows all in proportion, and
    temperature scaling 1 - n/50 more), and with up to half a row of any label, since rows without a mistake do not show
    that there is none. The part t maximises what the mean gains on the input less 0.65 standard errors (1.15 where the
    guard would leave the input as it is): it is 0 without evidence. Fewer than two rows a fold have no pool.

    *Rows that are alike.* Near copies of a row in other folds, or rows of its batch, make models look better than they
    are. Rows are joined with the one nearest to them in log probability, these groups with the nearest group, and so
    on. Where nearest rows have another label less than 0.6 times as often as the baseline errs, models that gain a
    tenth on it are fitted again on folds that keep groups together. All is chosen again with groups held out together,
    and rows count for as many as there are groups, where that costs more than 1.5 standard errors and first groups
    leave less than 0.3 of the gain, or larger ones less than 0.2; larger groups are taken where they leave less than
    half of that. And what surprises the model then must mostly be the label of the nearest row too, as in a batch:
    labels of independent rows differ where they are hard to predict. For first groups, a quarter of it may be another
    label; for larger ones, a tenth, or 1.3 times the part of all rows (and where it is next to none, they may leave
    0.4). Batches are looked for with at least 200 rows and eight groups more than labels (twice as many, with few
    labels), unless the baseline is mostly right and groups of at most 100 rows lie apart: 85 of 100 rows 2.5 times
    nearer to one of their own than to any other. Where they overlap, some of the harm remains: the nearest row is then
    often one of another batch. With ``groups``, which are held out together, nothing is looked for.

    *Guard*, with more rows. On held-out rows a model must beat the baseline by more than a standard error of the
    paired difference, and must not lose more than 0.3 points of accuracy against the input, with half a standard error
    to spare (also for the kernel's map in the pool); without such a model the baseline is used. Where the input is no
    worse than that, allowing for what nine fitted numbers gain by chance, the input stays as it is.

    *Cost.* Some hundred products of an (n, 2k) by a (2k, k) matrix in float32, the former sparse where few classes are
    likely, and fewer for each other kind of features, with up to 1,000 columns more for landmarks; preconditioned by
    each class's block of the Hessian, folds and rows on several threads. Looking for rows that are alike costs
    :math:`n^2 \min(k, 16)` for many rows. Memory: some ten arrays of the input's size in float32, :math:`10^4 k`
    numbers, and with landmarks up to half a GiB (from 67,000 rows on there are fewer of them). Predicting with
    landmarks costs a product of an (n, k) by a (k, 1000) matrix and 1,000 exponentials a row; with labels nearby, as
    many of them as there were rows to fit.

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
    >>> print(" ".join(calibrator.summary().splitlines()[3].split()))
    predicts by temperature 1.31, background and curve, and a regression of penalty 0.00039
    """

    family: ClassVar[str] = "kernel"
    takes_groups: ClassVar[bool] = True
    transient: ClassVar[tuple[str, ...]] = (*Calibrator.transient, "_last")
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
        "gains_",
        "n_samples_",
        "n_groups_",
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
    gains_: Float64s = np.empty((0, 4))
    n_samples_: int = 0
    n_groups_: int = 0
    regularisation_: float
    mixing_: float
    cv_log_loss_: Float64s
    _last: Last | None = None

    def __init__(self, *, n_folds: int = 4, random_state: Seed = 0, from_logits: bool = False) -> None:
        self.n_folds = n_folds
        self.random_state = random_state
        self.from_logits = from_logits

    def _fit(self, sample: Sample, groups: Ints | None = None) -> Program:
        n_folds = check_integer(self.n_folds, "n_folds", minimum=2)
        seed = check_seed(self.random_state)
        index = counted_index(sample)
        found = search(counted_rows(sample), None if groups is None else groups[index], n_folds, seed)
        return self._finish(found, index)

    def _refit(self, sample: Sample, **options: Any) -> Program:
        index, groups, last, found = counted_index(sample), options["groups"], self._last, None
        # Whole weights are counts only where all are.
        if last is not None and np.array_equal(index[: last.index.size], last.index):
            found = go_on(last, counted_rows(sample), None if groups is None else groups[index])
        return self._fit(sample, groups) if found is None else self._finish(found, index)

    def _finish(self, found: Found, index: Ints) -> Program:
        """Set what is said about the fit, and what the next goes on from; the map."""
        self._set_fitted(found.baseline, found.choice, found.pool)
        self.gains_ = to_array(found.gains)
        self.n_samples_, self.n_groups_ = found.sample.n_samples, found.n_groups
        self._last = found.to_go_on(index)
        return found.program()

    def _learnt(self) -> list[tuple[str, str]]:
        return told(self)

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
