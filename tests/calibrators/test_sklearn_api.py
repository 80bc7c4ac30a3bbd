"""scikit-learn's own checks of an estimator, on a classifier with each calibrator."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.calibrators.catalogue import EVERY

import polycal as pc

CLASSIFIERS = [
    pc.CalibratedClassifier(LogisticRegression(), cv=3),
    pc.CalibratedClassifier(LinearSVC(), pc.TemperatureScaling(), cv=3),
    # Without features, which classifiers pass to none, the multicalibrated one is the kernel calibrator.
    *(
        pc.CalibratedClassifier(LogisticRegression(), calibrator, cv=3)
        for calibrator in EVERY
        if not isinstance(calibrator, pc.MulticalibratedCalibrator)
    ),
]


@pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(CLASSIFIERS)
def test_estimator_checks(estimator, check):
    check(estimator)
