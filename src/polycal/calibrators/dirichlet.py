"""Dirichlet calibration: the densities of each class's predictions are Dirichlet."""

from typing import ClassVar

from polycal._validation import check_real
from polycal.calibrators._log_linear import LogLinearCalibrator
from polycal.calibrators._matrix_ridge import MatrixRidge

# Holds the diagonal of a class that does not occur, and of separable data; else without effect.
_DIAGONAL = 1.0


class DirichletCalibrator(LogLinearCalibrator):
    r"""Mix all classes' log probabilities, with off-diagonal and intercept regularisation (ODIR).

    The family of `MatrixScaling`, :math:`p = \mathrm{softmax}(W^\top \log v + b)`, with the penalty of its authors:
    each class has a scale of its own for free. Made for few classes and much data.

    Parameters
    ----------
    off_diagonal : float
        Strength of the pull of W's off-diagonal entries towards 0.
    intercept : float
        Strength of the pull of b towards 0.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    weight_ : ndarray of shape (n_classes, n_classes)
        W; ``weight_[i, j]`` is what class i's log probability counts for class j.
    bias_ : ndarray of shape (n_classes,)
        b.

    Notes
    -----
    Minimises :math:`\sum_i w_i \ell_i + \frac{\lambda}{2} \sum_{i \ne j} W_{ij}^2 + \frac{\mu}{2} \|b\|^2` with log
    losses :math:`\ell_i`, and a very weak ridge on the diagonal. In the units of [1]_ (mean loss, mean of squares)
    the strengths are :math:`\lambda k (k - 1) / 2n` and :math:`\mu k / 2n`. Cost: as for `MatrixScaling`; choose the
    strengths by scikit-learn's ``GridSearchCV``.

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

    kind: ClassVar[str] = "dirichlet"

    def __init__(
        self, *, off_diagonal: float = 3e3, intercept: float = 1.0, from_logits: bool = False
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.from_logits = from_logits

    def _ridge(self, per: float) -> MatrixRidge:
        off_diagonal = check_real(self.off_diagonal, "off_diagonal", low=0.0)
        intercept = check_real(self.intercept, "intercept", low=0.0)
        return MatrixRidge(off_diagonal / per, _DIAGONAL / per, intercept / per)
