import itertools

import numpy as np
import pytest
from tests import reference_hardness as reference

import polycal as pc
from polycal.hardness import largest_hidden_error, make_hidden_subset

NOTIONS = {
    "canonical": pc.Canonical(min_repeats=1),
    "confidence": pc.Confidence(smooth=True),
    "top-label": pc.TopLabel(smooth=True),
    "classwise": pc.Classwise(smooth=True),
    "subset-smooth": pc.SubsetSmooth(),
    "full-smooth": pc.FullSmooth(n_floor_draws=0),
}
SEARCHED = {"projected-smooth": pc.ProjectedSmooth(), "halfspace": pc.Halfspace()}


def errors(made, notions):
    labels, proba, weight = made.population()
    return {n: pc.calibration_error(labels, proba, v, sample_weight=weight) for n, v in notions.items()}


@pytest.mark.parametrize(("n_classes", "sharpness"), [(4, 0.02), (4, 0.25), (5, 0.1), (6, 0.1), (10, 0.1)])
@pytest.mark.parametrize("error", [None, 0.03, 0.0])
def test_the_population_has_the_stated_errors(n_classes, sharpness, error):
    made = make_hidden_subset(10, n_classes, error=error, sharpness=sharpness)
    found = errors(made, NOTIONS)
    assert found == pytest.approx({name: made.truth[name] for name in found}, abs=1e-12)
    labels, proba, weight = made.population()
    subset = pc.smooth_calibration_error(labels, proba, subset=made.subset, sample_weight=weight)
    expected = largest_hidden_error(n_classes, sharpness=sharpness) if error is None else error
    assert subset == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_classes", [4, 6])
def test_searches_reach_the_stated_errors(n_classes):
    made = make_hidden_subset(10, n_classes)
    found = errors(made, SEARCHED)
    assert found == pytest.approx({name: made.truth[name] for name in found}, abs=1e-9)
    decision = errors(made, {"decision": pc.Decision()})["decision"]
    assert decision >= made.truth["decision at least"] - 1e-9


@pytest.mark.parametrize("n_classes", [4, 7, 12])
def test_no_function_of_one_class_or_of_the_top_sees_it(n_classes):
    made = make_hidden_subset(10, n_classes)
    assert np.abs(list(reference.conditional_gaps(made).values())).max() < 1e-12
    labels, proba, weight = made.population()
    for notion in (pc.Confidence(), pc.TopLabel(), pc.Classwise()):
        assert pc.calibration_error(labels, proba, notion, sample_weight=weight) < 1e-12


def test_the_most_likely_class_is_never_tied():
    top = np.sort(make_hidden_subset(10, 8).support, axis=1)
    assert np.all(top[:, -1] - top[:, -2] > 0.05)


def test_no_distribution_of_four_classes_on_a_grid_has_a_larger_error():
    steps = 6
    largest = largest_hidden_error(4, sharpness=0)
    found = [
        reference.largest_error_with_calibrated_classes(4, 2, steps, np.cumsum([0, *slopes]) / steps)
        for slopes in itertools.product((-1, 1), repeat=steps)
    ]
    assert max(found) == pytest.approx(largest, abs=1e-9)


@pytest.mark.parametrize("s", [2, 3, 5, 20])
def test_the_proof_that_nothing_is_larger(s):
    # r phi(u) - a (|v|^2 - v_y) is at most M at every prediction and label, and its second part has mean 0.
    p, rng = 1 / (s + 1), np.random.default_rng(0)
    v = np.concatenate([rng.dirichlet(np.full(2 * s, c), 2000) for c in (0.02, 0.1, 0.5, 2.0)])
    u = v[:, :s].sum(axis=1, keepdims=True)
    r = (np.arange(2 * s) < s) - u
    bracket = r * (0.5 - u) - (1.5 - 2 * p) * ((v**2).sum(axis=1, keepdims=True) - v)
    assert bracket.max() <= largest_hidden_error(2 * s, sharpness=0) + 1e-12


def test_many_classes_approach_one_half():
    assert largest_hidden_error(1000, sharpness=0.0) == largest_hidden_error(100, sharpness=0.0) > 0.47
    made = make_hidden_subset(50, 1000)
    assert made.proba.shape == (50, 1000)
    assert len(made.subset) == 50


def test_the_subset_auditor_finds_and_proves_it():
    made = make_hidden_subset(4000, 20, error=0.15)
    fit, judge = slice(None, 2000), slice(2000, None)
    witness = pc.SubsetAuditor().find_witness(made.labels[fit], made.proba[fit])
    assert sorted(witness.members) in (made.subset, sorted(set(range(20)) - set(made.subset)))
    certificate = pc.certify(witness, made.labels[judge], made.proba[judge])
    assert 0 < certificate.lower_bound <= made.truth["subset"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 3}, "n_classes must be an integer, at least 4"),
        ({"error": 0.2}, "error must be a number from 0 to 0.1"),
        ({"error": -0.1}, "error must be a number from 0 to 0.1"),
        ({"sharpness": 0.3}, "sharpness must be a number from 0 to 0.25"),
        ({"n_samples": 0}, "n_samples must be an integer, at least 1"),
        ({"random_state": -1}, "random_state must be an integer"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_hidden_subset(**({"n_samples": 10} | options))
