import numpy as np
import pytest
from sklearn.base import clone
from tests import reference_kernel as reference

from polycal.families.kernel import KernelAuditor
from polycal.families.low_degree import MonomialWitness
from polycal.families.reduction import LearnerFromAuditor, lift
from polycal.kernels.kernels import Multinomial

SUPPORT = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0]])
MEAN = np.array([0.8, -0.9, 0.3])
MASS = np.array([0.5, 0.3, 0.2])


class Fixed:
    """An auditor that remembers its data and always finds the same witness."""

    def __init__(self, witness):
        self.witness = witness

    def find_witness(self, y_true, y_proba, *, sample_weight=None):
        self.labels, self.proba, self.weight = y_true, y_proba, sample_weight
        return self.witness


def test_lift_stays_on_the_simplex_with_room_on_both_sides():
    lifted = lift(SUPPORT)
    np.testing.assert_allclose(lifted.sum(axis=1), 1)
    assert np.all(lifted[:, :2] >= 1 / 3)
    np.testing.assert_allclose(lifted, SUPPORT / 3 + np.array([1, 1, 0]) / 3)


def test_labels_are_drawn_from_the_hidden_distribution():
    auditor = Fixed(None)
    X, z = np.tile(SUPPORT[:1], (60_000, 1)), np.full(60_000, -0.6)
    LearnerFromAuditor(auditor).fit(X, z)
    frequency = np.bincount(auditor.labels, minlength=3) / 60_000
    np.testing.assert_allclose(frequency, lift(SUPPORT[:1])[0] - 0.2 * np.array([1, -1, 0]), atol=0.01)
    np.testing.assert_array_equal(auditor.proba, lift(X))


def test_the_learner_has_three_halves_of_the_witness_correlation():
    # Whatever the witness, E z h(x) = 3/2 E <y - v, w(v)> over the hidden distribution.
    witness = MonomialWitness(np.array([[0, 2], [1, -1], [2, 2]]), np.array([1.0, -1.0, 1.0]), np.zeros(3), 3)
    h = LearnerFromAuditor(Fixed(witness)).fit(SUPPORT, MEAN).predict(SUPPORT)
    hidden = lift(SUPPORT) + MEAN[:, None] / 3 * np.array([1, -1, 0])
    audited = reference.population_correlation(witness, lift(SUPPORT), MASS, hidden)
    assert np.sum(MASS * MEAN * h) == pytest.approx(1.5 * audited)


def test_the_guarantee_is_carried_through():
    # The auditor promises alpha' / (3 r s) for B(r)^k, where alpha' = 2 alpha / 3 over the lifted predictions.
    kernel = Multinomial(2)
    lifted = lift(SUPPORT)
    z = MASS[:, None] * MEAN[:, None] / 3 * np.array([1, -1, 0])
    audited = np.sqrt(np.maximum(np.diag(z.T @ kernel.block(lifted, lifted) @ z), 0)).sum()
    promised = 1.5 * audited / (3 * np.sqrt(kernel.bound))
    rng = np.random.default_rng(0)
    reached = []
    for seed in range(20):
        row = rng.choice(3, size=1500, p=MASS)
        target = np.where(rng.random(1500) < (1 + MEAN[row]) / 2, 1, -1)
        learner = LearnerFromAuditor(KernelAuditor(kernel, amplify=False), random_state=seed)
        h = learner.fit(SUPPORT[row], target).predict(SUPPORT)
        reached.append(np.sum(MASS * MEAN * h) >= promised)
    assert np.mean(reached) >= 0.95


def test_it_is_a_scikit_learn_estimator():
    learner = clone(LearnerFromAuditor(KernelAuditor(Multinomial(1)), random_state=3))
    X, z = np.tile(SUPPORT, (50, 1)), np.tile(np.sign(MEAN), 50)
    values = learner.fit(X, z, sample_weight=np.ones(150)).predict(SUPPORT)
    assert np.abs(values).max() <= 1
    with pytest.raises(ValueError, match="X has 2 classes but the learner was fitted on 3"):
        learner.predict(np.eye(2))
    with pytest.raises(ValueError, match="random_state"):
        LearnerFromAuditor(KernelAuditor(), random_state=-1).fit(X, z)
