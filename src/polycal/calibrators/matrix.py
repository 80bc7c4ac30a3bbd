"""Matrix scaling: every class's score may depend on every class's probability."""

from typing import ClassVar

from polycal._validation import check_real
from polycal.calibrators._log_linear import LogLinearCalibrator
from polycal.calibrators._matrix_ridge import MatrixRidge


class MatrixScaling(LogLinearCalibrator):
    r"""Mix all classes' log probabilities: :math:`p = \mathrm{softmax}(W^\top \log v + b)`, with a ridge.

    Can move probability between classes that are confused, but has :math:`k^2 + k` numbers to learn.

    Parameters
    ----------
    off_diagonal : float
        Strength of the pull of W's off-diagonal entries towards 0.
    diagonal : float
        Strength of the pull of W's diagonal towards a constant, and of b towards 0. With a large `off_diagonal`
        the result is `VectorScaling` of this ridge.
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
    Minimises :math:`\sum_i w_i \ell_i + \frac{1}{2} \sum_{ij} \lambda_{ij} (W - \beta I)_{ij}^2 +
    \frac{\lambda}{2} \|b\|^2` over W, b and :math:`\beta`, with log losses :math:`\ell_i`: a convex problem, solved
    from the temperature-scaled predictions by Newton's method, its steps by preconditioned conjugate gradients, until
    a step promises less than :math:`10^{-9}` per unit of weight. Cost: :math:`O(nk^2)` a product, some thirty to a
    hundred products (more with very weak ridges, and no more than 60 Newton steps), and a few preconditioners of
    :math:`O(nk^2)` to :math:`O(nk^3)`, the latter for at most 255 classes. Memory: some three arrays of the input's
    size, and :math:`O(k^2)` numbers (:math:`k^3` for at most 255 classes). The best strengths differ by powers of ten
    between data sets: choose them by scikit-learn's ``GridSearchCV``.

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

    kind: ClassVar[str] = "matrix"

    def __init__(
        self, *, off_diagonal: float = 1e4, diagonal: float = 30.0, from_logits: bool = False
    ) -> None:
        self.off_diagonal = off_diagonal
        self.diagonal = diagonal
        self.from_logits = from_logits

    def _ridge(self, per: float) -> MatrixRidge:
        off_diagonal = check_real(self.off_diagonal, "off_diagonal", low=0.0)
        diagonal = check_real(self.diagonal, "diagonal", low=0.0)
        return MatrixRidge(off_diagonal / per, diagonal / per, diagonal / per)
