"""Halfspaces and decisions between two actions of three classes: every line of the plane is tried."""

import pytest
from hypothesis import given, settings
from tests import reference_projected as reference
from tests.strategies import samples

import polycal as pc
from polycal.families.decision import Decision
from polycal.families.halfspace import Halfspace

# The oracle of tiny samples, and which of the errors of `planar_errors`.
NOTIONS = {
    Halfspace(): (reference.halfspace_error, 0),
    Decision(): (reference.decision_error, 1),
}
both = pytest.mark.parametrize("notion", NOTIONS, ids=lambda notion: notion.name)


@both
@settings(max_examples=25, deadline=None)
@given(drawn=samples(min_classes=3, max_classes=3, max_rows=7))
def test_three_classes_are_exact(notion, drawn):
    labels, proba, weight = drawn
    estimate = pc.estimate_error(labels, proba, notion, sample_weight=weight)
    assert estimate.kind == "exact"
    assert estimate.value == pytest.approx(NOTIONS[notion][0](labels, proba, weight), abs=1e-9)


@both
@pytest.mark.parametrize("decimals", [1, 2, 16])
@pytest.mark.parametrize("seed", range(3))
def test_three_classes_try_every_line(notion, decimals, seed):
    labels, proba = reference.planar_sample(60, decimals, seed)
    estimate = pc.estimate_error(labels, proba, notion)
    assert (estimate.kind, estimate.method) == ("exact", "every line")
    expected = reference.planar_errors(labels, proba)[NOTIONS[notion][1]]
    assert estimate.value == pytest.approx(expected, abs=1e-9)


@both
@pytest.mark.parametrize("decimals", [2, 16])
def test_three_classes_of_2000_rows_are_exact(notion, decimals):
    estimate = pc.estimate_error(*reference.planar_sample(2000, decimals), notion)
    assert estimate.kind == "exact"
