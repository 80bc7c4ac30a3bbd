import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.storage.saved import packed, unpacked

NOTIONS = [
    pc.Confidence(),
    pc.Confidence(strategy="quantile"),
    pc.Confidence(smooth=True),
    pc.TopLabel(),
    pc.TopSet(2),
    pc.TopLabel(smooth=True),
    pc.Classwise(),
    pc.Classwise(smooth=True),
]


@pytest.mark.parametrize("notion", NOTIONS, ids=repr)
@settings(max_examples=40, deadline=None)
@given(drawn=samples())
def test_the_witness_attains_the_error(notion, drawn):
    labels, proba, weight = drawn
    estimate = pc.estimate_error(labels, proba, notion, sample_weight=weight)
    sample = check_sample(labels, proba, sample_weight=weight)
    assert estimate.witness.correlation(sample) == pytest.approx(estimate.value, abs=1e-8)
    values = estimate.witness(proba)
    assert np.all(np.abs(values) <= 1)


@pytest.mark.parametrize("notion", NOTIONS, ids=repr)
def test_the_state_rebuilds_the_witness(notion):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 200)
    witness = pc.estimate_error(rng.integers(0, 5, 200), proba, notion).witness
    again = unpacked(*packed(witness))
    np.testing.assert_array_equal(again(proba), witness(proba))
    assert again.describe() == witness.describe()


def test_one_hot_predictions_stay_in_range():
    witness = pc.estimate_error([0, 1, 2], np.eye(3), pc.TopLabel(smooth=True)).witness
    assert np.all(np.abs(witness(np.eye(3))) <= 1)


def test_a_subset_witness_names_its_classes():
    estimate = pc.estimate_error(["b", "b"], [[0.9, 0.1], [0.8, 0.2]], pc.Classwise(), class_names=["a", "b"])
    assert estimate.witness.subset in (["a"], ["b"])
    assert "is it" in estimate.witness.describe()
