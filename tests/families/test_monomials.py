import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_kernel as reference
from tests.strategies import samples

from polycal._validation import check_sample
from polycal.families.low_degree import best_monomials


@settings(max_examples=150, deadline=None)
@given(samples(max_classes=4), st.integers(0, 4))
def test_branch_and_bound_loses_nothing(drawn, degree):
    labels, proba, weight = drawn
    found = best_monomials(check_sample(labels, proba, sample_weight=weight), degree, 10**6)
    assert found.is_exact
    expected = reference.low_degree_error(labels, proba, degree, weight)
    assert np.abs(found.correlations).sum() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(samples(min_classes=3), st.integers(1, 4), st.integers(1, 4))
def test_a_narrow_search_is_below_and_says_so(drawn, degree, max_terms):
    labels, proba, weight = drawn
    sample = check_sample(labels, proba, sample_weight=weight)
    narrow, wide = best_monomials(sample, degree, max_terms), best_monomials(sample, degree, 10**6)
    assert np.all(np.abs(narrow.correlations) <= np.abs(wide.correlations) + 1e-12)
    if narrow.is_exact:
        np.testing.assert_allclose(np.abs(narrow.correlations), np.abs(wide.correlations), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(samples(), st.integers(0, 3))
def test_factors_and_signs_give_the_correlations(drawn, degree):
    labels, proba, weight = drawn
    found = best_monomials(check_sample(labels, proba, sample_weight=weight), degree, 50)
    z = reference.residual(labels, proba, weight) / (len(labels) if weight is None else weight.sum())
    for c, factors in enumerate(found.factors):
        monomial = np.prod(proba[:, factors[factors >= 0]], axis=1)
        assert np.sum(z[:, c] * monomial) == pytest.approx(found.correlations[c], abs=1e-12)


def test_few_of_many_monomials_are_tried():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(30, 0.1), 2000)
    labels = (proba.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    found = best_monomials(check_sample(labels, proba), 4, 5000)
    assert found.is_exact
    assert found.n_tried < 0.1 * 30 * 46376
