import numpy as np
import pytest
from scipy.sparse import csr_array
from tests import reference_costs

import polycal as pc
from polycal.families.swap import action_sums, choose_swaps, swap_witness


def overconfident(n, seed=0, k=3):
    """Predictions that are sharper than the labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(k), n)
    labels = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    proba = truth**3
    return labels, proba / proba.sum(axis=1, keepdims=True)


ABSTAIN = np.vstack([1 - np.eye(3), np.full(3, 0.4)])


def test_the_correlation_is_what_swaps_save_beyond_what_is_promised():
    labels, proba = overconfident(500)
    loss = pc.make_loss(ABSTAIN, n_classes=3)
    swaps = np.array([3, 3, 2, 3])
    witness = swap_witness(loss, swaps)
    actions = np.array(reference_costs.actions(proba, ABSTAIN))
    promised = np.einsum("ij,ij->i", proba, ABSTAIN[actions] - ABSTAIN[swaps[actions]]).mean()
    saved = reference_costs.saving(labels, proba, ABSTAIN, swaps)
    correlation = witness.width * witness.correlation(pc.Sample(proba, labels))
    assert correlation == pytest.approx(saved - promised, abs=1e-7)
    assert promised <= 0
    assert np.abs(witness(proba)).max() <= 1


def test_swaps_are_chosen_where_they_save():
    labels, proba = overconfident(4000)
    witness = pc.SwapAuditor({"abstain": ABSTAIN}).find_witness(labels, proba)
    assert (witness.swaps[:3] != np.arange(3)).all()
    fresh = overconfident(4000, seed=1)
    assert pc.certify(witness, *fresh).is_significant
    assert " instead of action 0" in witness.describe()


def test_of_several_losses_the_worst_is_found():
    labels, proba = overconfident(2000)
    losses = {"none": np.zeros((2, 3)), "abstain": ABSTAIN}
    witness = pc.SwapAuditor(losses).find_witness(labels, proba)
    assert witness.n_actions == 4
    assert (
        pc.SwapAuditor({"none": np.zeros((2, 3))}).find_witness(labels, proba).describe()
        == "no swap of actions"
    )


def test_rows_may_come_in_any_order_and_weights_count():
    labels, proba = overconfident(300)
    weight = np.random.default_rng(0).integers(1, 3, 300).astype(float)
    twice = np.repeat(np.arange(300), weight.astype(int))
    loss = pc.make_loss(ABSTAIN, n_classes=3)
    weighted = action_sums(pc.Sample(proba, labels, weight), loss)
    repeated = action_sums(pc.Sample(proba[twice], labels[twice]), loss)
    for key in ("outcomes", "residuals"):
        np.testing.assert_allclose(getattr(weighted, key), getattr(repeated, key), atol=1e-9)
    swaps = choose_swaps(ABSTAIN, weighted.outcomes, weighted.squares)
    order = np.random.default_rng(1).permutation(300)
    shuffled = action_sums(pc.Sample(proba[order], labels[order], weight[order]), loss)
    np.testing.assert_array_equal(swaps.instead, choose_swaps(ABSTAIN, *shuffled[:2]).instead)


def test_of_calibrated_predictions_little_is_certified():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(60):
        proba = rng.dirichlet(np.ones(3), 400)
        labels = (proba.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
        witness = pc.SwapAuditor(ABSTAIN).find_witness(labels[:200], proba[:200])
        found += pc.certify(witness, labels[200:], proba[200:]).is_significant
    assert found <= 6


def test_lists_are_refused():
    with pytest.raises(TypeError, match="needs full predictions"):
        pc.SwapAuditor(ABSTAIN).find_witness([0, 1], csr_array([[0.9, 0.0, 0.1], [0.2, 0.8, 0.0]]))
