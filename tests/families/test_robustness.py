"""Properties 1 and 3 of the paper's introduction: questions are near calibrated ones, and errors are robust."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import samples

import polycal as pc
from polycal.families import largest_change, question_distance

# Notions whose error is exact, so that the bound on the change holds for what is computed.
EXACT = [pc.SubsetSmooth(), pc.SubsetSmooth(1), pc.LowDegree(0), pc.LowDegree(1), pc.LowDegree(3)]
EXACT += [pc.Classwise(smooth=True, reduce=reduce) for reduce in ("max", "mean", "sum")]


@settings(max_examples=25, deadline=None)
@given(samples(min_classes=3, max_classes=6, max_rows=25), st.integers(1, 3))
def test_every_question_is_near_a_calibrated_one(data, size):
    labels, proba, weight = data
    subset = list(range(min(size, proba.shape[1] - 1)))
    distance = question_distance(labels, proba, subset=subset, sample_weight=weight, resolution=64)
    error = pc.smooth_calibration_error(labels, proba, subset=subset, sample_weight=weight)
    assert error <= distance.upper + 1e-9
    assert distance.lower <= 4 * error + 1e-9
    worst = pc.calibration_error(labels, proba, pc.SubsetSmooth(), sample_weight=weight)
    assert distance.lower <= 4 * worst + 1e-9


def test_the_calibrated_predictor_is_calibrated_and_as_near_as_said():
    rng = np.random.default_rng(0)
    labels, proba = rng.integers(0, 5, 80), rng.dirichlet(np.ones(5), 80)
    coupling = question_distance(labels, proba, subset=[1, 3]).coupling
    for u in np.unique(coupling.calibrated[:, 1]):
        rows = coupling.calibrated[:, 1] == u
        assert coupling.mass[rows] @ coupling.labels[rows] == pytest.approx(
            u * coupling.mass[rows].sum(), abs=1e-8
        )
    assert coupling.mass @ np.abs(coupling.calibrated - coupling.predicted).sum(axis=1) == pytest.approx(
        coupling.cost
    )


@pytest.mark.parametrize("notion", EXACT, ids=repr)
@settings(max_examples=25, deadline=None)
@given(
    data=samples(max_classes=5, max_rows=30),
    amount=st.sampled_from([1e-3, 0.05, 1.0]),
    seed=st.integers(0, 99),
)
def test_errors_change_little_when_predictions_move_little(notion, data, amount, seed):
    labels, proba, weight = data
    other = (1 - amount) * proba + amount * np.random.default_rng(seed).dirichlet(
        np.ones(proba.shape[1]), len(proba)
    )
    errors = [pc.estimate_error(labels, p, notion, sample_weight=weight) for p in (proba, other)]
    assert [error.kind for error in errors] == ["exact", "exact"]
    change = largest_change(notion, proba, other, sample_weight=weight)
    assert abs(errors[0].value - errors[1].value) <= change + 1e-9


def test_two_classes_are_exact_for_projections_too():
    rng = np.random.default_rng(1)
    for _ in range(20):
        proba, labels = rng.dirichlet(np.ones(2), 30), rng.integers(0, 2, 30)
        other = 0.9 * proba + 0.1 * rng.dirichlet(np.ones(2), 30)
        for notion in (pc.ProjectedSmooth(), pc.FullSmooth(n_floor_draws=0)):
            errors = [pc.estimate_error(labels, p, notion) for p in (proba, other)]
            assert abs(errors[0].value - errors[1].value) <= largest_change(notion, proba, other) + 1e-9


def test_the_bound_is_nearly_reached_where_it_is_one():
    # All rows move together: the mean residual of a set moves as far as its probability, on either side.
    proba, other = np.tile([0.5, 0.5, 0.0], (10, 1)), np.tile([0.4, 0.6, 0.0], (10, 1))
    change = [pc.calibration_error(np.zeros(10, dtype=int), p, pc.SubsetSmooth()) for p in (proba, other)]
    assert abs(np.diff(change)[0]) >= largest_change(pc.SubsetSmooth(), proba, other) / 2 - 1e-12


@pytest.mark.parametrize(
    "notion",
    [pc.Halfspace(), pc.Decision(), pc.Confidence(smooth=True), pc.Classwise(), pc.Canonical()],
    ids=repr,
)
def test_notions_that_jump_are_refused(notion):
    with pytest.raises(ValueError, match="can jump"):
        largest_change(notion, [[0.5, 0.5]], [[0.4, 0.6]])


def test_steeper_families_change_more_and_shapes_must_agree():
    proba, other = [[0.5, 0.5]], [[0.4, 0.6]]
    assert largest_change(pc.Sigmoid(4), proba, other) == pytest.approx(9 * 0.2)
    assert largest_change(pc.LowDegree(4), proba, other) == pytest.approx(5 * 0.2)
    with pytest.raises(TypeError, match="notion must be a notion"):
        largest_change(4, proba, other)
    with pytest.raises(ValueError, match="they must be equal"):
        largest_change(pc.Sigmoid(4), proba, [[0.5, 0.5], [0.5, 0.5]])
