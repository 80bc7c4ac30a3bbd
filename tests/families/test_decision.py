import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference_projected as reference
from tests.strategies import samples

import polycal as pc
from polycal.families.decision import Decision


@settings(max_examples=40, deadline=None)
@given(drawn=samples(max_classes=2, max_rows=7))
def test_two_classes_and_two_actions_are_exact(drawn):
    labels, proba, weight = drawn
    estimate = pc.estimate_error(labels, proba, Decision(), sample_weight=weight)
    assert estimate.kind == "exact"
    assert estimate.value == pytest.approx(reference.decision_error(labels, proba, weight), abs=1e-9)


def test_two_classes_in_single_precision_are_exact():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(300), 7).astype(np.float32)
    proba = np.column_stack([1 - p, p])
    estimate = pc.estimate_error(rng.integers(0, 2, 300), proba, Decision())
    assert estimate.kind == "exact"


def test_predictions_that_losses_cannot_tell_apart_make_a_lower_bound():
    estimate = pc.estimate_error([0, 1], [0.3, 0.1 + 0.2], Decision())
    assert estimate.value <= 2 * 0.5 * np.hypot(0.7, 0.7) + 1e-12
    assert estimate.kind == ("exact" if estimate.value > 0.6 else "lower bound")


def test_tiny_samples_nearly_always_reach_the_best_decisions():
    ratios = []
    for labels, proba in reference.tiny_samples(40, 4):
        best = reference.decision_error(labels, proba)
        estimate = pc.estimate_error(labels, proba, Decision())
        assert estimate.kind == "lower bound"
        assert estimate.value <= best + 1e-9
        ratios.append(estimate.value / best)
    assert np.mean(np.array(ratios) > 0.95) >= 0.95


@settings(max_examples=8, deadline=None)
@given(drawn=samples())
def test_more_actions_find_more(drawn):
    labels, proba, weight = drawn
    values = [
        pc.calibration_error(labels, proba, Decision(actions), sample_weight=weight) for actions in (2, 3, 5)
    ]
    assert np.all(np.diff(values) >= -1e-9)


def test_as_many_actions_as_predictions_see_each_alone():
    # Three corners of the simplex, each with its own residual: three actions can tell them all apart.
    proba = np.repeat(np.eye(3), 2, axis=0)
    labels = np.array([0, 1, 1, 2, 2, 0])
    estimate = pc.estimate_error(labels, proba, Decision(3))
    alone = sum(np.linalg.norm(z) for z in reference.residuals(labels, proba).reshape(3, 2, 3).sum(axis=1))
    assert estimate.value == pytest.approx(alone)


def test_weights_have_length_one_and_losses_decide():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 200)
    estimate = pc.estimate_error(rng.integers(0, 4, 200), proba, Decision(3))
    witness = estimate.witness
    np.testing.assert_allclose(np.linalg.norm(witness.weights, axis=1), 1)
    np.testing.assert_array_equal(witness.actions(proba), np.argmin(proba @ witness.losses.T, axis=1))
    assert witness.losses.shape == (3, 4)


@pytest.mark.parametrize("actions", [1, 2.5, True])
def test_bad_parameters(actions):
    with pytest.raises(ValueError, match="actions must be an integer, at least 2"):
        Decision(actions)


def soft_error(labels, proba, losses, temperature):
    """The definition, action by action and row by row."""
    total = np.zeros(losses.shape)
    for y, v in zip(labels, proba, strict=True):
        chosen = np.exp(-losses @ v / temperature)
        total += np.outer(chosen / chosen.sum(), np.eye(v.size)[y] - v) / len(labels)
    return np.linalg.norm(total, axis=1).sum()


@pytest.mark.parametrize("actions", [2, 4])
def test_soft_actions_are_measured_as_defined(actions):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    estimate = pc.estimate_error(labels, proba, Decision(actions, temperature=0.2))
    witness = estimate.witness
    assert estimate.kind == "lower bound"
    assert np.abs(witness.losses).max() <= 1
    assert estimate.value == pytest.approx(soft_error(labels, proba, witness.losses, 0.2))
    assert witness.correlation(pc.Sample(proba, labels)) == pytest.approx(estimate.value)
    tried = [soft_error(labels, proba, rng.uniform(-1, 1, (actions, 3)), 0.2) for _ in range(100)]
    assert estimate.value > max(tried) - 1e-9


def test_colder_actions_see_more_and_hot_ones_only_the_mean():
    rng = np.random.default_rng(1)
    proba, labels = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    hot, warm, cold = (
        pc.calibration_error(labels, proba, Decision(temperature=t)) for t in (1000.0, 0.3, 0.05)
    )
    mean = np.linalg.norm((np.eye(3)[labels] - proba).mean(axis=0))
    assert hot == pytest.approx(mean, rel=0.01)
    assert hot < warm < cold <= pc.calibration_error(labels, proba, Decision()) * 1.05


def test_soft_witnesses_are_found_saved_and_exported(tmp_path):
    fit, fresh = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    auditor = pc.DecisionAuditor(3, temperature=0.1)
    witness = auditor.find_witness(fit.labels[:3000], fit.proba[:3000])
    assert pc.certify(witness, fresh.labels, fresh.proba).is_significant
    witness.save(tmp_path / "w.polycal")
    proba = fresh.proba[:50].astype(np.float64)
    np.testing.assert_allclose(pc.load(tmp_path / "w.polycal")(proba), witness(proba))
    rows = proba
    for step in witness.to_steps():
        rows = step(rows)
    np.testing.assert_allclose(rows, witness.evaluate(proba), atol=1e-12)


@pytest.mark.parametrize("temperature", [0, -1, np.nan, "warm"])
def test_bad_temperatures(temperature):
    with pytest.raises(ValueError, match="temperature must be a number"):
        Decision(temperature=temperature)
