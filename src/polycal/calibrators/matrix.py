"""Matrix scaling and Dirichlet calibration: every class's score may depend on every class's probability."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polycal._typing import Float64s, Floats
from polycal._validation import check_real
from polycal.calibrators.base import Calibrator, counted_rows
from polycal.calibrators.loss import log_proba, losses_and_proba, total_weight, working_dtype
from polycal.calibrators.regression import FoldModels, SoftmaxRegression, sort_by_fold
from polycal.calibrators.temperature import fit_inverse_temperature
from polycal.sample import Sample, row_blocks, split_rows
from polycal.steps import Linear, Log, Program, Softmax

AUTO = "auto"
# How much less than the entries off the diagonal, whose features are larger and many, the others are penalised.
_MATRIX_RATIO, _DIRICHLET_RATIO = 300.0, 3000.0
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
# Accuracy of the objective, at the end and while choosing; losses that differ by less than the latter are the same.
TOLERANCE, CHOICE_TOLERANCE = 1e-12, 1e-5
MAX_STEPS = 500


class LogLinearCalibrator(Calibrator):
    """A calibrator that mixes all classes' log probabilities; subclasses say how W and b are penalised."""

    saved_attributes: ClassVar[tuple[str, ...]] = ("weight_", "bias_", "off_diagonal_", "cv_log_loss_")
    off_diagonal: float | str
    weight_: Float64s
    bias_: Float64s
    # Files of the first version have neither.
    off_diagonal_: float = np.nan
    cv_log_loss_: Float64s = np.empty((0, 2))

    @abstractmethod
    def _penalty(self, off_diagonal: float) -> "MatrixPenalty":
        """The penalty of the sum of log losses, given that of the entries off the diagonal."""

    def _fit(self, sample: Sample) -> Program:
        choice = self._choose(sample)
        penalty = self._penalty(choice.penalty).per(total_weight(sample))
        self.weight_, self.bias_ = fit_log_linear(sample, penalty, choice.start)
        self.off_diagonal_ = choice.penalty
        self.cv_log_loss_ = np.array(choice.table, dtype=np.float64).reshape(-1, 2)
        return Log(), Linear(self.weight_, self.bias_), Softmax()

    def _choose(self, sample: Sample) -> "PenaltyChoice":
        """The penalty given, or one that the sample asks for."""
        if _is_auto(self.off_diagonal):
            return choose_penalty(sample, self._penalty)
        return PenaltyChoice(_check_penalty(self.off_diagonal, "off_diagonal"))


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
    \frac{\lambda}{2} \|b\|^2` over W, b and :math:`\beta`, with log losses :math:`\ell_i`: a convex problem, solved
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
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1, 0, 0]
    >>> pc.MatrixScaling().fit(proba, y).weight_.shape
    (2, 2)
    """

    family: ClassVar[str] = "matrix"

    def __init__(
        self, *, off_diagonal: float | str = "auto", diagonal: float | str = "auto", from_logits: bool = False
    ) -> None:
        self.off_diagonal = off_diagonal
        self.diagonal = diagonal
        self.from_logits = from_logits

    def _penalty(self, off_diagonal: float) -> "MatrixPenalty":
        if _is_auto(self.diagonal):
            return MatrixPenalty.tied(off_diagonal)
        diagonal = _check_penalty(self.diagonal, "diagonal")
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
    the penalties are :math:`\lambda k (k - 1) / 2n` and :math:`\mu k / 2n`. Search, choice and cost: as for
    `MatrixScaling`.

    References
    ----------
    .. [1] Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), "Beyond temperature scaling: obtaining
       well-calibrated multiclass probabilities with Dirichlet calibration", section 3.

    Examples
    --------
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1, 0, 0]
    >>> pc.DirichletCalibrator().fit(proba, y).weight_.shape
    (2, 2)
    """

    family: ClassVar[str] = "dirichlet"

    def __init__(
        self,
        *,
        off_diagonal: float | str = "auto",
        intercept: float | str = "auto",
        from_logits: bool = False,
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.from_logits = from_logits

    def _penalty(self, off_diagonal: float) -> "MatrixPenalty":
        if _is_auto(self.intercept):
            return MatrixPenalty.tied(off_diagonal, _DIRICHLET_RATIO)
        return MatrixPenalty(off_diagonal, _DIRICHLET_DIAGONAL, _check_penalty(self.intercept, "intercept"))


def _is_auto(value: Any) -> bool:
    """Whether a penalty shall be chosen."""
    return isinstance(value, str) and value == AUTO


def _check_penalty(value: Any, name: str) -> float:
    """Validate a penalty that is not "auto"."""
    try:
        return check_real(value, name, low=0.0)
    except ValueError:
        raise ValueError(f"{name} must be a number from 0, or {AUTO!r}; got {value!r}.") from None


@dataclass(frozen=True)
class MatrixPenalty:
    r"""``off_diagonal/2 sum_{i != j} W_ij^2 + diagonal/2 sum_i (W_ii - mean)^2 + bias/2 |b|^2``.

    The mean of the diagonal is free: it is the inverse of a temperature. Maps and steps are arrays of shape (k + 1, k),
    the bias below the matrix.

    Attributes
    ----------
    off_diagonal, diagonal, bias : float
        Not negative.
    """

    off_diagonal: float
    diagonal: float
    bias: float

    @property
    def amount(self) -> float:
        """The penalty off the diagonal, of which the others are a part; 1 where it is 0."""
        return self.off_diagonal or 1.0

    @classmethod
    def tied(cls, off_diagonal: float, ratio: float = _MATRIX_RATIO) -> "MatrixPenalty":
        """With the diagonal and the bias penalised in proportion."""
        return cls(off_diagonal, off_diagonal / ratio, off_diagonal / ratio)

    def per(self, total: float) -> "MatrixPenalty":
        """The penalty that goes with a mean of losses where this one goes with their sum, ``total`` of them."""
        return MatrixPenalty(self.off_diagonal / total, self.diagonal / total, self.bias / total)

    def each(self, n_classes: int) -> Float64s:
        """The relative penalty of each entry, of shape (k + 1, k)."""
        out = np.full((n_classes + 1, n_classes), self.off_diagonal)
        np.fill_diagonal(out, self.diagonal)
        out[-1] = self.bias
        return out / self.amount

    def gradient(self, weight: Floats) -> Floats:
        """The derivative, which is linear: the penalty is half its product with the map."""
        out: Floats = self.off_diagonal * weight
        own = np.diagonal(weight)
        np.fill_diagonal(out, self.diagonal * (own - own.mean()))
        out[-1] = self.bias * weight[-1]
        return out

    def centred(self, step: Floats) -> Floats:
        """The step without what the softmax does not see, a shift of all classes; overwritten.

        Row by row, that is the shift after which the penalty's derivatives sum to 0: no other shift costs less. The
        rows depend on one another by the mean of the diagonal alone, so there is a closed form.
        """
        k = step.shape[1]
        others = (k - 1) * self.off_diagonal
        if others > 0.0:
            slopes = np.einsum("ij->i", self.gradient(step)[:-1])
            shift = (slopes + self.diagonal * slopes.mean() / others) / (others + self.diagonal)
            step[:-1] -= shift[:, None]
        step[-1] -= step[-1].mean()
        return step


def fit_log_linear(
    sample: Sample, penalty: MatrixPenalty, start: Floats | None = None
) -> tuple[Float64s, Float64s]:
    """The W of shape (k, k) and b of least penalised log loss per unit of weight.

    The search starts from temperature scaling, or from ``start``, a map with the bias below the matrix.
    """
    problem = log_linear_problem(sample, np.float64)
    start = tempered_map(sample) if start is None else start.astype(np.float64)
    point = problem.solve(penalty, start, TOLERANCE, MAX_STEPS)
    return point[:-1].astype(np.float64), point[-1].astype(np.float64)


def log_linear_problem(sample: Sample, dtype: type[np.floating]) -> SoftmaxRegression:
    """Softmax regression of log probabilities and a constant, no more precise than the predictions are."""
    n, k = sample.proba.shape
    features = np.ones((n, k + 1), dtype=min(np.dtype(dtype), sample.proba.dtype, key=lambda d: d.itemsize))
    features[:, :k] = log_proba(sample)
    return SoftmaxRegression(features, sample.labels, sample.mass.astype(dtype), None, (slice(0, n),))


def fold_maps(sample: Sample, folds: Sequence[slice], start: Floats | None = None) -> FoldModels:
    """A map for each fold of a sorted sample: ``start`` as yet, or temperature scaling fitted without the fold."""
    dtype, rows = working_dtype(sample), np.arange(sample.n_samples)
    maps = [tempered_map(sample.take(np.delete(rows, fold))) if start is None else start for fold in folds]
    return FoldModels(log_linear_problem(sample, dtype), folds, [point.astype(dtype) for point in maps])


def tempered_map(sample: Sample) -> Float64s:
    """Temperature scaling as a map of shape (k + 1, k)."""
    start = np.zeros((sample.n_classes + 1, sample.n_classes))
    np.fill_diagonal(start, fit_inverse_temperature(sample, log_proba(sample)))
    return start


@dataclass(frozen=True, eq=False)
class PenaltyChoice:
    """A penalty of the entries off the diagonal, and how it was chosen.

    Attributes
    ----------
    penalty : float
    start : ndarray of shape (n_classes + 1, n_classes), or None
        A map near that of this penalty, the bias below the matrix.
    table : sequence
        Every penalty tried, and its log loss on held-out rows.
    """

    penalty: float
    start: Floats | None = None
    table: Sequence[tuple[float, float]] = ()


def choose_penalty(sample: Sample, penalty: Callable[[float], MatrixPenalty]) -> PenaltyChoice:
    """The largest of those whose log loss on held-out rows is within its noise of the least.

    From large to small, until two in a row are worse than the best. Too few rows to part get the largest.

    Parameters
    ----------
    sample : Sample
    penalty : callable
        The penalty of the sum of losses that goes with one of the entries off the diagonal.
    """
    sample = counted_rows(sample)
    penalties = (total_weight(sample) * RELATIVE_PENALTIES).tolist()
    if sample.n_samples < 2 * N_FOLDS:
        return PenaltyChoice(penalties[0])
    path = _HeldOutPath(sample)
    losses: list[Float64s] = []
    points: list[Floats] = []
    for off_diagonal in penalties:
        losses.append(path.move(penalty(off_diagonal)))
        points.append(path.models.weights[0])
        means = [float(path.mass @ of_rows) for of_rows in losses]
        if min(means[-_PATIENCE:]) > min(means) + CHOICE_TOLERANCE:
            break
    chosen = _largest_good(losses, path.mass)
    return PenaltyChoice(penalties[chosen], points[chosen], list(zip(penalties, means, strict=False)))


class _HeldOutPath:
    """Maps of all folds but one each, from penalty to penalty, and the losses of the rows held out."""

    def __init__(self, sample: Sample) -> None:
        order, folds = sort_by_fold(split_rows(sample, (1.0,) * N_FOLDS, _SEED))
        much_work = sample.proba.size * sample.n_classes > _MUCH_WORK
        folds = folds[:1] if much_work else folds
        sample, mass = sample.take(order), sample.mass[order]
        self.models = fold_maps(sample, folds)
        self._fitted = [total_weight(sample) * (1.0 - float(mass[fold].sum())) for fold in folds]
        self._labels, held_out = sample.labels[: folds[-1].stop], mass[: folds[-1].stop]
        self.mass: Float64s = held_out / held_out.sum()

    def move(self, penalty: MatrixPenalty) -> Float64s:
        """Fit anew, from the maps before; the log loss of each held-out row."""
        self.models.move([penalty.per(weight) for weight in self._fitted], CHOICE_TOLERANCE, MAX_STEPS)
        logits = self.models.held_out()
        losses = np.empty(self._labels.size)
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
