import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polycal._validation import check_sample
from polycal.families._ascent import distinct_points, into_family, splits, start_directions, stretch


@st.composite
def directions_and_bound(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(2, 6))
    power = draw(st.sampled_from([1, 3]))
    return rng.normal(size=(4, k)) ** power, draw(st.floats(0.05, 7))


def largest_scale(direction, m):
    """The largest s for which some shift puts s * direction into the box and the ball, by bisection."""

    def fits(s):
        low, high = -1 - s * direction.min(), 1 - s * direction.max()
        shift = np.clip(-s * direction.mean(), low, max(low, high))
        return low <= high and ((s * direction + shift) ** 2).sum() <= m

    low, high = 0.0, 2 / np.ptp(direction)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@settings(max_examples=100, deadline=None)
@given(drawn=directions_and_bound())
def test_stretching_shifts_and_scales_as_far_as_the_family_allows(drawn):
    directions, m = drawn
    for direction, stretched in zip(directions, stretch(directions, m), strict=True):
        assert np.abs(stretched).max() <= 1 + 1e-12
        assert (stretched**2).sum() <= m + 1e-9
        scale = np.ptp(stretched) / np.ptp(direction)
        np.testing.assert_allclose(
            stretched - stretched.mean(), scale * (direction - direction.mean()), atol=1e-9
        )
        assert scale == pytest.approx(largest_scale(direction, m), rel=1e-7)


@settings(max_examples=60, deadline=None)
@given(drawn=directions_and_bound())
def test_everything_lands_in_the_family(drawn):
    directions, m = drawn
    landed = into_family(3 * directions, m)
    assert np.abs(landed).max() <= 1 + 1e-12
    assert (landed**2).sum(axis=1).max() <= m + 1e-9


def test_equal_entries_become_zero():
    np.testing.assert_array_equal(stretch(np.full((1, 3), 0.7), 3), np.zeros((1, 3)))
    np.testing.assert_array_equal(stretch(np.array([[1.0, 0.0]]), 0.0), np.zeros((1, 2)))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_splits_are_all_bipartitions(k):
    found = {frozenset(np.flatnonzero(row)) for row in splits(k)}
    assert len(found) == len(splits(k)) == 2 ** (k - 1) - 1
    assert all(0 not in members and members for members in found)


def test_starts_come_in_sets_of_k_and_hold_the_classes():
    rng = np.random.default_rng(0)
    points = distinct_points(check_sample(rng.integers(0, 4, 50), rng.dirichlet(np.ones(4), 50)))
    starts = start_directions(points, n_random=3)
    assert starts.shape == ((3 + 7 + 3) * 4, 4)
    np.testing.assert_array_equal(starts[:4], 2 * np.eye(4) - 1)
