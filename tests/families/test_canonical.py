import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference
from tests.strategies import samples

import polycal as pc


@settings(max_examples=200, deadline=None)
@given(samples())
def test_equals_grouping_by_hand(sample):
    labels, proba, weight = sample
    twice = np.concatenate([labels, labels]), np.concatenate([proba, proba])
    weights = None if weight is None else np.concatenate([weight, weight])
    value = pc.calibration_error(*twice, pc.Canonical(), sample_weight=weights)
    assert value == pytest.approx(reference.canonical_error(labels, proba, weight), abs=1e-12)


def test_distinct_predictions_are_refused_with_the_reason():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    with pytest.raises(ValueError, match="needs repeated predictions: 10 rows hold 10 distinct"):
        pc.calibration_error(np.zeros(10, int), proba, pc.Canonical())


def test_min_repeats_can_be_lowered_to_one_but_not_below():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    assert pc.calibration_error(np.zeros(10, int), proba, pc.Canonical(min_repeats=1)) > 0
    with pytest.raises(ValueError, match="min_repeats"):
        pc.Canonical(min_repeats=0)
