"""Repair for those who act by a loss that is known."""

import numpy as np
import pytest
from sklearn.base import clone

import polycal as pc
from polycal.calibrators.audited.rounds import Line, additive
from polycal.sample import Sample

MATRIX = np.array([[0.0, 1.0, 1.0], [20.0, 0.0, 0.0], [2.0, 2.0, 2.0]])


def rows(n, seed=0, factor=15.0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([0.3, 1.0, 1.0], n)
    truth = proba * [factor, 1.0, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    return proba, (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


@pytest.fixture(scope="module")
def fitted():
    return pc.AuditedCalibrator(losses={"triage": MATRIX}, max_rounds=30).fit(*rows(6000))


def test_it_saves_and_never_harms(fitted, tmp_path):
    proba, labels = rows(4000, seed=1)
    repaired = fitted.predict_proba(proba)
    before, after = (pc.decision_cost(labels, p, MATRIX) for p in (proba, repaired))
    assert after < 0.8 * before
    assert pc.brier_score(labels, repaired) < pc.brier_score(labels, proba)
    assert fitted.used_ == "audited"
    losses = [r.loss_after for r in fitted.rounds_ if r.accepted]
    assert losses == sorted(losses, reverse=True)
    assert "instead of action" in fitted.rounds_[0].question
    fitted.save(tmp_path / "model.polycal")
    np.testing.assert_allclose(pc.load(tmp_path / "model.polycal").predict_proba(proba), repaired)


def test_nothing_is_certified_in_the_end(fitted):
    assert fitted.stopped_because_ == "no error above the tolerance was proved"
    proba, labels = rows(4000, seed=2)
    cost = pc.audit(labels, fitted.predict_proba(proba), losses=MATRIX, notions=(), auditors={}).costs[0]
    assert cost.saving.lower_bound <= 0


def test_calibrated_predictions_are_left_alone():
    proba, labels = rows(1500, factor=1.0)
    assert pc.AuditedCalibrator(losses=MATRIX).fit(proba, labels).used_ == "identity"


def test_losses_and_an_auditor_exclude_each_other():
    with pytest.raises(ValueError, match="an auditor or losses, not both"):
        pc.AuditedCalibrator(pc.SubsetAuditor(), losses=MATRIX).fit(*rows(100))
    copy = clone(pc.AuditedCalibrator(losses=MATRIX, update="multiplicative"))
    assert copy.update == "multiplicative"
    with pytest.raises(ValueError, match="columns for 3 classes"):
        pc.AuditedCalibrator(losses=np.zeros((2, 4))).fit(*rows(100))


def test_steps_grow_while_acting_gets_no_dearer():
    # Half of the rows are much too sure; as far as suits them, the others would change their action for a worse one.
    proba = np.repeat([[0.95, 0.05], [0.6, 0.4]], 20, axis=0)
    sample = Sample(proba, np.tile([0] * 11 + [1] * 9, 2))
    line = Line(additive(0.0, 2), sample, np.tile([-1.0, 1.0], (40, 1)))
    costs = 1.0 - np.eye(2)
    assert line.doubled(0.04, 1.0) == 0.16
    assert line.doubled(0.04, 1.0, costs) == 0.08
    assert line.paid(0.08, costs) == pytest.approx(0.45)
    assert line.paid(0.16, costs) == pytest.approx(0.5)
