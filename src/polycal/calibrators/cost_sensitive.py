"""A classifier that acts: its calibrated probabilities are turned into the actions of least expected cost."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polycal._validation import check_sample, named_losses
from polycal.calibrators.base import Calibrator
from polycal.calibrators.classifier import CalibratedClassifier
from polycal.measures.costs import Loss, make_loss, sample_cost


class CostSensitiveClassifier(CalibratedClassifier):
    r"""A classifier that takes the action of least expected cost, by calibrated probabilities.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``, or else ``decision_function``, whose scores go through a softmax.
    losses : array-like of shape (n_actions, n_classes), mapping, data frame, or Loss, optional
        What each action costs for each class, as for `make_loss`; columns of an array are the classes in sorted order,
        and mappings and data frames name the labels (as text). By default every wrong label costs 1: the actions are
        the labels.
    calibrator : Calibrator, optional
        `KernelCalibrator` by default.
    cv : int, cross-validation splitter, iterable of splits, or "prefit"
        How rows are held out for the calibrator, as for `CalibratedClassifier`.
    n_jobs : int, optional
        As for `CalibratedClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    actions_ : ndarray of shape (n_actions,)
        What `predict` returns: the names of the actions, or their indices if they have none. Where every action is
        named after a label, they are these labels.
    loss_ : Loss
        The loss, in the order of ``classes_``.
    estimator_, calibrator_
        As for `CalibratedClassifier`.

    Notes
    -----
    Definition: the action :math:`\arg\min_a \sum_j L_{aj} q_j(x)` for calibrated probabilities q; no threshold is
    tuned, so that any number of classes and actions is the same to it, and a new loss needs no new fit
    (``set_params(losses=...)`` and `predict` again). `score` is minus the mean cost, so that scikit-learn's searches
    maximise it; without `losses` it is the accuracy.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import polycal as pc
    >>> X, y = load_iris(return_X_y=True)
    >>> loss = {"water": {0: 0, "default": 1}, "sell": {2: 0, "default": 3}, "wait": 0.5}
    >>> model = pc.CostSensitiveClassifier(GaussianNB(), losses=loss).fit(X, y)
    >>> model.predict(X[[0, 60, 149]])
    array(['water', 'wait', 'sell'], dtype='<U5')
    """

    def __init__(
        self,
        estimator: Any,
        losses: Any = None,
        calibrator: Calibrator | None = None,
        cv: Any = 5,
        *,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(estimator, calibrator, cv, n_jobs=n_jobs)
        self.losses = losses

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier and its calibrator; the loss must be one of the labels of y.

        Parameters
        ----------
        X, y, sample_weight
            As for `CalibratedClassifier`.

        Returns
        -------
        CostSensitiveClassifier
            Itself.
        """
        super().fit(X, y, sample_weight)
        _ = self.loss_
        return self

    @property
    def loss_(self) -> Loss:
        """The loss, in the order of ``classes_``."""
        labels = [str(label) for label in self.classes_]
        if self.losses is None:
            matrix = 1.0 - np.eye(len(labels))
            return Loss("error", matrix, len(labels), tuple(labels), tuple(labels))
        (loss,) = one_loss(self.losses).values()
        return make_loss(_by_label(loss), n_classes=len(labels), class_names=labels)

    @property
    def actions_(self) -> NDArray[Any]:
        """What `predict` returns."""
        return self._actions(self.loss_)

    def _actions(self, loss: Loss) -> NDArray[Any]:
        by_name = {str(label): label for label in self.classes_}
        if loss.action_names is None:
            return np.arange(loss.n_actions)
        if all(action in by_name for action in loss.action_names):
            return np.array([by_name[action] for action in loss.action_names], dtype=self.classes_.dtype)
        return np.array(loss.action_names)

    def predict(self, X: Any) -> NDArray[Any]:
        """The action of least expected cost of each row."""
        proba, loss = self.predict_proba(X), self.loss_
        actions: NDArray[Any] = self._actions(loss)[loss.act(proba)[0]]
        return actions

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean cost of acting; without losses the accuracy."""
        if self.losses is None:
            return float(super().score(X, y, sample_weight))
        proba = self.predict_proba(X)
        labels = [str(label) for label in np.asarray(y)]
        names = tuple(str(label) for label in self.classes_)
        sample = check_sample(labels, proba, sample_weight=sample_weight, class_names=names)
        return -sample_cost(sample, self.loss_)


def one_loss(losses: Any) -> dict[str, Any]:
    """A single loss, by its name."""
    named = named_losses(losses)
    if len(named) != 1:
        raise ValueError(
            f"losses holds {len(named)} losses ({', '.join(named)}); a classifier acts by one of them."
        )
    return named


def _by_label(loss: Any) -> Any:
    """A mapping whose classes are labels, which may be numbers: by name, so that none is taken for an index."""
    if not isinstance(loss, Mapping):
        return loss
    return {
        action: {str(label): cost for label, cost in costs.items()} if isinstance(costs, Mapping) else costs
        for action, costs in loss.items()
    }
