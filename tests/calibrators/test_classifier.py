import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC
from tests.reference_calibrators import log_loss

import polycal as pc
from polycal.calibrators.base import IdentityCalibrator
from polycal.calibrators.classifier import CalibratedClassifier
from polycal.calibrators.temperature import TemperatureScaling
from polycal.calibrators.vector import VectorScaling

X, Y = make_classification(600, 8, n_informative=5, n_classes=3, random_state=0)
NAMES = np.array(["cat", "dog", "eel"])[Y]


def test_the_calibrator_learns_from_held_out_predictions():
    fitted = CalibratedClassifier(GaussianNB(), VectorScaling(), cv=4).fit(X, Y)
    held_out = cross_val_predict(GaussianNB(), X, Y, cv=StratifiedKFold(4), method="predict_proba")
    calibrator = VectorScaling().fit(held_out, Y)
    np.testing.assert_allclose(fitted.calibrator_.bias_, calibrator.bias_, atol=1e-9)
    expected = calibrator.predict_proba(GaussianNB().fit(X, Y).predict_proba(X))
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-9)


def test_it_repairs_an_over_confident_classifier():
    X_all, y = make_classification(4000, 20, n_informative=4, n_redundant=12, n_classes=3, random_state=1)
    train, test = slice(0, 2000), slice(2000, None)
    raw = GaussianNB().fit(X_all[train], y[train]).predict_proba(X_all[test])
    calibrated = CalibratedClassifier(GaussianNB()).fit(X_all[train], y[train]).predict_proba(X_all[test])
    assert log_loss(calibrated, y[test]) < log_loss(np.maximum(raw, 1e-15), y[test]) - 0.1


def test_labels_may_be_names():
    fitted = CalibratedClassifier(GaussianNB(), cv=3).fit(X, NAMES)
    assert list(fitted.classes_) == ["cat", "dog", "eel"]
    numbered = CalibratedClassifier(GaussianNB(), cv=3).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict_proba(X), numbered.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[numbered.predict(X)])
    assert fitted.score(X, NAMES) == numbered.score(X, Y)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_fitted_classifier_is_not_fitted_again(frozen):
    estimator = GaussianNB().fit(X[:300], NAMES[:300])
    prefit = (
        CalibratedClassifier(FrozenEstimator(estimator))
        if frozen
        else CalibratedClassifier(estimator, cv="prefit")
    )
    fitted = prefit.fit(X[300:], NAMES[300:])
    calibrator = pc.KernelCalibrator().fit(estimator.predict_proba(X[300:]), Y[300:])
    assert fitted.calibrator_.temperature_ == pytest.approx(calibrator.temperature_)
    np.testing.assert_allclose(fitted.predict_proba(X), calibrator.predict_proba(estimator.predict_proba(X)))


def test_a_fitted_classifier_may_see_fewer_classes_but_no_new_ones():
    estimator = GaussianNB().fit(X, Y)
    few = Y < 2
    fitted = CalibratedClassifier(estimator, cv="prefit").fit(X[few], Y[few])
    assert fitted.predict_proba(X).shape == (600, 3)
    with pytest.raises(ValueError, match=r"y holds .*7.*not among the classifier's classes"):
        CalibratedClassifier(estimator, cv="prefit").fit(X, np.where(Y == 0, 7, Y))


def test_prefit_means_fitted():
    with pytest.raises(NotFittedError):
        CalibratedClassifier(GaussianNB(), cv="prefit").fit(X, Y)


def test_scores_become_probabilities():
    fitted = CalibratedClassifier(LinearSVC(random_state=0), IdentityCalibrator(), cv=3).fit(X, Y)
    expected = softmax(LinearSVC(random_state=0).fit(X, Y).decision_function(X), axis=1)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-12)
    two = Y < 2
    binary = CalibratedClassifier(Perceptron(random_state=0), IdentityCalibrator(), cv=3).fit(X[two], Y[two])
    scores = Perceptron(random_state=0).fit(X[two], Y[two]).decision_function(X)
    np.testing.assert_allclose(binary.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-12)


def test_scores_must_be_one_a_class():
    X4, y4 = make_classification(200, n_informative=4, n_classes=4, random_state=0)
    with pytest.raises(ValueError, match="estimator gives 6 scores a row for 4 classes"):
        CalibratedClassifier(SVC(decision_function_shape="ovo"), cv=3).fit(X4, y4)


def test_calibrators_of_logits_get_logits():
    by_logits = CalibratedClassifier(GaussianNB(), TemperatureScaling(from_logits=True), cv=3).fit(X, Y)
    by_proba = CalibratedClassifier(GaussianNB(), TemperatureScaling(), cv=3).fit(X, Y)
    np.testing.assert_allclose(by_logits.predict_proba(X), by_proba.predict_proba(X), atol=1e-6)


def test_weights_go_to_both():
    weight = np.random.default_rng(0).integers(0, 3, 600)
    halves = [(np.arange(300), np.arange(300, 600))]
    fitted = CalibratedClassifier(LogisticRegression(tol=1e-10), VectorScaling(), cv=halves)
    weighted = clone(fitted).fit(X, Y, sample_weight=weight)
    times = weight
    half = times[:300].sum()
    repeated = clone(fitted).set_params(cv=[(np.arange(half), np.arange(half, times.sum()))])
    repeated.fit(X.repeat(times, axis=0), Y.repeat(times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


def test_weights_the_classifier_cannot_use_are_a_warning():
    with pytest.warns(UserWarning, match="KNeighborsClassifier.fit does not take sample_weight"):
        CalibratedClassifier(KNeighborsClassifier(), cv=3).fit(X, Y, sample_weight=np.ones(600))


def test_splits_may_overlap_and_leave_rows_out():
    fitted = CalibratedClassifier(GaussianNB(), cv=ShuffleSplit(3, test_size=0.2, random_state=0)).fit(X, Y)
    assert fitted.predict_proba(X).shape == (600, 3)


def test_splits_may_be_masks():
    rows = np.arange(600)
    by_mask = CalibratedClassifier(GaussianNB(), cv=[(rows < 300, rows >= 300)]).fit(X, Y)
    by_number = CalibratedClassifier(GaussianNB(), cv=[(rows[:300], rows[300:])]).fit(X, Y)
    assert by_mask.calibrator_.temperature_ == by_number.calibrator_.temperature_


def test_a_class_may_be_missing_from_a_fold():
    rows = np.arange(600)
    splits = [(rows[Y != 2], rows[Y == 2][:10]), (rows[10:], rows[:10])]
    fitted = CalibratedClassifier(GaussianNB(), cv=splits).fit(X, Y)
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_kernels_are_split_on_both_sides():
    kernel = X @ X.T
    fitted = CalibratedClassifier(SVC(kernel="precomputed"), cv=3).fit(kernel, Y)
    linear = CalibratedClassifier(SVC(kernel="linear"), cv=3).fit(X, Y)
    np.testing.assert_allclose(fitted.predict_proba(kernel), linear.predict_proba(X), atol=1e-3)


def test_frames_and_sparse_matrices_pass_through():
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    fitted = CalibratedClassifier(LogisticRegression(), cv=3).fit(frame, pd.Series(NAMES))
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert fitted.n_features_in_ == 8
    sparse = CalibratedClassifier(LogisticRegression(), cv=3).fit(csr_array(X), NAMES)
    np.testing.assert_allclose(sparse.predict_proba(csr_array(X)), fitted.predict_proba(frame), atol=1e-4)


def test_folds_may_be_fitted_at_the_same_time():
    one = CalibratedClassifier(GaussianNB(), cv=3).fit(X, Y)
    with parallel_config(backend="threading"):
        two = CalibratedClassifier(GaussianNB(), cv=3, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_it_works_inside_cross_validation():
    scores = cross_val_score(CalibratedClassifier(GaussianNB(), cv=3), X, NAMES, scoring="neg_log_loss", cv=3)
    assert np.isfinite(scores).all()


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        CalibratedClassifier(GaussianNB()).fit(X, np.zeros(600))


def test_parameters_reach_inside():
    nested = CalibratedClassifier(GaussianNB(), VectorScaling())
    nested.set_params(calibrator__ridge=3.0, estimator__var_smoothing=1e-3)
    assert nested.calibrator.ridge == 3.0
    assert nested.estimator.var_smoothing == 1e-3
