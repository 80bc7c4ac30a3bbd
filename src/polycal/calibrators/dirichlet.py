"""Dirichlet calibration: the densities of each class's predictions are Dirichlet."""

from typing import ClassVar

from polycal.calibrators._log_linear_base import LogLinearCalibrator, check_strength, is_auto
from polycal.calibrators._matrix_ridge import MatrixRidge

# How much weaker than the entries off the diagonal the others are held.
_RATIO = 3000.0

# With a given intercept: holds the diagonal of a class that does not occur, and of separable data, hardly any other.
_DIAGONAL = 1.0


class DirichletCalibrator(LogLinearCalibrator):
    r"""Mix all classes' log probabilities, with off-diagonal and intercept regularisation (ODIR).

    The family of `MatrixScaling`, :math:`p = \mathrm{softmax}(W^\top \log v + b)`, with the penalty of its authors:
    each class has a scale of its own all but for free. Made for few classes and much data; with few data for its
    classes, the strengths it chooses make it vector or temperature scaling.

    Parameters
    ----------
    off_diagonal : "auto" or float
        Strength of the pull of W's off-diagonal entries towards 0; "auto" chooses it, as `MatrixScaling` does.
    intercept : "auto" or float
        Strength of the pull of b towards 0; "auto" is a 3000th of the strength off the diagonal.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    weight_ : ndarray of shape (n_classes, n_classes)
        W; ``weight_[i, j]`` is what class i's log probability counts for class j.
    bias_ : ndarray of shape (n_classes,)
        b.
    off_diagonal_ : float
        The strength given or chosen.
    cv_log_loss_ : ndarray of shape (n_tried, 2)
        Every strength tried, and its log loss on rows kept aside; empty where none was tried.

    Notes
    -----
    Minimises :math:`\sum_i w_i \ell_i + \frac{\lambda}{2} \sum_{i \ne j} W_{ij}^2 + \frac{\mu}{2} \|b\|^2` with log
    losses :math:`\ell_i`, and with a ridge that pulls the diagonal towards a constant: of strength :math:`\mu` where
    that is "auto", which keeps scarce data from harm, else of strength 1, hardly felt. In the units of [1]_ (mean
    loss, mean of squares) the strengths are :math:`\lambda k (k - 1) / 2n` and :math:`\mu k / 2n`. Search, choice and
    cost: as for `MatrixScaling`.

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

    def _ridge(self, off_diagonal: float) -> MatrixRidge:
        if is_auto(self.intercept):
            return MatrixRidge(off_diagonal, off_diagonal / _RATIO, off_diagonal / _RATIO)
        return MatrixRidge(off_diagonal, _DIAGONAL, check_strength(self.intercept, "intercept"))
