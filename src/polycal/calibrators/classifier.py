"""A classifier together with its calibrator, as one scikit-learn classifier."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from polycal._typing import Float64s, Floats, Ints
from polycal._validation import check_weight, to_numpy
from polycal.calibrators.base import Calibrator
from polycal.calibrators.kernel import KernelCalibrator
from polycal.calibrators.registry import check_unfitted
from polycal.steps import Log, Softmax


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated on held-out predictions.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``, or else ``decision_function``, whose scores go through a softmax.
    calibrator : Calibrator or str, optional
        `KernelCalibrator` by default; or the name of one, such as "temperature".
    cv : int, cross-validation splitter, iterable of splits, or "prefit"
        How rows are held out: each fold is predicted by a copy of the classifier fitted on the others (5 stratified
        folds by default). With "prefit", or an estimator in scikit-learn's ``FrozenEstimator``, the classifier is
        fitted already, and all rows go to the calibrator; they must not be those it was fitted on.
    n_jobs : int, optional
        Folds fitted at the same time, and threads of the calibrator when it predicts; None is one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    estimator_ : classifier
        The classifier fitted on all rows, or the one given if it was fitted already.
    calibrator_ : Calibrator
        The calibrator fitted on the held-out predictions.

    Notes
    -----
    One calibrator is fitted on the held-out predictions of all folds together, and serves the classifier fitted on all
    rows (scikit-learn's ``CalibratedClassifierCV`` with ``ensemble=False``): one model to deploy, and it has learnt
    from all rows. That classifier has seen a little more data than those whose predictions were calibrated. Splits may
    overlap or leave rows out; the calibrator gets each held-out prediction once. Weights go to the classifier if its
    ``fit`` takes them, and to the calibrator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import polycal as pc
    >>> X, y = load_iris(return_X_y=True)
    >>> pc.CalibratedClassifier(GaussianNB()).fit(X, y).predict_proba(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Calibrator | str | None = None,
        cv: Any = 5,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier and its calibrator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What the classifier takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        CalibratedClassifier
            Itself.
        """
        X, y, weight = indexable(X, _check_labels(y), _check_weight(sample_weight))
        prefit = isinstance(self.estimator, FrozenEstimator) or _is_word(self.cv, "prefit")
        fit_calibrated = self._fit_prefit if prefit else self._fit_folds
        fit_calibrated(X, y, weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _fit_prefit(self, X: Any, y: NDArray[Any], weight: Float64s | None) -> None:
        """Calibrate a fitted classifier on all rows."""
        check_is_fitted(self.estimator)
        self.estimator_ = self.estimator
        self.classes_ = np.asarray(self.estimator.classes_)
        self._fit_calibrator(_scores(self.estimator, X, self.classes_), _positions(y, self.classes_), weight)

    def _fit_folds(self, X: Any, y: NDArray[Any], weight: Float64s | None) -> None:
        """Predict each fold by the others, calibrate these predictions, and fit the classifier on all rows."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"y holds {self.classes_.size} class(es); at least two classes are needed.")
        weight_for_fit = weight if self._estimator_takes(weight) else None
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        held_out = Parallel(n_jobs=self.n_jobs)(
            delayed(_held_out_scores)(clone(self.estimator), X, y, weight_for_fit, train, test, self.classes_)
            for train, test in splits
        )
        rows = np.concatenate([_row_numbers(test, y.size) for _, test in splits])
        self._fit_calibrator(np.concatenate(held_out), labels[rows], None if weight is None else weight[rows])
        self.estimator_ = _fit_estimator(clone(self.estimator), X, y, weight_for_fit)

    def _fit_calibrator(self, proba: Floats, labels: Ints, weight: Float64s | None) -> None:
        """Fit a copy of the calibrator on held-out predictions."""
        calibrator = KernelCalibrator() if self.calibrator is None else self.calibrator
        self.calibrator_ = clone(check_unfitted(calibrator, "calibrator"))
        self.calibrator_.fit(self._calibrator_input(proba), labels, weight)

    def _calibrator_input(self, proba: Floats) -> Floats:
        """Probabilities, or their logarithms for a calibrator of logits."""
        return Log()(proba.astype(np.float64)) if self.calibrator_.from_logits else proba

    def _estimator_takes(self, weight: Float64s | None) -> bool:
        """Whether the weights can go to the classifier."""
        if weight is None or has_fit_parameter(self.estimator, "sample_weight"):
            return True
        warnings.warn(
            f"{type(self.estimator).__name__}.fit does not take sample_weight; the weights go to the calibrator only.",
            stacklevel=4,
        )
        return False

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, of shape (n_samples, n_classes), in the order of ``classes_``."""
        check_is_fitted(self)
        proba = _scores(self.estimator_, X, self.classes_)
        calibrated: Floats = self.calibrator_.predict_proba(self._calibrator_input(proba), n_jobs=self.n_jobs)
        return calibrated

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely label of each row after calibration."""
        positions = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[positions]
        return labels

    def __sklearn_tags__(self) -> Any:
        """What the classifier takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _check_labels(y: Any) -> NDArray[Any]:
    """Labels that scikit-learn's classifiers accept."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def _check_weight(sample_weight: Any) -> Float64s | None:
    """Weights past the gate, or None."""
    if sample_weight is None:
        return None
    if not np.any(to_numpy(sample_weight, "sample_weight")):
        raise ValueError("sample_weight is zero for every row; give some rows a weight.")
    return check_weight(sample_weight)


def _is_word(value: Any, word: str) -> bool:
    """Whether this is the word; arrays do not compare to one."""
    return isinstance(value, str) and value == word


def _row_numbers(rows: NDArray[Any], n_rows: int) -> Ints:
    """A fold's rows as numbers, where they may be a mask."""
    numbers: Ints = np.arange(n_rows)[rows]
    return numbers


def _fit_estimator(estimator: Any, X: Any, y: NDArray[Any], weight: Float64s | None) -> Any:
    return estimator.fit(X, y) if weight is None else estimator.fit(X, y, sample_weight=weight)


def _held_out_scores(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weight: Float64s | None,
    train: Ints,
    test: Ints,
    classes: NDArray[Any],
) -> Floats:
    """Probabilities for the rows ``test`` by the classifier fitted on the rows ``train``."""
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, _ = _safe_split(estimator, X, y, test, train)
    _fit_estimator(estimator, X_train, y_train, None if weight is None else weight[train])
    return _scores(estimator, X_test, classes)


def _scores(estimator: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Probabilities in the order of ``classes``; one that the classifier does not know gets 0."""
    if hasattr(estimator, "predict_proba"):
        proba = np.asarray(estimator.predict_proba(X))
    else:
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        proba = Softmax()(np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores)
    known = _positions(estimator.classes_, classes)
    if proba.shape[1] != known.size:
        raise ValueError(
            f"estimator gives {proba.shape[1]} scores a row for {known.size} classes; calibration needs one a class."
        )
    # In the classifier's dtype: how far its rows may be from 1 depends on it.
    out = np.zeros((proba.shape[0], classes.size), dtype=proba.dtype)
    out[:, known] = proba
    return out


def _positions(labels: Any, classes: NDArray[Any]) -> Ints:
    """Positions of labels in the sorted classes."""
    labels = np.asarray(labels)
    positions: Ints = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
    unknown = classes[positions] != labels
    if unknown.any():
        raise ValueError(f"y holds {labels[unknown][0]!r}, which is not among the classifier's classes.")
    return positions
