"""Any scikit-learn classifier or regressor as a calibrator."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from polycal._typing import Float64s, Ints
from polycal._validation import check_choice
from polycal.calibrators.base import Calibrator
from polycal.sample import Sample
from polycal.steps import Log, Normalise, Program, Step

_METHODS = ("sigmoid", "isotonic", "temperature")


class SklearnCalibrator(Calibrator):
    """A scikit-learn estimator that learns the label from the predictions.

    Parameters
    ----------
    estimator : str, classifier or regressor
        A method of scikit-learn's ``CalibratedClassifierCV`` ("sigmoid", "isotonic", "temperature"); or a classifier,
        fitted on all columns; or a regressor, fitted for each class on that class's column, to predict 0 or 1.
    features : {"log", "proba"}
        What a classifier or regressor is given: log probabilities (floored at 2.2e-16), or probabilities.
    from_logits : bool
        The predictions are logits.

    Attributes
    ----------
    estimator_ : estimator, list of estimators, or None
        The fitted classifier, or the fitted regressor of each class that occurs; None where but one class occurs.

    Notes
    -----
    Classes that do not occur stay as predicted, and the others share the rest. Regressors' answers are clipped to
    [0, 1] and normalised. A foreign estimator can neither be exported nor saved without pickle: use ``joblib``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import polycal as pc
    >>> proba, y = [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1, 0, 0]
    >>> pc.SklearnCalibrator(LogisticRegression(C=0.1)).fit(proba, y).predict_proba([[0.01, 0.99]]).shape
    (1, 2)
    """

    family: ClassVar[str] = "sklearn"
    estimator_: Any

    def __init__(
        self, estimator: Any = "sigmoid", *, features: str = "log", from_logits: bool = False
    ) -> None:
        self.estimator = estimator
        self.features = features
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:
        log_features = check_choice(self.features, "features", ("log", "proba")) == "log"
        weight = np.bincount(sample.labels, weights=sample.mass, minlength=sample.n_classes)
        present = np.flatnonzero(weight > 0.0)
        if present.size < 2:
            self.estimator_ = None
            return ()
        if isinstance(self.estimator, str):
            log_features = False
        rows = sample.proba.astype(np.float64)
        self.estimator_ = self._fit_estimator(Log()(rows) if log_features else rows, sample, present)
        return (Foreign(self.estimator_, present, log_features),)

    def _fit_estimator(self, features: Float64s, sample: Sample, present: Ints) -> Any:
        """One classifier of all columns, or one regressor for each class present."""
        estimator = self._make_estimator(present)
        options = _weight_option(estimator, sample)
        if is_classifier(estimator):
            return estimator.fit(features, sample.labels, **options)
        if not is_regressor(estimator):
            raise TypeError(f"estimator must be a classifier or a regressor; got {estimator!r}.")
        return [
            clone(estimator).fit(features[:, [label]], (sample.labels == label).astype(float), **options)
            for label in present
        ]

    def _make_estimator(self, present: Ints) -> Any:
        """A fresh estimator."""
        if not isinstance(self.estimator, str):
            return clone(self.estimator)
        from sklearn.calibration import CalibratedClassifierCV  # noqa: PLC0415 - slow to import

        check_choice(self.estimator, "estimator", _METHODS)
        return CalibratedClassifierCV(
            _PassThrough(present), method=self.estimator, cv=_AllRows(), ensemble=False
        )


def _weight_option(estimator: Any, sample: Sample) -> dict[str, Any]:
    """The weights as an argument of the estimator's ``fit``."""
    if sample.sample_weight is None:
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(f"sample_weight cannot be used: {type(estimator).__name__}.fit does not take it.")
    return {"sample_weight": sample.sample_weight}


@dataclass(frozen=True, eq=False)
class Foreign(Step):
    """A step that asks scikit-learn; it has no ``family``, so it is neither saved nor exported."""

    estimator: Any
    present: Ints
    log_features: bool

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step: the classes present share what the others leave."""
        features = Log()(rows) if self.log_features else rows
        one_vs_rest = isinstance(self.estimator, list)
        answers = self._ask_each(features) if one_vs_rest else self.estimator.predict_proba(features)
        out = rows.copy()
        out[:, self.present] = answers * rows[:, self.present].sum(axis=1, keepdims=True)
        return out

    def _ask_each(self, features: Float64s) -> Float64s:
        """The regressors' answers as a row over the classes present."""
        columns = zip(self.estimator, self.present, strict=True)
        answers = [estimator.predict(features[:, [label]]) for estimator, label in columns]
        return Normalise(_uniform(self.present))(np.clip(np.column_stack(answers), 0.0, 1.0))


def _uniform(classes: Ints) -> Float64s:
    return np.full(classes.size, 1.0 / classes.size)


class _PassThrough(ClassifierMixin, BaseEstimator):
    """A classifier whose predictions are its input: scikit-learn calibrates classifiers only."""

    def __init__(self, present: Ints) -> None:
        self.present = present

    def fit(self, rows: Float64s, y: Ints, sample_weight: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's
        """Know the classes."""
        self.classes_ = self.present
        return self

    def predict_proba(self, rows: Float64s) -> Float64s:
        """The columns of the classes present, as rows that sum to 1."""
        return Normalise(_uniform(self.present))(rows[:, self.present])

    def predict(self, rows: Float64s) -> Ints:
        """The most likely class: never asked for, but looked for."""
        labels: Ints = self.classes_[self.predict_proba(rows).argmax(axis=1)]
        return labels


class _AllRows:
    """Cross-validation without folds, for a classifier that is not trained."""

    def split(self, rows: Float64s, y: Any = None, groups: Any = None) -> Any:  # noqa: ARG002 - scikit-learn's
        """All rows, to fit and to predict."""
        every: NDArray[np.int64] = np.arange(len(rows))
        yield every, every

    def get_n_splits(self, *_: Any) -> int:
        """One."""
        return 1
