import numpy as np
import pytest
from scipy.spatial.distance import pdist

import polycal as pc
from polycal.hardness.packing import make_fixed_labels, make_fresh_labels, pack_simplex, repeat_probability


@pytest.mark.parametrize(("k", "separation"), [(3, 0.3), (5, 0.6), (8, 0.8)])
def test_points_are_far_from_each_other_and_from_corners(k, separation):
    packing = pack_simplex(k, separation, patience=500)
    assert pdist(packing.points, "cityblock").min() >= separation
    assert np.all(2 * (1 - packing.points.max(axis=1)) >= 1 / 3)
    np.testing.assert_allclose(packing.points.sum(axis=1), 1)


@pytest.mark.parametrize(("k", "separation"), [(6, 0.25), (8, 0.4)])
def test_a_nearly_maximal_packing_has_as_many_points_as_volumes_promise(k, separation):
    packing = pack_simplex(k, separation)
    assert packing.guaranteed > 1
    assert len(packing.points) >= packing.guaranteed


def test_fresh_labels_are_calibrated():
    made = make_fresh_labels(pack_simplex(4, 0.5), 10)
    labels, proba, weight = made.population()
    assert pc.calibration_error(labels, proba, pc.Canonical(min_repeats=1), sample_weight=weight) < 1e-12


def test_fixed_labels_have_the_canonical_error_they_say():
    made = make_fixed_labels(pack_simplex(5, 0.5), 10)
    labels, proba, weight = made.population()
    error = pc.calibration_error(labels, proba, pc.Canonical(min_repeats=1), sample_weight=weight)
    assert error == pytest.approx(made.truth["canonical"])
    assert error >= 1 / 3


def test_fixed_labels_have_at_least_the_full_smooth_error_they_say():
    # The lemma on the fixed distribution; its constant is separation / 6.
    made = make_fixed_labels(pack_simplex(5, 0.8, max_points=60), 10)
    labels, proba, weight = made.population()
    with pytest.warns(pc.CalibrationWarning):
        error = pc.calibration_error(labels, proba, pc.FullSmooth(), sample_weight=weight)
    assert error >= made.truth["full-smooth at least"] >= 0.8 / 6


def test_fixed_labels_are_far_from_calibration():
    # A sixth of the separation, and a third of that: the full smooth error is at most 3 times the distance.
    made = make_fixed_labels(pack_simplex(3, 0.5), 10)
    labels, proba, weight = made.population()
    distance = pc.distance_to_calibration(labels, proba, sample_weight=weight, resolution=64)
    assert distance.lower >= made.truth["full-smooth at least"] / 3 >= 0.5 / 18


def test_repeats_have_the_same_label_or_fresh_ones():
    packing = pack_simplex(4, 0.7, max_points=5)
    fixed, fresh = make_fixed_labels(packing, 500), make_fresh_labels(packing, 500)
    for made, most in ((fixed, 1), (fresh, 4)):
        per_point = [len(set(made.labels[(made.proba == v).all(axis=1)])) for v in packing.points]
        assert max(per_point) <= most
        assert (max(per_point) > 1) == (most > 1)


@pytest.mark.parametrize("n", [1, 5, 20, 60])
def test_how_likely_a_repeat_is(n):
    packing = pack_simplex(4, 0.4, max_points=50)
    size = len(packing.points)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, size, (4000, n))
    repeats = np.mean([len(set(row)) < n for row in drawn.tolist()])
    chance = repeat_probability(packing, n)
    assert chance == pytest.approx(repeats, abs=0.03)
    assert chance <= n * (n - 1) / (2 * size) + 1e-12


def agreeing_pairs(made):
    """How many pairs of rows have the same prediction and the same label."""
    _, point = np.unique(made.proba, axis=0, return_inverse=True)
    _, counts = np.unique(point * made.proba.shape[1] + made.labels, return_counts=True)
    return int(np.sum(counts * (counts - 1) // 2))


def accepted(packing, n, seed):
    """Whether the best test says "calibrated" of fresh and of fixed labels: few pairs agree for their number."""

    def accepts(made):
        _, repeats = np.unique(made.proba, axis=0, return_counts=True)
        pairs = int(np.sum(repeats * (repeats - 1) // 2))
        return agreeing_pairs(made) < max(1, pairs)

    fresh = make_fresh_labels(packing, n, random_state=seed)
    fixed = make_fixed_labels(packing, n, label_state=seed, random_state=seed)
    return accepts(fresh), accepts(fixed)


@pytest.mark.parametrize("n", [5, 15, 30, 100])
def test_fresh_and_fixed_labels_differ_by_no_more_than_the_chance_of_a_repeat(n):
    packing = pack_simplex(5, 0.3, max_points=200)
    fresh, fixed = np.mean([accepted(packing, n, seed) for seed in range(300)], axis=0)
    chance = repeat_probability(packing, n)
    # Three standard errors of the difference of two shares out of 300.
    assert fresh - fixed <= chance + 3 * (0.5 / 300) ** 0.5
    if chance > 0.99:
        assert fresh - fixed > 0.9


def test_without_repeats_fresh_and_fixed_labels_are_the_same_distribution():
    # Every point once: the pairs (point, label) have the same frequencies over many draws of the fixed labels.
    packing = pack_simplex(4, 0.7, max_points=4)
    n = len(packing.points)
    counts = {"fresh": np.zeros((n, 4)), "fixed": np.zeros((n, 4))}
    for seed in range(3000):
        for name, made in (
            ("fresh", make_fresh_labels(packing, n, random_state=seed)),
            ("fixed", make_fixed_labels(packing, n, label_state=seed, random_state=seed + 10**6)),
        ):
            point = (made.proba[:, None, :] == packing.points).all(axis=2).argmax(axis=1)
            if len(set(point)) == n:
                np.add.at(counts[name], (point, made.labels), 1)
    for table in counts.values():
        assert table.sum() > 500
        np.testing.assert_allclose(
            table / table.sum(axis=1, keepdims=True),
            packing.points,
            atol=4 * (0.25 / table.sum(axis=1).min()) ** 0.5,
        )


@pytest.mark.parametrize("wrong", [{"n_classes": 2}, {"separation": 0}, {"separation": 3}])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        pack_simplex(**({"n_classes": 4, "separation": 0.5} | wrong))
