"""A learner from any auditor: hiding targets in the labels of two classes."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from polycal._typing import Float64s, Floats, Ints
from polycal._validation import check_integer, check_proba
from polycal.inference.redraw import draw_labels
from polycal.learners._input import check_examples


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
    >>> from polycal.learners.reductions import lift
    >>> lift(np.array([[0.0, 0.0, 1.0]])).round(3)
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
    random_state : int, default 0
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
    >>> from polycal.auditors.kernel import KernelAuditor
    >>> from polycal.kernels.radial import Gaussian
    >>> from polycal.learners.reductions import LearnerFromAuditor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.dirichlet(np.ones(3), 2000)
    >>> z = np.sign(X[:, 2] - 0.3)
    >>> learner = LearnerFromAuditor(KernelAuditor(Gaussian(0.1))).fit(X[:1000], z[:1000])
    >>> bool(np.mean(z[1000:] * learner.predict(X[1000:])) > 0.5)
    True
    """

    def __init__(self, auditor: Any, random_state: int = 0) -> None:
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
        rng = np.random.default_rng(check_integer(self.random_state, "random_state", minimum=0))
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
        if points.shape[1] != self.n_classes_:
            raise ValueError(
                f"X has {points.shape[1]} columns but the learner was fitted on {self.n_classes_}."
            )
        weight: Float64s = self.witness_(lift(points))
        halved: Float64s = (weight[:, 0] - weight[:, 1]) / 2
        return halved


def _hidden_labels(proba: Float64s, targets: Float64s, rng: np.random.Generator) -> Ints:
    """Labels drawn from ``v + z (e_1 - e_2)/3``."""
    truth = proba.copy()
    truth[:, 0] += targets / 3
    truth[:, 1] -= targets / 3
    return draw_labels(np.maximum(truth, 0.0), rng)
