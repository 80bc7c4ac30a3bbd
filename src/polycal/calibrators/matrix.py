"""Matrix scaling: every class's score may depend on every class's probability."""

from typing import ClassVar

from polycal.calibrators._log_linear_base import LogLinearCalibrator, check_strength, is_auto
from polycal.calibrators._matrix_ridge import MatrixRidge


class MatrixScaling(LogLinearCalibrator):
    r"""Mix all classes' log probabilities: :math:`p = \mathrm{softmax}(W^\top \log v + b)`, with a ridge.

    Can move probability between classes that are confused, but has :math:`k^2 + k` numbers to learn. How strongly
    these are held is chosen within the calibration data; where those are few, the result is near temperature scaling.

    Parameters
    ----------
    off_diagonal : "auto" or float
        Strength of the pull of W's off-diagonal entries towards 0; "auto" chooses it.
    diagonal : "auto" or float
        Strength of the pull of W's diagonal towards a constant, and of b towards 0; "auto" is a 300th of the
        strength off the diagonal. With a large `off_diagonal`, the result is `VectorScaling` of this ridge.
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
    Minimises :math:`\sum_i w_i \ell_i + \frac{1}{2} \sum_{ij} \lambda_{ij} (W - \beta I)_{ij}^2 +
    \frac{\lambda}{2} \|b\|^2` over W, b and :math:`\beta`, with log losses :math:`\ell_i`: a convex problem, solved
    from the temperature-scaled predictions by Newton's method, its steps by preconditioned conjugate gradients, until
    a step promises less than :math:`10^{-9}` per unit of weight. Cost: :math:`O(nk^2)` a product, some thirty to a
    hundred products (more with very weak ridges, and no more than 60 Newton steps), and a few preconditioners of
    :math:`O(nk^2)` to :math:`O(nk^3)`, the latter for at most 255 classes. Memory: some six arrays of the input's
    size, and :math:`O(k^2)` numbers (:math:`k^3` for at most 255 classes).

    *Choice.* Strengths of :math:`10^4 n, 10^{3.5} n, \dots, 10^{-5} n` for a total weight n are tried from strong to
    weak, each fit starting from the one before, until two in a row have more log loss on rows kept aside than the best.
    Used is the strongest that is worse than the best by no more than the standard error of the difference. Kept aside
    is each of four random parts in turn, or one alone where :math:`nk^2` exceeds 17 million; fewer than 8 rows
    get the first strength. The parts depend on the rows' contents, not on their order. Whole weights are counts:
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

    def _ridge(self, off_diagonal: float) -> MatrixRidge:
        if is_auto(self.diagonal):
            return MatrixRidge.held(off_diagonal)
        diagonal = check_strength(self.diagonal, "diagonal")
        return MatrixRidge(off_diagonal, diagonal, diagonal)
