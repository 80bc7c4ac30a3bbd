import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import samples

from polycal._compiled import subset as kernels
from polycal._validation import check_sample
from polycal.families._landscape_lists import plain_landscape
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset


def landscape_and_set(data):
    sample = check_sample(*data[:2], sample_weight=data[2])
    member = np.arange(sample.n_classes) < sample.n_classes // 2
    return sample, plain_landscape(sample), member


@settings(max_examples=60, deadline=None)
@given(samples())
def test_the_value_of_a_set_is_its_smooth_error(data):
    sample, landscape, member = landscape_and_set(data)
    exact = smooth_error(ask_subset(sample, np.flatnonzero(member)))
    assert landscape.at(member).value == pytest.approx(exact, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(samples())
def test_exact_gains_are_those_of_flipping(data):
    _, landscape, member = landscape_and_set(data)
    point = landscape.at(member)
    gains = landscape.exact_gains(point)
    for label in range(landscape.n_classes):
        other = member.copy()
        other[label] ^= True
        assert gains[label] == pytest.approx(landscape.at(other).value - point.value, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(samples())
def test_quick_gains_keep_the_weight_function(data):
    _, landscape, member = landscape_and_set(data)
    point = landscape.at(member)
    order = np.argsort(point.predicted)
    phi = kernels.sorted_weight(point.predicted, point.current, order, 1024)
    grid = np.linspace(0, 1, 1025)
    now = point.current @ np.interp(point.predicted, grid, phi)
    gains = landscape.quick_gains(point)
    for label in range(landscape.n_classes):
        other = member.copy()
        other[label] ^= True
        then = landscape.proba @ other, landscape.residual @ other
        assert gains[label] == pytest.approx(then[1] @ np.interp(then[0], grid, phi) - now, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(samples())
def test_quick_gains_promise_no_more_than_exact_ones(data):
    _, landscape, member = landscape_and_set(data)
    point = landscape.at(member)
    # The function is known at 1025 points: between them it may be off by half their distance.
    assert (landscape.quick_gains(point) <= landscape.exact_gains(point) + 2 / 1024).all()


def test_denormal_probabilities_are_zero_to_the_search():
    proba = np.array([[1.0, 1e-40, 0.0], [0.3, 0.7, 0.0]])
    landscape = plain_landscape(check_sample([0, 1], proba))
    assert landscape.proba.dtype == landscape.residual.dtype == np.float32
    assert landscape.proba[0].tolist() == [1.0, 0.0, 0.0]
