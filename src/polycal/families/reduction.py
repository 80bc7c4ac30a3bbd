"""Learners of functions of predictions: from a kernel, and from any auditor, as the paper reduces one to the other."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from polycal._typing import Float64s, Floats, Ints, Seed
from polycal._validation import check_examples, check_kernel, check_proba, check_same_classes, check_seed
from polycal.inference.redraw import draw_labels
from polycal.kernels.kernels import Kernel, Multinomial, ball_norms, ball_scale
from polycal.kernels.products import kernel_times, quadratic_forms


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
    >>> import polycal as pc
    >>> learner = pc.KernelLearner().fit([[0.9, 0.1], [0.2, 0.8]], [1, -1])
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
        kernel = check_kernel(Multinomial() if self.kernel is None else self.kernel)
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
        check_same_classes(at.shape[1], self.points_.shape[1], "the learner was fitted on", "X")
        values = kernel_times(
            self.kernel_, self.points_, self.coefficients_, at=at.astype(np.float64, copy=False)
        )
        return np.clip(values[:, 0], -1.0, 1.0)


def lift(points: Floats) -> Float64s:
    """Move each prediction x to ``x/3 + e_1/3 + e_2/3``, where the first two classes leave room on both sides.

    Parameters
    ----------
    points : ndarray of shape (n, n_classes)

    Returns
    -------
    ndarray of float64, shape (n, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> pc.families.lift(np.array([[0.0, 0.0, 1.0]])).round(3)
    array([[0.333, 0.333, 0.333]])
    """
    lifted = points / np.float64(3)
    lifted[:, :2] += 1 / 3
    return lifted


class LearnerFromAuditor(RegressorMixin, BaseEstimator):
    r"""Learn a function that correlates with targets in [-1, 1], by any auditor.

    Parameters
    ----------
    auditor : Auditor
        Anything with ``find_witness(y_true, y_proba)``.
    random_state : int, Generator or None, default 0
        Seed of the labels drawn.

    Attributes
    ----------
    witness_ : Witness
        What the auditor found.

    Notes
    -----
    From (x, z) make the prediction :math:`v = \mathrm{lift}(x) = (x + e_1 + e_2)/3` and draw the label from
    :math:`v + z (e_1 - e_2)/3`: whoever can tell these labels from the predictions has learnt z. The function returned
    is :math:`h(x) = (w_1(\mathrm{lift}\,x) - w_2(\mathrm{lift}\,x)) / 2` for the witness w found, so that
    :math:`E[z\,h(x)]` is 3/2 of the witness's correlation: an auditor that finds :math:`2\beta/3` whenever a class has
    :math:`2\alpha/3` gives a learner that finds :math:`\beta` whenever there is :math:`\alpha` [1]_.

    References
    ----------
    .. [1] Gopalan, Hu and Rothblum (2024), Theorem "Agnostic Learning from Auditing".

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.dirichlet(np.ones(3), 2000)
    >>> z = np.sign(X[:, 2] - 0.3)
    >>> learner = pc.LearnerFromAuditor(pc.KernelAuditor(pc.Gaussian(0.1))).fit(X[:1000], z[:1000])
    >>> bool(np.mean(z[1000:] * learner.predict(X[1000:])) > 0.5)
    True
    """

    def __init__(self, auditor: Any, random_state: Seed = 0) -> None:
        self.auditor = auditor
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LearnerFromAuditor":
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
        LearnerFromAuditor
        """
        points, targets, weight = check_examples(X, y, sample_weight)
        rng = np.random.default_rng(check_seed(self.random_state))
        proba = lift(points)
        self.n_classes_ = proba.shape[1]
        self.witness_ = self.auditor.find_witness(
            _hidden_labels(proba, targets, rng), proba, sample_weight=weight
        )
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
        points, _ = check_proba(X, name="X")
        check_same_classes(points.shape[1], self.n_classes_, "the learner was fitted on", "X")
        weight: Float64s = self.witness_(lift(points))
        halved: Float64s = (weight[:, 0] - weight[:, 1]) / 2
        return halved


def _hidden_labels(proba: Float64s, targets: Float64s, rng: np.random.Generator) -> Ints:
    """Labels drawn from ``v + z (e_1 - e_2)/3``."""
    truth = proba.copy()
    truth[:, 0] += targets / 3
    truth[:, 1] -= targets / 3
    return draw_labels(np.maximum(truth, 0.0), rng)
