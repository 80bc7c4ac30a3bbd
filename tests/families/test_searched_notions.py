"""What the notions whose members are searched for have in common."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.families import _ascent as points
from polycal.families.decision import Decision
from polycal.families.halfspace import Halfspace
from polycal.families.projected import ProjectedSmooth
from polycal.families.sigmoid import Sigmoid
from polycal.storage.saved import packed, unpacked

NOTIONS = [ProjectedSmooth(), ProjectedSmooth(m=1), Sigmoid(4), Halfspace(), Decision(), Decision(3)]
every_notion = pytest.mark.parametrize("notion", NOTIONS, ids=repr)


@every_notion
@settings(max_examples=12, deadline=None)
@given(drawn=samples())
def test_the_witness_attains_the_value_within_its_range(notion, drawn):
    labels, proba, weight = drawn
    estimate = pc.estimate_error(labels, proba, notion, sample_weight=weight)
    sample = check_sample(labels, proba, sample_weight=weight)
    assert estimate.witness.correlation(sample) == pytest.approx(estimate.value, abs=1e-8)
    assert estimate.value >= 0
    everywhere = np.vstack([proba, np.eye(proba.shape[1])])
    assert np.abs(estimate.witness(everywhere)).max() <= 1


@every_notion
@settings(max_examples=10, deadline=None)
@given(drawn=samples())
def test_the_order_of_rows_does_not_matter(notion, drawn):
    labels, proba, weight = drawn
    order = np.random.default_rng(0).permutation(len(labels))
    shuffled = pc.calibration_error(
        labels[order], proba[order], notion, sample_weight=None if weight is None else weight[order]
    )
    value = pc.calibration_error(labels, proba, notion, sample_weight=weight)
    assert shuffled == pytest.approx(value, abs=1e-9)


@every_notion
@settings(max_examples=10, deadline=None)
@given(drawn=samples(weighted=True))
def test_weight_two_is_the_row_twice(notion, drawn):
    labels, proba, weight = drawn
    times = weight.astype(int)
    repeated = pc.calibration_error(np.repeat(labels, times), np.repeat(proba, times, axis=0), notion)
    value = pc.calibration_error(labels, proba, notion, sample_weight=weight)
    assert repeated == pytest.approx(value, abs=1e-9)


@every_notion
def test_relabelling_changes_nothing_where_classes_are_used_differently(notion):
    # Searches see classes in the order of their use; classes used alike are the exception.
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 2, 3, 4, 5], 80)
    labels = rng.integers(0, 5, 80)
    new = rng.permutation(5)
    relabelled = pc.calibration_error(np.argsort(new)[labels], proba[:, new], notion)
    assert relabelled == pytest.approx(pc.calibration_error(labels, proba, notion), abs=1e-9)


@every_notion
def test_zero_when_every_repeated_prediction_is_exactly_right(notion):
    counts = np.array([[1, 3, 4], [4, 2, 2], [0, 5, 3], [8, 0, 0]])
    proba = np.repeat(counts / 8, 8, axis=0)
    labels = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    estimate = pc.estimate_error(labels, proba, notion)
    assert estimate.value == pytest.approx(0, abs=1e-12)
    assert isinstance(estimate.witness.describe(), str)


@every_notion
@pytest.mark.parametrize("k", [2, 5])
def test_the_state_rebuilds_the_witness(notion, k):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(k), 100)
    names = tuple("abcde"[:k])
    witness = pc.estimate_error(rng.integers(0, k, 100), proba, notion, class_names=names).witness
    again = unpacked(*packed(witness))
    np.testing.assert_array_equal(again(proba), witness(proba))
    assert again.describe() == witness.describe()
    assert any(name in witness.describe() for name in names)


@every_notion
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_hot_predictions_and_single_rows(notion, dtype):
    proba = np.eye(4, dtype=dtype)[[0, 1, 2, 3, 0]]
    estimate = pc.estimate_error([1, 1, 2, 0, 0], proba, notion)
    assert np.abs(estimate.witness(proba)).max() <= 1
    single = pc.estimate_error([1], proba[:1], notion)
    assert single.witness.correlation(check_sample([1], proba[:1])) == pytest.approx(single.value)


@every_notion
def test_single_precision_gives_the_same_error(notion):
    rng = np.random.default_rng(1)
    labels, proba = rng.integers(0, 4, 150), rng.dirichlet(np.ones(4), 150)
    double = pc.calibration_error(labels, proba, notion)
    single = pc.calibration_error(labels, proba.astype(np.float32), notion)
    assert single == pytest.approx(double, rel=0.02)


@every_notion
def test_predictions_are_never_changed(notion):
    rng = np.random.default_rng(1)
    labels, proba = rng.integers(0, 3, 30), rng.dirichlet(np.ones(3), 30)
    labels.flags.writeable = proba.flags.writeable = False
    pc.calibration_error(labels, proba, notion)


@every_notion
def test_a_large_sample_is_valued_whole(notion, monkeypatch):
    monkeypatch.setattr(points, "_MAX_POINTS", 100)
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 3000)
    labels = np.where(rng.random(3000) < 0.3, 0, proba.argmax(axis=1))
    estimate = pc.estimate_error(labels, proba, notion)
    assert estimate.n_samples == 3000
    assert estimate.witness.correlation(check_sample(labels, proba)) == pytest.approx(
        estimate.value, abs=1e-8
    )
