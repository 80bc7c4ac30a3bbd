import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference_transport as reference
from tests.strategies import samples

import polycal as pc
from polycal.families.distance import distance_to_calibration
from polycal.families.full_smooth import FullSmooth

COARSE = {2: 32, 3: 16, 4: 8}


def coarse(labels, proba, weight=None):
    return distance_to_calibration(labels, proba, sample_weight=weight, resolution=COARSE[proba.shape[1]])


def as_table(keys, mass):
    """{row of keys: total mass}."""
    distinct, group = np.unique(np.round(keys, 12), axis=0, return_inverse=True)
    return dict(zip(map(tuple, distinct), np.bincount(group, weights=mass), strict=True))


@settings(max_examples=20, deadline=None)
@given(samples(max_classes=3, max_rows=10))
def test_the_upper_bound_equals_the_dense_linear_program(sample):
    labels, proba, weight = sample
    weight = np.ones(len(labels)) if weight is None else weight
    distance = distance_to_calibration(labels, proba, sample_weight=weight, resolution=8)
    frequencies = reference.label_frequencies(labels, proba, weight)
    targets = np.vstack([reference.grid(proba.shape[1], 8), proba, frequencies])
    # Probabilities below 1e-6 are dropped from the targets, so that the program stays well scaled.
    expected = reference.calibration_distance(labels, proba, targets, weight)
    assert distance.upper == pytest.approx(expected, abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(samples(max_classes=4, max_rows=20))
def test_the_coupling_is_calibrated_and_costs_the_upper_bound(sample):
    labels, proba, weight = sample
    distance = coarse(labels, proba, weight)
    coupling = distance.coupling
    weight = np.ones(len(labels)) if weight is None else weight
    moved = as_table(np.column_stack([coupling.predicted, coupling.labels]), coupling.mass)
    there = as_table(np.column_stack([proba, labels])[weight > 0], (weight / weight.sum())[weight > 0])
    assert moved.keys() == there.keys()
    assert list(moved.values()) == pytest.approx(list(there.values()), abs=1e-9)
    for u in np.unique(coupling.calibrated, axis=0):
        arrived = (coupling.calibrated == u).all(axis=1)
        by_label = np.bincount(coupling.labels[arrived], coupling.mass[arrived], proba.shape[1])
        np.testing.assert_allclose(by_label, by_label.sum() * u, atol=1e-9)
    assert coupling.cost == pytest.approx(distance.upper, abs=1e-9)
    assert np.all(coupling.mass >= 0)


@settings(max_examples=20, deadline=None)
@given(samples(max_classes=4, max_rows=15))
def test_bounds_of_all_resolutions_agree(sample):
    labels, proba, weight = sample
    k = proba.shape[1]
    found = [
        distance_to_calibration(labels, proba, sample_weight=weight, resolution=r) for r in (1, 4, COARSE[k])
    ]
    assert max(d.lower for d in found) <= min(d.upper for d in found) + 1e-9
    gap = {2: 1, 3: 4 / 3, 4: 2}[k]
    for distance in found:
        assert distance.upper - distance.lower <= gap / distance.resolution + 1e-8
        assert 0 <= distance.lower <= distance.upper <= 2 + 1e-9


@settings(max_examples=20, deadline=None)
@given(samples(max_classes=4, max_rows=20))
def test_between_the_mean_residual_and_the_canonical_error(sample):
    labels, proba, weight = sample
    distance = coarse(labels, proba, weight)
    mean_residual = np.average(np.eye(proba.shape[1])[labels] - proba, axis=0, weights=weight)
    assert np.abs(mean_residual).sum() <= distance.upper + 1e-9
    canonical = pc.calibration_error(labels, proba, pc.Canonical(min_repeats=1), sample_weight=weight)
    assert distance.upper <= canonical + 1e-9


@settings(max_examples=20, deadline=None)
@given(samples(max_classes=4, max_rows=20))
def test_the_full_smooth_error_is_at_most_three_times_the_distance(sample):
    pytest.importorskip("ot")
    labels, proba, weight = sample
    full = pc.calibration_error(labels, proba, FullSmooth(n_floor_draws=0), sample_weight=weight)
    assert full <= 3 * coarse(labels, proba, weight).upper + 1e-9


@settings(max_examples=20, deadline=None)
@given(samples(max_classes=2, max_rows=30))
def test_two_classes_obey_the_known_relation_to_the_smooth_error(sample):
    # With |u_1 - v_1|, half of our distance: smCE / 2 <= lower distance to calibration <= 2 smCE.
    labels, proba, weight = sample
    smooth = pc.smooth_calibration_error(labels, proba, sample_weight=weight)
    distance = coarse(labels, proba, weight)
    assert smooth <= distance.upper + 1e-9
    assert distance.lower <= 4 * smooth + 1e-9


@settings(max_examples=15, deadline=None)
@given(samples(max_classes=3, max_rows=15, weighted=True))
def test_order_names_and_weights(sample):
    labels, proba, weight = sample
    upper = coarse(labels, proba, weight).upper
    rng = np.random.default_rng(0)
    rows, classes = rng.permutation(len(labels)), rng.permutation(proba.shape[1])
    assert coarse(labels[rows], proba[rows], 3 * weight[rows]).upper == pytest.approx(upper, abs=1e-8)
    relabelled = coarse(np.argsort(classes)[labels], proba[:, classes], weight)
    assert relabelled.upper == pytest.approx(upper, abs=1e-8)
    times = weight.astype(int)
    repeated = coarse(np.repeat(labels, times), np.repeat(proba, times, axis=0))
    assert repeated.upper == pytest.approx(upper, abs=1e-8)


def test_zero_when_every_repeated_prediction_is_exactly_right_off_the_grid():
    counts = np.array([[1, 2, 4], [4, 2, 1], [0, 5, 2], [7, 0, 0]])
    labels = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    distance = coarse(labels, np.repeat(counts / 7, 7, axis=0))
    assert (distance.lower, distance.upper) == (0, pytest.approx(0, abs=1e-12))


def test_one_prediction_moves_to_the_label_frequencies():
    distance = coarse(np.array([0, 0, 1, 2, 2]), np.full((5, 3), 1 / 3))
    assert distance.upper == pytest.approx(1 / 15 + 2 / 15 + 1 / 15)
    assert "cost=0.266667" in repr(distance.coupling)


def test_one_label_is_exact():
    distance = coarse(np.zeros(3, int), np.array([[0.5, 0.5, 0], [1, 0, 0], [0, 0.5, 0.5]]))
    assert distance.lower == pytest.approx(distance.upper, abs=1e-12)
    assert distance.upper == pytest.approx((1 + 0 + 2) / 3)


@pytest.mark.parametrize(("k", "widest"), [(2, 0.0003), (3, 0.003), (4, 0.032)])
def test_the_default_resolution_is_fine(k, widest):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(k), 40)
    distance = distance_to_calibration(rng.integers(0, k, 40), proba)
    assert distance.upper - distance.lower < widest
    assert distance.lower > 0.1


def test_resolution_is_rounded_up_to_a_power_of_two():
    assert distance_to_calibration([0, 1], [0.2, 0.9], resolution=5).resolution == 8
    assert distance_to_calibration([0, 1], [0.2, 0.9], resolution=8).resolution == 8


@pytest.mark.parametrize("resolution", [0, 2.5, True, 10**6])
def test_bad_resolutions_are_refused(resolution):
    with pytest.raises(ValueError, match="resolution must be"):
        distance_to_calibration([0, 1], [0.2, 0.9], resolution=resolution)


def test_many_classes_are_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"exponentially many points.*at most 4 classes, got 5"):
        distance_to_calibration([0], np.full((1, 5), 0.2))


def test_tiny_weights_and_probabilities_do_not_upset_the_program():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(4, 0.02), 40)
    distance = coarse(rng.integers(0, 4, 40), proba, rng.exponential(1, 40) ** 8)
    assert distance.upper - distance.lower <= 2 / 8 + 1e-8
    assert distance.coupling.mass.sum() == pytest.approx(1, abs=1e-8)
