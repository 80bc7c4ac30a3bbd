import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import samples

from polycal._validation import check_sample
from polycal.families.subset import found_subset, size_limit

PROBA = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.3, 0.2]])


@pytest.mark.parametrize(
    ("n_classes", "max_size", "limit"),
    [(2, None, 1), (2, 1, 1), (5, None, 4), (5, 1, 1), (5, 2, 4), (5, 9, 4), (6, 2, 2), (6, 3, 5)],
)
def test_size_limit(n_classes, max_size, limit):
    assert size_limit(n_classes, max_size) == limit


def test_the_smaller_side_is_named_where_both_are_allowed():
    sample = check_sample([0, 1], PROBA)
    assert found_subset(sample, np.array([0, 1, 3]), 3, 1).members.tolist() == [2]
    # Two against two: classes 0 and 1 have less probability.
    assert found_subset(sample, np.array([2, 3]), 3, 1).members.tolist() == [0, 1]


def test_under_a_limit_the_set_stays():
    sample = check_sample([0, 1], PROBA)
    assert found_subset(sample, np.array([2, 3]), 2, 1).members.tolist() == [2, 3]


@settings(max_examples=50, deadline=None)
@given(samples(min_classes=3))
def test_a_set_and_its_complement_have_one_error_and_the_witness_attains_it(data):
    labels, proba, weight = data
    sample = check_sample(labels, proba, sample_weight=weight)
    members = np.arange(sample.n_classes // 2)
    others = np.arange(sample.n_classes // 2, sample.n_classes)
    found, other = (found_subset(sample, side, 1, 7) for side in (members, others))
    assert found.value == pytest.approx(other.value, abs=1e-12)
    assert found.witness(sample).correlation(sample) == pytest.approx(found.value, abs=1e-9)
    assert found.n_evaluated == 7
