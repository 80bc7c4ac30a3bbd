"""Matrix scaling and Dirichlet calibration: every class's score may depend on every class's probability."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal.calibrators.base import Calibrator
from polycal.calibrators.loss import log_proba, losses_and_proba, total_weight, working_dtype
from polycal.calibrators.optimise import Effort
from polycal.calibrators.priors import DIRICHLET_RATIO, MatrixPenalty, check_penalty, check_prior, is_auto
from polycal.calibrators.regression import FoldModels, SoftmaxRegression, sort_by_fold
from polycal.calibrators.rows import counted_rows
from polycal.calibrators.temperature import fit_inverse_temperature
from polycal.sample import Sample, row_blocks, split_rows
from polycal.steps import Linear, Log, Program, Softmax

# Of Dirichlet calibration with a given intercept: holds the diagonal of a class that does not occur, and of separable
# data, hardly any other.
_DIRICHLET_DIAGONAL = 1.0
# For each unit of weight: the first is temperature scaling for all purposes, the last is not felt.
RELATIVE_PENALTIES = 10.0 ** np.arange(4.0, -5.5, -0.5)
N_FOLDS = 4
_SEED = 0
# Multiplications in a pass over the rows up to which every fold is held out in turn; with more, one is.
_MUCH_WORK = 2**24
# The path ends after so many penalties in a row that are worse than the best.
_PATIENCE = 2
# Of the last fit; and while choosing, where losses that differ by less than the tolerance are the same.
EFFORT, CHOICE_EFFORT = Effort(1e-12, 500), Effort(1e-5, 500)


class LogLinearCalibrator(Calibrator):
    """A calibrator that mixes all classes' log probabilities; subclasses say how W and b are penalised."""

    saved_attributes: ClassVar[tuple[str, ...]] = ("weight_", "bias_", "off_diagonal_", "cv_log_loss_")
    off_diagonal: float | str
    prior: float | None
    weight_: Float64s
    bias_: Float64s
    # Files of the first version have neither.
    off_diagonal_: float = np.nan
    cv_log_loss_: Float64s = np.empty((0, 2))

    @abstractmethod
    def _penalty(self, off_diagonal: float) -> "MatrixPenalty":
        """The penalty of the sum of log losses, given that of the entries off the diagonal."""

    def _n_numbers(self, n_classes: int) -> int:
        return n_classes**2 + n_classes

    def _fit(self, sample: Sample) -> Program:
        prior = check_prior(self.prior)
        choice = self._choose(sample, prior)
        start = tempered_map(sample, prior)
        penalty = self._penalty(choice.penalty).under(prior, start[0, 0]).per(total_weight(sample))
        self.weight_, self.bias_ = fit_log_linear(sample, penalty, choice.maps[0] if choice.maps else start)
        self.off_diagonal_ = choice.penalty
        self.cv_log_loss_ = np.array(choice.table, dtype=np.float64).reshape(-1, 2)
        return Log(), Linear(self.weight_, self.bias_), Softmax()

    def _choose(self, sample: Sample, prior: float) -> "PenaltyChoice":
        """The penalty given, or one that the sample asks for."""
        if is_auto(self.off_diagonal):
            return choose_penalty(sample, self._penalty, prior)
        return PenaltyChoice(check_penalty(self.off_diagonal, "off_diagonal"))


class MatrixScaling(LogLinearCalibrator):
    r"""Mix all classes' log probabilities: :math:`p = \mathrm{softmax}(W^\top \log v + b)`, with a penalty.

    Can move probability between classes that are confused, but has :math:`k^2 + k` numbers to learn. How much these
    are penalised is chosen within the calibration data; where those are few, the result is near temperature scaling.

    Parameters
    ----------
    off_diagonal : "auto" or float
        Penalty of W's off-diagonal entries, which pulls them towards 0; "auto" chooses it.
    diagonal : "auto" or float
        Penalty that pulls W's diagonal towards a constant, and b towards 0; "auto" is a 300th of that off the
        diagonal. With a large `off_diagonal`, the result is `VectorScaling` with this penalty.
    prior : float or None
        How much the prior of the diagonal's mean counts; with None, only the penalties given or chosen do.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    weight_ : ndarray of shape (n_classes, n_classes)
        W; ``weight_[i, j]`` is what class i's log probability counts for class j.
    bias_ : ndarray of shape (n_classes,)
        b.
    off_diagonal_ : float
        The penalty given or chosen.
    cv_log_loss_ : ndarray of shape (n_tried, 2)
        Every penalty tried, and its log loss on held-out rows; empty where none was tried.

    Notes
    -----
    Minimises :math:`\sum_i w_i \ell_i + \frac{1}{2} \sum_{ij} \lambda_{ij} (W - \beta I)_{ij}^2 +
    \frac{\lambda}{2} \|b\|^2 + 5 \pi (\beta T - 1)^2` over W, b and :math:`\beta`, with log losses
    :math:`\ell_i`, the T of `TemperatureScaling` and the weight :math:`\pi` of the prior, under which no penalty is
    less than 0.3 of that weight: without evidence no class takes the place of another. A convex problem, solved
    from the temperature-scaled predictions by L-BFGS, preconditioned by each class's block of the Hessian, until a step
    promises less than a part of :math:`10^{-12}`. Cost: :math:`O(nk^2)` a step, some ten to a hundred steps (more with
    very small penalties, and no more than 500). Memory: some four arrays of the input's size, and :math:`10^4 k`
    numbers.

    *Choice.* Penalties of :math:`10^4 n, 10^{3.5} n, \dots, 10^{-5} n` for a total weight n are tried from large to
    small, each fit starting from the one before, until two in a row have more log loss on held-out rows than the best.
    Used is the largest that is worse than the best by no more than the standard error of the difference. Held out
    is each of four random parts in turn, or one alone where :math:`nk^2` exceeds 17 million; fewer than 8 rows
    get the first penalty. The parts depend on the rows' contents, not on their order. Whole weights are counts:
    copies of a row may be in different parts. Cost: as some five fits, or twenty where all parts are used.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", section 4.2.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]] * 2, [1, 0, 0] * 2
    >>> pc.MatrixScaling().fit(proba, y).weight_.shape
    (2, 2)
    """

    family: ClassVar[str] = "matrix"

    def __init__(
        self,
        *,
        off_diagonal: float | str = "auto",
        diagonal: float | str = "auto",
        prior: float | None = 1.0,
        from_logits: bool = False,
    ) -> None:
        self.off_diagonal = off_diagonal
        self.diagonal = diagonal
        self.prior = prior
        self.from_logits = from_logits

    def _penalty(self, off_diagonal: float) -> "MatrixPenalty":
        if is_auto(self.diagonal):
            return MatrixPenalty.tied(off_diagonal)
        diagonal = check_penalty(self.diagonal, "diagonal")
        return MatrixPenalty(off_diagonal, diagonal, diagonal)


class DirichletCalibrator(LogLinearCalibrator):
    r"""Mix all classes' log probabilities, with off-diagonal and intercept regularisation (ODIR).

    The family of `MatrixScaling`, :math:`p = \mathrm{softmax}(W^\top \log v + b)`, with the penalty of its authors:
    each class has a scale of its own all but for free. Made for few classes and much data; with few data for its
    classes, the penalties it chooses make it vector or temperature scaling.

    Parameters
    ----------
    off_diagonal : "auto" or float
        Penalty of W's off-diagonal entries, which pulls them towards 0; "auto" chooses it, as `MatrixScaling` does.
    intercept : "auto" or float
        Penalty that pulls b towards 0; "auto" is a 3000th of that off the diagonal.
    prior : float or None
        How much the prior of the diagonal's mean counts; with None, only the penalties given or chosen do.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    weight_ : ndarray of shape (n_classes, n_classes)
        W; ``weight_[i, j]`` is what class i's log probability counts for class j.
    bias_ : ndarray of shape (n_classes,)
        b.
    off_diagonal_ : float
        The penalty given or chosen.
    cv_log_loss_ : ndarray of shape (n_tried, 2)
        Every penalty tried, and its log loss on held-out rows; empty where none was tried.

    Notes
    -----
    Minimises :math:`\sum_i w_i \ell_i + \frac{\lambda}{2} \sum_{i \ne j} W_{ij}^2 + \frac{\mu}{2} \|b\|^2` with log
    losses :math:`\ell_i`, and with a penalty that pulls the diagonal towards a constant: of :math:`\mu` where that is
    "auto", which keeps scarce data from harm, else of 1, hardly felt. In the units of [1]_ (mean loss, mean of squares)
    the penalties are :math:`\lambda k (k - 1) / 2n` and :math:`\mu k / 2n`. Prior, search, choice and cost: as for
    `MatrixScaling`.

    References
    ----------
    .. [1] Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), "Beyond temperature scaling: obtaining
       well-calibrated multiclass probabilities with Dirichlet calibration", section 3.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]] * 2, [1, 0, 0] * 2
    >>> pc.DirichletCalibrator().fit(proba, y).weight_.shape
    (2, 2)
    """

    family: ClassVar[str] = "dirichlet"

    def __init__(
        self,
        *,
        off_diagonal: float | str = "auto",
        intercept: float | str = "auto",
        prior: float | None = 1.0,
        from_logits: bool = False,
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.prior = prior
        self.from_logits = from_logits

    def _penalty(self, off_diagonal: float) -> "MatrixPenalty":
        if is_auto(self.intercept):
            return MatrixPenalty.tied(off_diagonal, DIRICHLET_RATIO)
        return MatrixPenalty(off_diagonal, _DIRICHLET_DIAGONAL, check_penalty(self.intercept, "intercept"))


def fit_log_linear(
    sample: Sample, penalty: MatrixPenalty, start: Floats | None = None
) -> tuple[Float64s, Float64s]:
    """The W of shape (k, k) and b of least penalised log loss per unit of weight.

    The search starts from temperature scaling, or from ``start``, a map with the bias below the matrix.
    """
    problem = log_linear_problem(sample, np.float64)
    start = tempered_map(sample, 1.0) if start is None else start.astype(np.float64)
    point = problem.solve(penalty, start, EFFORT)
    return point[:-1].astype(np.float64), point[-1].astype(np.float64)


def log_linear_problem(sample: Sample, dtype: type[np.floating]) -> SoftmaxRegression:
    """Softmax regression of log probabilities and a constant, no more precise than the predictions are."""
    n, k = sample.proba.shape
    features = np.ones((n, k + 1), dtype=min(np.dtype(dtype), sample.proba.dtype, key=lambda d: d.itemsize))
    features[:, :k] = log_proba(sample)
    return SoftmaxRegression(features, sample.labels, sample.mass.astype(dtype), None, (slice(0, n),))


def fold_inverses(sample: Sample, folds: Sequence[slice], prior: float) -> list[float]:
    """The 1/T of temperature scaling fitted without each fold of a sorted sample."""
    rows = np.arange(sample.n_samples)
    return [float(tempered_map(sample.take(np.delete(rows, fold)), prior)[0, 0]) for fold in folds]


def fold_maps(sample: Sample, folds: Sequence[slice], starts: Sequence[Floats]) -> FoldModels:
    """A map for each fold of a sorted sample: as yet the one it starts from."""
    dtype = working_dtype(sample)
    return FoldModels([log_linear_problem(sample, dtype)], folds, [point.astype(dtype) for point in starts])


def tempered_map(sample: Sample, prior: float) -> Float64s:
    """Temperature scaling as a map of shape (k + 1, k)."""
    return scaled_map(sample.n_classes, fit_inverse_temperature(sample, log_proba(sample), prior))


def scaled_map(n_classes: int, inverse: float) -> Float64s:
    """A number on the diagonal, and no bias."""
    return inverse * np.eye(n_classes + 1, n_classes)


@dataclass(frozen=True, eq=False)
class PenaltyChoice:
    """A penalty of the entries off the diagonal, and how it was chosen.

    Attributes
    ----------
    penalty : float
    maps : sequence of ndarray of shape (n_classes + 1, n_classes)
        Those of the folds, the bias below the matrix; none where no penalty was tried.
    table : sequence
        Every penalty tried, and its log loss on held-out rows.
    """

    penalty: float
    maps: Sequence[Floats] = ()
    table: Sequence[tuple[float, float]] = ()


def choose_penalty(sample: Sample, penalty: Callable[[float], MatrixPenalty], prior: float) -> PenaltyChoice:
    """The largest of those whose log loss on held-out rows is within its noise of the least.

    From large to small, until two in a row are worse than the best. Too few rows to part get the largest.

    Parameters
    ----------
    sample : Sample
    penalty : callable
        The penalty of the sum of losses that goes with one of the entries off the diagonal.
    prior : float
        The weight of the prior.
    """
    sample = counted_rows(sample)
    if sample.n_samples < 2 * N_FOLDS:
        return PenaltyChoice(float(total_weight(sample) * RELATIVE_PENALTIES[0]))
    order, folds = sort_by_fold(split_rows(sample, (1.0,) * N_FOLDS, _SEED))
    much_work = sample.proba.size * sample.n_classes > _MUCH_WORK
    return HeldOutPath(sample.take(order), folds[:1] if much_work else folds, prior).walk(penalty)


class HeldOutPath:
    """Maps of all folds but one each, from penalty to penalty, and the losses of the rows held out.

    Parameters
    ----------
    sample : Sample
        Sorted by fold.
    folds : sequence of slice
        Neighbours that are held out.
    prior : float
        The weight of the prior.
    effort : Effort
    inverse : float, optional
        1/T where it is known about; by default it is fitted without each fold.
    """

    def __init__(
        self,
        sample: Sample,
        folds: Sequence[slice],
        prior: float,
        effort: Effort = CHOICE_EFFORT,
        inverse: float | None = None,
    ) -> None:
        self._prior = prior
        self._inverses = fold_inverses(sample, folds, prior) if inverse is None else [inverse for _ in folds]
        self._total, self._effort = total_weight(sample), effort
        starts = [scaled_map(sample.n_classes, inverse) for inverse in self._inverses]
        self.models = fold_maps(sample, folds, starts)
        mass = sample.mass
        self._fitted = [self._total * (1.0 - float(mass[fold].sum())) for fold in folds]
        rows = slice(folds[0].start, folds[-1].stop)
        self._labels, self._mass = sample.labels[rows], mass[rows] / mass[rows].sum()

    def walk(self, penalty: Callable[[float], MatrixPenalty], stride: int = 1) -> PenaltyChoice:
        """The largest of every so manieth penalty whose log loss is within its noise of the least.

        From large to small, until two in a row are worse than the best.
        """
        penalties = (self._total * RELATIVE_PENALTIES[::stride]).tolist()
        losses: list[Float64s] = []
        maps: list[Sequence[Floats]] = []
        for off_diagonal in penalties:
            self.move(penalty(off_diagonal))
            losses.append(self._losses())
            maps.append(self.models.weights)
            means = [float(self._mass @ of_rows) for of_rows in losses]
            if min(means[-_PATIENCE:]) > min(means) + CHOICE_EFFORT.tolerance:
                break
        chosen = _largest_good(losses, self._mass)
        return PenaltyChoice(penalties[chosen], maps[chosen], list(zip(penalties, means, strict=False)))

    def move(self, penalty: MatrixPenalty) -> None:
        """Fit anew, from the maps before."""
        folds = zip(self._inverses, self._fitted, strict=True)
        penalties = [penalty.under(self._prior, inverse).per(weight) for inverse, weight in folds]
        self.models.move(penalties, self._effort)

    def logits(self, maps: Sequence[Floats]) -> Floats:
        """What maps, one for each fold, make of its rows."""
        return self.models.held_out(maps)

    def _losses(self) -> Float64s:
        """The log loss of each held-out row."""
        logits, losses = self.models.held_out(), np.empty(self._labels.size)
        for rows in row_blocks(*logits.shape):
            losses[rows], _ = losses_and_proba(logits[rows].astype(np.float64), self._labels[rows])
        return losses


def _largest_good(losses: Sequence[Float64s], mass: Float64s) -> int:
    """The first whose mean is above the least by no more than the standard error of their difference.

    Smaller penalties win by luck where rows are few, and only those do harm.
    """
    best = min(losses, key=lambda of_rows: float(mass @ of_rows))
    return next(i for i, of_rows in enumerate(losses) if _is_noise(of_rows - best, mass))


def _is_noise(excess: Float64s, mass: Float64s) -> bool:
    """Whether the mean is no more than its standard error."""
    mean = float(mass @ excess)
    return mean <= float(np.linalg.norm(mass * (excess - mean)))
