from itertools import product

import numpy as np
import pytest
from tests import reference_hardness as reference

from polycal.hardness.pseudorandom import KEPT, ClauseSpread, clause_spread, pair_form
from polycal.hardness.xor import XorInstance, make_random_xor

pytest.importorskip("cvxpy", reason="the semidefinite check is an extra")


def largest_mean_square(instance):
    return max(np.mean(instance.sums(z) ** 2) for z in product([-1, 1], repeat=instance.n_variables))


def test_the_form_is_the_mean_square():
    instance = make_random_xor(6, 3, 40)
    form = pair_form(instance)
    for z in ([1, 1, -1, 1, -1, -1], [1] * 6):
        assert np.mean(instance.sums(z) ** 2) == pytest.approx(3 + np.array(z) @ form @ np.array(z))


@pytest.mark.parametrize("seed", range(6))
def test_the_bounds_hold_the_truth(seed):
    instance = make_random_xor(8, 3, 30, random_state=seed)
    spread, truth = clause_spread(instance), largest_mean_square(instance)
    assert spread.reached <= truth + 1e-9
    assert truth <= spread.relaxed + 1e-6
    assert spread.at_least <= truth + 1e-6
    assert KEPT * spread.relaxed <= truth + 1e-6


def test_signs_may_reach_less_than_grothendieck_promises_for_two_sets_of_them():
    instance, vectors = reference.icosahedral_clauses()
    relaxed = 2 + float(np.sum(pair_form(instance) * (vectors @ vectors.T)))
    truth = reference.icosahedral_spread()
    assert truth == pytest.approx(2.240896, abs=1e-6)
    # The factor of Grothendieck's inequality, at most 1.7823, is not enough for the excess over t.
    assert (relaxed - 2) / (truth - 2) > 1.7823
    assert KEPT * relaxed <= ClauseSpread(relaxed, truth, 2).at_least <= truth


@pytest.mark.parametrize("seed", range(3))
def test_random_clauses_have_small_sums_for_every_assignment(seed):
    # The lemma on q(c), which the relaxation bounds from above.
    t = 6
    instance = make_random_xor(10, t, 4000, random_state=seed)
    assert t <= largest_mean_square(instance) <= clause_spread(instance).relaxed + 1e-6
    assert clause_spread(instance).relaxed <= 2 * t * np.log(t)


@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_few_clauses_of_a_spread_out_set_have_a_large_sum(delta):
    # Markov's inequality, with what is known of a set that the program lets pass: its relaxation.
    instance = make_random_xor(10, 6, 4000)
    largest = (clause_spread(instance).relaxed / delta) ** 0.5
    for z in list(product([-1, 1], repeat=10))[::97]:
        assert np.mean(np.abs(instance.sums(np.array(z))) >= largest) <= delta


def test_structure_is_told_from_randomness():
    random = make_random_xor(10, 4, 2000)
    # Every clause uses variables without negation: all equal signs reach the largest sum.
    plain = XorInstance(random.literals % 10, random.signs, 10)
    assert clause_spread(plain).at_least > 2 * clause_spread(random).relaxed


@pytest.mark.parametrize("wrong", [{"n_roundings": 0}, {"random_state": -1}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        clause_spread(make_random_xor(4, 2, 5), **wrong)
