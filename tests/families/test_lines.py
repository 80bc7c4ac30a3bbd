import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import lines

from polycal.families.halfspace import best_scalar_cut, best_vector_cut, crossings, cut_places


def all_cuts(values):
    """Every way to divide the values by a threshold, as masks of those above."""
    return [values >= t for t in [*np.unique(values), np.inf]]


@settings(max_examples=100, deadline=None)
@given(line=lines())
def test_the_best_scalar_cut_is_the_best_of_all(line):
    values, residual = line
    cut = best_scalar_cut(values, residual, min_gap=0.0)
    best = max(abs(residual @ np.where(above, 1, -1)) for above in all_cuts(values))
    assert abs(cut.value) == pytest.approx(best, abs=1e-12)
    attained = residual @ np.where(values >= cut.threshold, 1, -1)
    assert attained == pytest.approx(cut.value, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(line=lines())
def test_the_best_vector_cut_is_the_best_of_all(line):
    values, residual = line
    vectors = np.column_stack([residual, np.cos(np.arange(residual.size)) / residual.size])

    def value(above):
        return np.linalg.norm(vectors[above].sum(axis=0)) + np.linalg.norm(vectors[~above].sum(axis=0))

    cut = best_vector_cut(values, vectors, min_gap=0.0)
    assert cut.value == pytest.approx(max(map(value, all_cuts(values))), abs=1e-12)
    assert value(values >= cut.threshold) == pytest.approx(cut.value, abs=1e-12)


def test_neighbours_in_the_last_digit_can_be_cut_apart_or_kept_together():
    values = np.array([0.3, 0.1 + 0.2])
    places, below = cut_places(values, min_gap=0.0)
    assert below.tolist() == [0, 1, 2]
    assert np.sum(values >= places[1]) == 1
    assert cut_places(values)[1].tolist() == [0, 2]


def test_sides_along_a_line():
    rng = np.random.default_rng(0)
    margin, slopes = rng.normal(size=12), rng.normal(size=(5, 12))
    slopes[0, 3] = 0.0
    order, places = crossings(margin, slopes)
    for j in range(5):
        for step in range(13):
            above = margin + places[j, step] * slopes[j] > 0
            crossed = np.isin(np.arange(12), order[j, :step])
            expected = np.where(crossed, slopes[j] > 0, slopes[j] < 0)
            expected[slopes[j] == 0] = margin[slopes[j] == 0] > 0
            np.testing.assert_array_equal(above, expected)
