import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import polycal as pc

X, Y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
NAMES = np.array(["cat", "dog", "eel"])[Y]
FEED = {"feed": {"cat": 0, "default": 1}, "leave": {"cat": 4, "default": 0}, "look": 0.6}


def model(losses=None, **options):
    options = {"calibrator": pc.TemperatureScaling(), "cv": 3} | options
    return pc.CostSensitiveClassifier(GaussianNB(), losses, **options)


@parametrize_with_checks(
    [pc.CostSensitiveClassifier(LogisticRegression(), calibrator=pc.TemperatureScaling(), cv=3)]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_it_acts_as_decide_does():
    fitted = model(FEED).fit(X, NAMES)
    assert fitted.actions_.tolist() == ["feed", "leave", "look"]
    proba = fitted.predict_proba(X)
    expected = pc.decide(proba, FEED, class_names=["cat", "dog", "eel"])
    np.testing.assert_array_equal(fitted.predict(X), expected)
    cost = pc.decision_cost(NAMES, proba, FEED, class_names=["cat", "dog", "eel"])
    assert fitted.score(X, NAMES) == pytest.approx(-cost)
    weight = np.arange(400.0)
    weighted = pc.decision_cost(
        Y, proba, fitted.loss_, sample_weight=weight, class_names=["cat", "dog", "eel"]
    )
    assert fitted.score(X, NAMES, weight) == pytest.approx(-weighted)


def test_without_losses_it_is_the_calibrated_classifier():
    plain = pc.CalibratedClassifier(GaussianNB(), pc.TemperatureScaling(), cv=3).fit(X, Y)
    fitted = model().fit(X, Y)
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))
    assert fitted.score(X, Y) == plain.score(X, Y)
    assert fitted.predict(X).dtype == plain.predict(X).dtype


def test_actions_may_be_labels_or_have_no_names():
    # Missing label 2 is dear: it is predicted more often.
    careful = {0: {1: 1, 2: 9, "default": 0}, 1: {0: 1, 2: 9, "default": 0}, 2: {2: 0, "default": 1}}
    fitted = model(careful).fit(X, Y)
    assert fitted.actions_.tolist() == [0, 1, 2]
    assert (fitted.predict(X) == 2).sum() > (model().fit(X, Y).predict(X) == 2).sum()
    assert model(1 - np.eye(3)).fit(X, NAMES).actions_.tolist() == [0, 1, 2]
    # Numbers in a mapping are labels, not positions.
    shifted = model({"yes": {1: 0, "default": 1}, "no": {1: 1, "default": 0}}).fit(X, Y + 1)
    np.testing.assert_array_equal(shifted.loss_.matrix, [[0, 1, 1], [1, 0, 0]])


def test_a_new_loss_needs_no_new_fit_and_searches_use_the_cost():
    fitted = model(FEED).fit(X, NAMES)
    other = fitted.set_params(losses={"feed": 1, "leave": {"cat": 2, "default": 0}})
    assert set(other.predict(X)) <= {"feed", "leave"}
    assert cross_val_score(clone(fitted), X, NAMES, cv=2).max() <= 0


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ({"a": FEED, "b": FEED}, "holds 2 losses"),
        (np.zeros((2, 4)), "4 columns for 3 classes"),
        ({"feed": {"cow": 1, "default": 0}}, "'cow', which is not one of the class names"),
    ],
)
def test_bad_losses_are_refused_at_fit(losses, words):
    with pytest.raises(ValueError, match=words):
        model(losses).fit(X, NAMES)
