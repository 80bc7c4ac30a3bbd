"""The kernel learner: the paper's Algorithm 1."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from polycal._typing import Float64s
from polycal._validation import check_proba
from polycal.kernels._base import Kernel
from polycal.kernels.ball import ball_norms, ball_scale
from polycal.kernels.multinomial import Multinomial
from polycal.kernels.products import kernel_times, quadratic_forms
from polycal.learners._input import check_examples


class KernelLearner(RegressorMixin, BaseEstimator):
    r"""Learn a function of predictions that correlates with targets in [-1, 1], without assuming that one fits.

    A scikit-learn regressor, but for the scale of its output: it maximises the correlation :math:`E[z\,h(v)]`
    over a ball of the kernel's Hilbert space that keeps h in [-1, 1].

    Parameters
    ----------
    kernel : Kernel, default Multinomial(degree=8)

    Attributes
    ----------
    points_, coefficients_ : ndarray of shape (n_samples, n_classes) and (n_samples, 1)
        h(v) is the sum of coefficient times kernel over the points.

    Notes
    -----
    With :math:`\lambda = (\sum_{ij} z_i z_j \ker(v_i, v_j))^{1/2}`, the function learnt is
    :math:`h(v) = \frac{1}{\lambda s} \sum_i z_i \ker(v_i, v)`, or 0 when :math:`\lambda = 0`. If some function of the
    ball of radius r has correlation :math:`\alpha`, then :math:`O(r^2 s^2 \alpha^{-2} \log(1/\delta))` rows give an h
    of correlation at least :math:`\alpha / (3 r s)` with probability :math:`1 - \delta` [1]_. Cost: one kernel value
    per pair of rows.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Algorithm 1 and the theorem on it.

    Examples
    --------
    >>> import numpy as np
    >>> from polycal.learners.kernel import KernelLearner
    >>> learner = KernelLearner().fit([[0.9, 0.1], [0.2, 0.8]], [1, -1])
    >>> np.sign(learner.predict([[0.8, 0.2], [0.1, 0.9]]))
    array([ 1., -1.])
    """

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelLearner":
        """Learn from rows of the simplex and their targets in [-1, 1].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes)
            Rows non-negative and summing to 1.
        y : array-like of shape (n_samples,)
            Targets from -1 to 1.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        KernelLearner
        """
        points, targets, weight = check_examples(X, y, sample_weight)
        kernel = Multinomial() if self.kernel is None else self.kernel
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel such as Multinomial(degree=4); got {kernel!r}.")
        self.kernel_ = kernel.resolve(points)
        values = (targets if weight is None else targets * weight)[:, None]
        self.points_ = points.astype(np.float64, copy=False)
        norms = ball_norms(self.kernel_, values, quadratic_forms(self.kernel_, self.points_, values))
        self.coefficients_ = values * ball_scale(self.kernel_, norms)
        return self

    def predict(self, X: Any) -> Float64s:
        """Evaluate the function learnt, in [-1, 1].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        at, _ = check_proba(X, name="X")
        if at.shape[1] != self.points_.shape[1]:
            raise ValueError(
                f"X has {at.shape[1]} columns but the learner was fitted on {self.points_.shape[1]}."
            )
        values = kernel_times(
            self.kernel_, self.points_, self.coefficients_, at=at.astype(np.float64, copy=False)
        )
        return np.clip(values[:, 0], -1.0, 1.0)
