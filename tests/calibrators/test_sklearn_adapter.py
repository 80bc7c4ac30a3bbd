import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_loss, logs

from polycal.calibrators.one_vs_rest import IsotonicCalibrator
from polycal.calibrators.sklearn_adapter import SklearnCalibrator

PROBA, LABELS, TRUTH = tempered(2.0, n=500, k=3)


def test_a_classifier_learns_from_log_probabilities():
    classifier = LogisticRegression()
    ours = SklearnCalibrator(classifier).fit(PROBA, LABELS)
    theirs = clone(classifier).fit(logs(PROBA), LABELS).predict_proba(logs(PROBA))
    np.testing.assert_allclose(ours.predict_proba(PROBA), theirs, atol=1e-12)
    assert not hasattr(classifier, "coef_")


def test_or_from_probabilities_and_through_pipelines():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    ours = SklearnCalibrator(pipeline, features="proba").fit(PROBA, LABELS)
    theirs = clone(pipeline).fit(PROBA, LABELS).predict_proba(PROBA)
    np.testing.assert_allclose(ours.predict_proba(PROBA), theirs, atol=1e-12)


def test_a_regressor_learns_each_class():
    ours = SklearnCalibrator(IsotonicRegression(out_of_bounds="clip"), features="proba").fit(PROBA, LABELS)
    assert len(ours.estimator_) == 3
    expected = IsotonicCalibrator().fit(PROBA, LABELS).predict_proba(PROBA)
    np.testing.assert_allclose(ours.predict_proba(PROBA), expected, atol=1e-9)


def test_regressors_may_leave_the_unit_interval():
    out = SklearnCalibrator(LinearRegression()).fit(PROBA, LABELS).predict_proba(np.eye(3))
    assert (out >= 0).all()
    np.testing.assert_allclose(out.sum(axis=1), 1)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
def test_methods_of_scikit_learn_improve_the_loss(method):
    if method == "temperature":
        pytest.importorskip("sklearn", minversion="1.8")
    proba, labels, _ = tempered(4.0, n=2000)
    out = SklearnCalibrator(method).fit(proba, labels).predict_proba(proba)
    assert log_loss(np.maximum(out, 1e-3), labels) < log_loss(np.maximum(proba, 1e-3), labels)


def test_classes_that_do_not_occur_stay_as_predicted():
    labels = np.where(LABELS == 2, 0, LABELS)
    for calibrator in (SklearnCalibrator("sigmoid"), SklearnCalibrator(LogisticRegression())):
        out = calibrator.fit(PROBA, labels).predict_proba(PROBA)
        np.testing.assert_allclose(out[:, 2], PROBA[:, 2])
    only = SklearnCalibrator("sigmoid").fit(PROBA, np.zeros(500, dtype=int))
    assert only.estimator_ is None
    np.testing.assert_allclose(only.predict_proba(PROBA), PROBA)


def test_weights_must_be_understood():
    with pytest.raises(TypeError, match=r"KNeighborsClassifier\.fit does not take it"):
        SklearnCalibrator(KNeighborsClassifier()).fit(PROBA, LABELS, sample_weight=np.ones(500))
    SklearnCalibrator(KNeighborsClassifier()).fit(PROBA, LABELS)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"estimator": "magic"}, ValueError, "estimator must be one of 'sigmoid'"),
        ({"estimator": KMeans()}, TypeError, "estimator must be a classifier or a regressor"),
        ({"features": "raw"}, ValueError, "features must be one of 'log', 'proba'"),
    ],
)
def test_bad_parameters_are_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        SklearnCalibrator(**parameters).fit(PROBA, LABELS)
