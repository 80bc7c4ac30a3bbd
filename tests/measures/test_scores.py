import numpy as np
import pytest
from hypothesis import given, settings
from sklearn import metrics
from tests import reference
from tests.strategies import samples

import polycal as pc


@settings(max_examples=100, deadline=None)
@given(samples())
def test_brier_score_equals_its_definition(sample):
    labels, proba, weight = sample
    value = pc.brier_score(labels, proba, sample_weight=weight)
    assert value == pytest.approx(reference.brier_score(labels, proba, weight), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(samples())
def test_log_loss_and_accuracy_equal_scikit_learn(sample):
    labels, proba, weight = sample
    classes = list(range(proba.shape[1]))
    expected = metrics.log_loss(labels, proba, labels=classes, sample_weight=weight)
    assert pc.log_loss(labels, proba, sample_weight=weight) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    expected = metrics.accuracy_score(labels, proba.argmax(axis=1), sample_weight=weight)
    assert pc.accuracy(labels, proba, sample_weight=weight) == pytest.approx(expected)


def test_log_loss_as_defined_is_infinite_on_an_impossible_outcome():
    assert pc.log_loss([1], [[1.0, 0.0]], eps=0.0) == np.inf
    assert pc.log_loss([1], np.array([[1, 0]], dtype=np.float32)) == pytest.approx(
        -np.log(np.finfo("f4").eps)
    )


def test_a_wrong_eps_is_refused():
    with pytest.raises(ValueError, match="eps must be a number from 0 to 1"):
        pc.log_loss([1], [[1.0, 0.0]], eps=-1)
