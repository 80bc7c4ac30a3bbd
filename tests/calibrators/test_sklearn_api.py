"""scikit-learn's own checks of an estimator, on a classifier with each calibrator."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.calibrators.catalogue import EVERY

import polycal as pc

CLASSIFIERS = [
    pc.CalibratedClassifier(LogisticRegression(), cv=3),
    # At its own tolerance it has other coefficients where a row counts twice than where it is there twice.
    pc.CalibratedClassifier(LinearSVC(tol=1e-10), pc.TemperatureScaling(), cv=3),
]
# Without features, which classifiers pass to none, the multicalibrated one is the kernel calibrator.
WITH_EVERY_CALIBRATOR = [
    pc.CalibratedClassifier(LogisticRegression(), calibrator, cv=3)
    for calibrator in EVERY
    if not isinstance(calibrator, pc.MulticalibratedCalibrator)
]
# They fit anew for each of a dozen kinds of sparse features. Those end at the classifier: a calibrator is given dense
# probabilities, as in all other checks.
OF_SPARSE_FEATURES = {
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_sample_weight_equivalence_on_sparse_data",
}


def without_sparse_features(checks):
    """A mark of `parametrize_with_checks` without the checks that a calibrator sees nothing of."""
    names, cases = checks.args
    kept = [case for case in cases if case[1].func.__name__ not in OF_SPARSE_FEATURES]
    return pytest.mark.parametrize(names, kept, **checks.kwargs)


@pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(CLASSIFIERS)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@without_sparse_features(parametrize_with_checks(WITH_EVERY_CALIBRATOR))
def test_estimator_checks_with_every_calibrator(estimator, check):
    check(estimator)
