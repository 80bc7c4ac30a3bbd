import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.families.full_smooth import FullSmooth, FullSmoothWitness
from polycal.storage.saved import packed, unpacked

pytest.importorskip("ot")


def find(labels, proba, weight=None):
    return pc.estimate_error(labels, proba, FullSmooth(n_floor_draws=0), sample_weight=weight)


@settings(max_examples=60, deadline=None)
@given(samples())
def test_the_witness_attains_the_error(drawn):
    labels, proba, weight = drawn
    estimate = find(labels, proba, weight)
    sample = check_sample(labels, proba, sample_weight=weight)
    assert estimate.witness.correlation(sample) == pytest.approx(estimate.value, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(samples(), st.integers(0, 2**32 - 1))
def test_on_the_whole_simplex_it_is_lipschitz_and_in_range(drawn, seed):
    labels, proba, weight = drawn
    witness = find(labels, proba, weight).witness
    rng = np.random.default_rng(seed)
    here = rng.dirichlet(np.full(proba.shape[1], 0.5), 30)
    there = np.where(rng.random((30, 1)) < 0.5, rng.dirichlet(np.ones(proba.shape[1]), 30), proba[0])
    change = np.abs(witness(here) - witness(there)).max(axis=1)
    assert np.all(change <= np.abs(here - there).sum(axis=1) + 1e-12)
    assert np.all(np.abs(witness(here)) <= 1)


def test_a_class_that_never_occurs_has_the_constant_weight_minus_one():
    proba = np.full((4, 3), 1 / 3)
    witness = find([0, 1, 0, 1], proba).witness
    np.testing.assert_array_equal(witness(np.eye(3))[:, 2], -1)


def test_equal_predictions_are_stored_once():
    proba = np.repeat([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], 10, axis=0)
    assert find(np.arange(20) % 3, proba).witness.heights.size <= 6


def test_the_state_rebuilds_the_witness():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 100)
    witness = find(rng.integers(0, 5, 100), proba).witness
    again = unpacked(*packed(witness))
    assert isinstance(again, FullSmoothWitness)
    np.testing.assert_array_equal(again(proba), witness(proba))
    assert again.describe() == witness.describe()
    assert "100 predictions stored" in witness.describe()
