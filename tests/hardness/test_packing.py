import numpy as np
import pytest
from scipy.spatial.distance import pdist

import polycal as pc
from polycal.hardness.packing import make_fixed_labels, make_fresh_labels, pack_simplex


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
    # The lemma on the fixed distribution; its constant is separation / 12.
    made = make_fixed_labels(pack_simplex(5, 0.8, max_points=60), 10)
    labels, proba, weight = made.population()
    with pytest.warns(pc.CalibrationWarning):
        error = pc.calibration_error(labels, proba, pc.FullSmooth(), sample_weight=weight)
    assert error >= made.truth["full-smooth at least"] >= 0.8 / 12


def test_repeats_have_the_same_label_or_fresh_ones():
    packing = pack_simplex(4, 0.7, max_points=5)
    fixed, fresh = make_fixed_labels(packing, 500), make_fresh_labels(packing, 500)
    for made, most in ((fixed, 1), (fresh, 4)):
        per_point = [len(set(made.labels[(made.proba == v).all(axis=1)])) for v in packing.points]
        assert max(per_point) <= most
        assert (max(per_point) > 1) == (most > 1)


@pytest.mark.parametrize("wrong", [{"n_classes": 2}, {"separation": 0}, {"separation": 3}])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        pack_simplex(**({"n_classes": 4, "separation": 0.5} | wrong))
