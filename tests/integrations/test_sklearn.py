import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

import polycal as pc
from polycal.integrations import CalibrationDisplay, CalibrationScorer

X, POSITIONS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
MODEL = LogisticRegression(max_iter=1000)


@pytest.fixture(scope="module")
def fitted():
    return LogisticRegression(max_iter=1000).fit(X[::2], NAMES[POSITIONS[::2]])


def test_scores_are_negative_errors(fitted):
    y, proba = POSITIONS[1::2], fitted.predict_proba(X[1::2])
    labels = NAMES[y]
    assert CalibrationScorer()(fitted, X[1::2], labels) == -pc.smooth_calibration_error(y, proba)
    by_label = CalibrationScorer(subset=["setosa", "virginica"])
    assert by_label(fitted, X[1::2], labels) == -pc.smooth_calibration_error(y, proba, subset=[0, 2])
    named = CalibrationScorer("classwise:smooth")(fitted, X[1::2], labels)
    assert named == -pc.calibration_error(y, proba, pc.Classwise(smooth=True))


def test_weights_count(fitted):
    weight = np.arange(75) % 3.0
    scored = CalibrationScorer()(fitted, X[1::2], NAMES[POSITIONS[1::2]], sample_weight=weight)
    expected = pc.smooth_calibration_error(
        POSITIONS[1::2], fitted.predict_proba(X[1::2]), sample_weight=weight
    )
    assert scored == -expected


def test_scikit_learn_takes_the_scorer():
    scores = cross_val_score(MODEL, X, POSITIONS, scoring=CalibrationScorer("confidence"), cv=3)
    assert ((scores <= 0) & (scores > -1)).all()
    many = {"error": CalibrationScorer(), "log loss": "neg_log_loss"}
    assert "test_error" in cross_validate(MODEL, X, POSITIONS, scoring=many, cv=3)
    search = GridSearchCV(MODEL, {"C": [0.1, 1.0]}, scoring=CalibrationScorer(), cv=3).fit(X, POSITIONS)
    assert search.best_score_ <= 0


def test_two_classes_are_one_question():
    two = POSITIONS < 2
    model = LogisticRegression().fit(X[two], POSITIONS[two])
    expected = pc.smooth_calibration_error(POSITIONS[two], model.predict_proba(X[two])[:, 1])
    assert CalibrationScorer()(model, X[two], POSITIONS[two]) == pytest.approx(-expected, abs=1e-12)


def test_displays_of_estimators_and_predictions_agree(fitted):
    labels = NAMES[POSITIONS[1::2]]
    made = CalibrationDisplay.from_estimator(
        fitted, X[1::2], labels, subset=["setosa", "virginica"], ax=Figure().subplots()
    )
    other = CalibrationDisplay.from_predictions(
        labels,
        fitted.predict_proba(X[1::2]),
        subset=["setosa", "virginica"],
        class_names=NAMES,
        ax=Figure().subplots(),
    )
    np.testing.assert_array_equal(made.curve.frequency, other.curve.frequency)
    assert made.ax_.get_title() == "LogisticRegression: is it setosa or virginica?"
    assert other.ax_.get_title() == "Is it setosa or virginica?"
    assert made.figure_ is made.ax_.figure


def test_curves_without_bins_can_be_drawn_again(fitted):
    display = CalibrationDisplay.from_estimator(
        fitted, X, NAMES[POSITIONS], kind="cumulative", ax=Figure().subplots()
    )
    assert isinstance(display.curve, pc.measures.SmoothCurve)
    again = display.plot(ax=Figure().subplots(), name="other")
    assert again.ax_.get_title().startswith("other: is the most likely")


def test_bad_input_is_named(fitted):
    with pytest.raises(TypeError, match="RidgeClassifier has none"):
        CalibrationScorer()(RidgeClassifier().fit(X, POSITIONS), X, POSITIONS)
    with pytest.raises(ValueError, match="y must be one column of labels"):
        CalibrationScorer()(fitted, X, POSITIONS)
    with pytest.raises(ValueError, match="subset has 'rose'"):
        CalibrationScorer(subset=["rose"])(fitted, X, NAMES[POSITIONS])
    with pytest.raises(ValueError, match="either notion or subset"):
        CalibrationScorer("confidence", subset=[0])
    with pytest.raises(ValueError, match="kind must be one of"):
        CalibrationDisplay.from_predictions(POSITIONS, np.eye(3)[POSITIONS], kind="pie")
