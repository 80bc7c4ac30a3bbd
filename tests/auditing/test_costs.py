"""What acting costs, in an audit: the oracle's numbers, intervals that hold, swaps that are proven elsewhere."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests import reference_costs

import polycal as pc

NAMES = ("sick", "tired", "well")
TRIAGE = {"treat": {"sick": 0, "default": 1}, "wait": {"sick": 20, "default": 0}, "ask": 2}
MATRIX = np.array([[0.0, 1.0, 1.0], [20.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
QUICK = {"notions": (), "auditors": {}}


def rows(n, seed=0, doubled=1.0):
    """Predictions and labels, of which the first class comes more often than predicted."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([0.3, 1.0, 1.0], n)
    truth = proba * [doubled, 1.0, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    return (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), proba


def audited(labels, proba, **options):
    return pc.audit(labels, proba, class_names=NAMES, losses={"triage": TRIAGE}, **QUICK | options).costs[0]


def test_means_are_those_of_the_oracle():
    labels, proba = rows(400)
    weight = np.random.default_rng(1).integers(1, 4, 400).astype(float)
    cost = audited(labels, proba, sample_weight=weight)
    promised, paid = reference_costs.costs(labels, proba, MATRIX, weight)
    assert cost.promised.value == pytest.approx(promised)
    assert cost.paid.value == pytest.approx(paid)
    assert cost.excess.value == pytest.approx(paid - promised)
    assert (cost.name, cost.actions) == ("triage", ("treat", "wait", "ask"))
    assert sum(a.share * a.paid for a in cost.by_action) == pytest.approx(paid)
    assert sum(a.share * a.promised for a in cost.by_action) == pytest.approx(promised)
    for mean in (cost.promised, cost.paid, cost.excess):
        assert mean.at_least <= mean.value <= mean.at_most


def test_a_swap_that_saves_is_found_and_certified():
    labels, proba = rows(6000, doubled=6.0)
    cost = audited(labels, proba)
    assert [(s.action, s.instead) for s in cost.swaps] == [("wait", "treat")]
    assert cost.excess.at_least > 0
    assert 0 < cost.saving.lower_bound < cost.saving.estimate
    assert cost.saving.is_significant
    assert cost.saving.witness.describe() == "treat instead of wait"
    assert cost.saving.estimate == pytest.approx(sum(s.share * s.saving for s in cost.swaps))
    assert "treat instead of wait: saves at least" in str(cost.saving)


def test_what_a_calibrator_saves_is_paired():
    fit, fresh = rows(4000, seed=1, doubled=6.0), rows(4000, doubled=6.0)
    calibrator = pc.VectorScaling().fit(fit[1], fit[0], class_names=NAMES)
    audit = pc.audit(*fresh, class_names=NAMES, losses={"triage": TRIAGE}, calibrator=calibrator, **QUICK)
    after, repaired = audit.after.costs[0], audit.costs[0].recalibrated
    assert repaired.paid.value == pytest.approx(after.paid.value)
    assert repaired.promised.value == pytest.approx(after.promised.value)
    assert repaired.saving.estimate == pytest.approx(audit.costs[0].paid.value - after.paid.value)
    assert repaired.saving.lower_bound > 0.1
    assert after.recalibrated is None


def test_two_classes_and_few_rows():
    cost = pc.audit([0, 1, 1], [0.2, 0.8, 0.4], losses=[[0, 1], [1, 0]], **QUICK).costs[0]
    assert cost.saving is None
    assert cost.swaps == ()
    assert (cost.name, cost.paid.value) == ("loss", pytest.approx(1 / 3))
    with pytest.raises(ValueError, match=r"^losses\['a'\] has no cost"):
        pc.audit([0, 1], [[0.5, 0.5]] * 2, losses={"a": {0: 1}})


def test_costs_are_plain_data_and_absent_unless_asked_for():
    labels, proba = rows(200)
    audit = pc.audit(labels, proba, class_names=NAMES, losses={"triage": TRIAGE}, **QUICK)
    found = audit.to_dict()["costs"][0]
    assert found["actions"] == ["treat", "wait", "ask"]
    assert set(found["paid"]) == {"value", "at_least", "at_most"}
    assert pc.audit(labels, proba, **QUICK).to_dict()["costs"] == []


def test_lists_are_refused():
    with pytest.raises(ValueError, match="losses need full predictions"):
        pc.audit([0, 1], csr_array([[0.9, 0.0, 0.1], [0.2, 0.8, 0.0]]), losses=MATRIX)


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ({"a": {"b": {"c": 1}}}, r"losses\['a'\]\['b'\] holds 'c', which is not one of the class names"),
        ({"a": np.zeros((2, 4))}, r"losses\['a'\] has 4 columns for 3 classes"),
        ({}, "losses is empty"),
        ("triage.yaml", "must hold numbers"),
    ],
)
def test_bad_losses_are_named(losses, words):
    with pytest.raises((ValueError, TypeError), match=words):
        pc.audit(*rows(50), class_names=NAMES, losses=losses, **QUICK)


def test_bounds_hold_together():
    # At alpha 0.5, costs get 0.075 of it; 100 audits of a population of 40 predictions.
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.3, 1.0, 1.0], 40)
    truth = proba * [3.0, 1.0, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    actions = np.array(reference_costs.actions(proba, MATRIX))
    promised = np.einsum("ij,ij->i", proba, MATRIX[actions]).mean()
    paid = np.einsum("ij,ij->i", truth, MATRIX[actions]).mean()
    wrong = 0
    for _ in range(100):
        picked = rng.integers(0, 40, 300)
        labels = (truth[picked].cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
        cost = audited(labels, proba[picked], alpha=0.5)
        swaps = cost.saving.witness.swaps
        saved = np.einsum("ij,ij->i", truth, MATRIX[actions] - MATRIX[swaps[actions]]).mean()
        truths = ((cost.promised, promised), (cost.paid, paid), (cost.excess, paid - promised))
        bad = any(not m.at_least <= value <= m.at_most for m, value in truths)
        wrong += bad or cost.saving.lower_bound > saved + 1e-9
    assert wrong <= 12
