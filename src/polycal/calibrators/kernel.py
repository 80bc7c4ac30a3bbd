"""The kernel calibrator: multiplicative kernel regression on the residual, chosen and guarded by cross-validation."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from polycal._split import split_rows
from polycal._typing import Float64s, Floats
from polycal._validation import check_integer
from polycal.calibrators._base import Calibrator
from polycal.calibrators._choice import Choice, choose
from polycal.calibrators._counts import counted_rows
from polycal.calibrators._fold_path import FoldPath
from polycal.calibrators._kernel_features import (
    FEATURES_OF_INPUT,
    MANY_CLASSES,
    KernelFeatures,
    features_of_base,
)
from polycal.calibrators._likelihood import total_weight
from polycal.calibrators._mixture_base import MixtureBase, fit_mixture_base
from polycal.calibrators._scoring import Scores, logit_scores, proba_scores
from polycal.calibrators._shared_curve import KNOTS, SharedCurve, fit_shared_curve
from polycal.sample import Sample
from polycal.steps import Affine, Program, Softmax, Sum

# Numbers fitted before the kernel: a sample of n rows flatters each by about 1/n in log loss.
_BASE_NUMBERS = 3 + len(KNOTS)
# A background of less weight hides nothing that matters.
_HIDING = 1e-3


class KernelCalibrator(Calibrator):
    r"""Repair what one class's probability says about another: the calibrator to try first.

    Temperature scaling, bent where the data ask for it, and on top of it a regression of the label on all
    probabilities and their logarithms. How much of it is used is chosen within the calibration data; where those
    are too few for it, little or nothing is.

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
    used_ : {"kernel", "temperature", "identity"}
        What passed the guard: everything, the base only, or the input as it is.
    temperature_ : float
        T, in the base.
    background_ : ndarray of shape (n_classes,)
        What the base mixes in.
    slopes_ : ndarray of shape (6,)
        What the curve of the base adds to its slope at 0.5, 0.2, 0.05, 0.01, 0.001 and 0.0001.
    features_of_ : {"base", "input"}
        What the features of the kernel are of.
    regularisation_ : float
        The ridge :math:`\lambda` chosen; infinite where the kernel is not used.
    mixing_ : float
        The part :math:`\alpha` of the kernel's change that is kept; 0 where the kernel is not used.
    cv_log_loss_ : ndarray of shape (n_tried, 5)
        Ridge, mixing, and cross-validated log loss, Brier score and accuracy of every model tried: first those with
        features of the base, then, where these were tried, of the input.

    Notes
    -----
    *Model.* The base is :math:`q = (1 - \epsilon)\,\mathrm{softmax}(\log v / T) + \epsilon u` with a background u
    between class frequencies and uniform, which keeps every class possible, followed by
    :math:`\mathrm{softmax}(g(\log q))` with one piecewise linear curve g for all classes: nine numbers, by maximum
    likelihood. The kernel part is :math:`p = \mathrm{softmax}(\gamma \log q + \alpha W^\top x(q))` with features
    :math:`x(q) = [1, q, \log(\max(q, \tau) / \tau) / \log(1/\tau)]` and :math:`\tau = 10^{-4}`: a function of the
    degree-1 multinomial kernel of probabilities and logarithms, fitted by the log loss with a ridge of weight
    :math:`\lambda` on W (a tenth of it on the bias and on a class's own probability, a hundredth on its own
    logarithm). With more than 512 classes :math:`\tau = 10^{-3}`, for speed. Where :math:`\epsilon` is a thousandth or
    more and there are no more classes than that, x is also tried of :math:`\mathrm{softmax}(\log v / T)` instead of q,
    with :math:`\tau = 10^{-6}` and less of a ridge on bias and own logarithm: behind the background, q does not tell
    small probabilities apart.

    *Selection.* Ridges are tried from strong to weak, on all but one fold each time. For each of them
    :math:`\gamma` and :math:`\alpha` are fitted to the held-out rows, and parts of that change tried too. The model
    that gains most on the base in log loss and Brier score, each as a part of the base's, is taken, whichever its
    features; a path ends where it stops getting better, and a second one begins near the best of the first. The weights
    of the folds' models are averaged, which is averaging their logits.

    *Guard.* On held-out rows a model must beat the base by more than a standard error of the paired difference, and
    must not lose more than 0.3 points of accuracy against the input, with half a standard error to spare; without
    such a model the base is used. Where the input is no worse than that, allowing for what nine fitted numbers gain
    by chance, the input stays as it is.

    *Cost.* Some hundred products of an (n, 2k) by a (2k, k) matrix in float32, the former sparse where few classes are
    likely, and as many again where features of the input are tried; preconditioned by each class's block of the
    Hessian. Memory: some ten arrays of the input's size in float32, and :math:`10^4 k` numbers.

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

    kind: ClassVar[str] = "kernel"
    saved_attributes: ClassVar[tuple[str, ...]] = (
        "used_",
        "temperature_",
        "background_",
        "slopes_",
        "features_of_",
        "regularisation_",
        "mixing_",
        "cv_log_loss_",
    )
    used_: str
    temperature_: float
    background_: Float64s
    slopes_: Float64s
    # Files of the first version do not say it.
    features_of_: str = "base"
    regularisation_: float
    mixing_: float
    cv_log_loss_: Float64s

    def __init__(self, *, n_folds: int = 4, random_state: int = 0, from_logits: bool = False) -> None:
        self.n_folds = n_folds
        self.random_state = random_state
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:
        n_folds = check_integer(self.n_folds, "n_folds", minimum=2)
        seed = check_integer(self.random_state, "random_state", minimum=0)
        sample = counted_rows(sample)
        base = fit_mixture_base(sample)
        log_proba = base.log_proba(sample)
        curve = fit_shared_curve(sample, log_proba)
        curve.apply(log_proba)
        raw = proba_scores(sample)
        standard = logit_scores(sample, log_proba, log_proba, 1.0, 0.0)
        choice, kind = Choice(), features_of_base(sample.n_classes)
        if sample.n_samples >= 2 * n_folds:
            parts = split_rows(sample, (1.0,) * n_folds, seed)
            for tried, seen in _features(sample, base, log_proba):
                path = FoldPath(sample, log_proba, tried, seen, parts)
                near = None if choice.weight is None else choice.strength
                found = choose(path, raw.take(path.order), standard.take(path.order), near=near)
                # It holds several arrays of the input's size.
                del path
                found = choice.or_better(found)
                choice, kind = found, tried if found.gain > choice.gain else kind
        self.temperature_, self.background_, self.slopes_ = base.temperature, base.background, curve.slopes
        self._set_choice(choice, kind, _is_enough(raw, standard, choice.gain, total_weight(sample)))
        return () if self.used_ == "identity" else _program(base, curve, choice, kind)

    def _set_choice(self, choice: Choice, kind: KernelFeatures, input_is_enough: bool) -> None:
        """Set what is said about the choice."""
        used = "temperature" if choice.weight is None else "kernel"
        self.used_ = "identity" if input_is_enough else used
        self.features_of_ = "input" if kind is FEATURES_OF_INPUT else "base"
        self.regularisation_ = choice.strength if self.used_ == "kernel" else np.inf
        self.mixing_ = choice.mixing if self.used_ == "kernel" else 0.0
        self.cv_log_loss_ = np.array(choice.table, dtype=np.float64).reshape(-1, 5)


def _features(
    sample: Sample, base: MixtureBase, log_proba: Floats
) -> Iterator[tuple[KernelFeatures, Floats]]:
    """The features to try, and the logarithms of the predictions that they are of."""
    yield features_of_base(sample.n_classes), log_proba
    if base.hidden >= _HIDING and sample.n_classes <= MANY_CLASSES:
        yield FEATURES_OF_INPUT, base.log_tempered(sample)


def _program(base: MixtureBase, curve: SharedCurve, choice: Choice, kind: KernelFeatures) -> Program:
    """The model chosen."""
    tempered, logits = base.tempering_steps(), (*base.mixing_steps(), *curve.logit_steps())
    weight = choice.final_weight()
    if weight is None:
        return *tempered, *logits, Softmax()
    straight, change = (Affine(np.array([choice.scale]), np.zeros(1)),), kind.steps(weight)
    if kind is FEATURES_OF_INPUT:
        return *tempered, Sum(((*logits, *straight), change)), Softmax()
    return *tempered, *logits, Sum((straight, (Softmax(), *change))), Softmax()


def _is_enough(raw: Scores, standard: Scores, gain: float, total: float) -> bool:
    """Whether the input is no worse than a model of this gain on the base, less what fitted numbers gain by chance."""
    luck = _BASE_NUMBERS / total / max(standard.log_loss, _BASE_NUMBERS / total)
    return bool(np.isfinite(raw.log_loss)) and raw.relative_gain(standard)[0] + luck >= gain
