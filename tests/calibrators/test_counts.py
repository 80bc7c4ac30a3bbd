import numpy as np
import pytest

from polycal._validation import check_sample
from polycal.calibrators.base import counted_rows

PROBA = np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])


def counted(weight):
    return counted_rows(check_sample([0, 1, 1], PROBA, sample_weight=weight))


def test_whole_weights_are_copies():
    sample = counted([2, 0, 1])
    np.testing.assert_array_equal(sample.proba, PROBA[[0, 0, 2]])
    np.testing.assert_array_equal(sample.labels, [0, 0, 1])
    assert sample.sample_weight is None


@pytest.mark.parametrize("weight", [[0.5, 0.5, 0.5], [1.0, 2.5, 1.0], [1000, 1, 1]])
def test_other_weights_stay(weight):
    np.testing.assert_array_equal(counted(weight).sample_weight, weight)


def test_rows_without_weight_go():
    np.testing.assert_array_equal(counted([0.5, 0.0, 0.5]).labels, [0, 1])
