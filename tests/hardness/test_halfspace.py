import numpy as np
import pytest

import polycal as pc
from polycal.hardness.halfspace import cube_to_simplex, make_hidden_halfspace


def test_the_cube_goes_into_the_simplex_one_to_one():
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    points = cube_to_simplex(corners)
    np.testing.assert_allclose(points.sum(axis=1), 1)
    assert points.min() >= 0
    assert np.unique(points, axis=0).shape[0] == 16


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_the_canonical_error_is_as_said(noise):
    made = make_hidden_halfspace(10, 6, noise=noise)
    labels, proba, weight = made.population()
    error = pc.calibration_error(labels, proba, pc.Canonical(min_repeats=1), sample_weight=weight)
    assert error == pytest.approx(made.truth["canonical"], abs=1e-9)


def test_easy_sizes_are_found_by_the_heuristics():
    # Six classes are no obstacle; the hardness is one of growing k.
    for seed in range(3):
        made = make_hidden_halfspace(10, 6, noise=0.1, random_state=seed)
        labels, proba, weight = made.population()
        found = pc.calibration_error(labels, proba, pc.Halfspace(), sample_weight=weight)
        assert 0.9 * made.truth["halfspace"] <= found <= made.truth["halfspace"] + 1e-9
        decision = pc.calibration_error(labels, proba, pc.Decision(), sample_weight=weight)
        assert decision >= 0.9 * made.truth["decision at least"]


def test_half_noise_is_calibration():
    made = make_hidden_halfspace(2000, 6, noise=0.5)
    assert made.truth["canonical"] == 0
    np.testing.assert_allclose(made.conditionals, made.support)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_classes": 2}, "n_classes must be an integer, at least 3"),
        ({"noise": 0.6}, "noise must be a number from 0 to 0.5"),
        ({"n_points": 0}, "n_points must be an integer, at least 1"),
        ({"n_samples": 0}, "n_samples must be an integer, at least 1"),
        ({"random_state": -1}, "random_state must be an integer"),
    ],
)
def test_bad_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_hidden_halfspace(**({"n_samples": 10, "n_classes": 5} | wrong))
