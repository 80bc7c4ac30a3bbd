"""What makes the betting bounds valid: fair games, and fortunes that are monotone in the mean and the start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_inference as reference

from polycal._compiled import betting as kernels
from polycal.inference.betting import _profile

TWO_POINT = [((0.0, 1.0), 0.7), ((1.0, 1.0), 0.3)]
THREE_POINT = [((0.1, 1.0), 0.5), ((0.4, 1.0), 0.3), ((0.9, 1.0), 0.2)]
WEIGHTED = [((0.0, 0.2), 0.4), ((0.5, 1.0), 0.3), ((0.1, 0.1), 0.3)]


def play(gain, stake, means, starts):
    order = np.ascontiguousarray(gain)[None], np.ascontiguousarray(stake)[None]
    inverse = kernels.inverse_spread(*order)
    return kernels.play(*order, inverse, _profile(), np.atleast_1d(means), np.atleast_1d(starts))


def fortune(gain, stake, mean, start):
    return float(play(gain, stake, mean, start)[0])


@st.composite
def games(draw):
    """(gain, stake): values in [0, 1] of many shapes, times weights of at most 1."""
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.beta(draw(st.sampled_from([0.05, 1.0, 30.0])), draw(st.sampled_from([0.05, 1.0, 30.0])), n)
    if draw(st.booleans()):
        values = np.round(values)
    stake = rng.random(n) ** draw(st.sampled_from([0, 1, 8]))
    return values * stake, stake


@pytest.mark.parametrize("outcomes", [TWO_POINT, THREE_POINT, WEIGHTED], ids=["two", "three", "weighted"])
@pytest.mark.parametrize("start", [0.01, 0.3])
def test_the_game_is_fair(outcomes, start):
    rows, probabilities = zip(*outcomes, strict=True)
    gain, stake = np.average(rows, axis=0, weights=probabilities)
    n = 8 if len(rows) == 2 else 6
    expected = reference.expected_fortune(fortune, rows, probabilities, n, gain / stake, start)
    assert expected == pytest.approx(start, abs=1e-12)
    worse = reference.expected_fortune(fortune, rows, probabilities, n, gain / stake + 0.1, start)
    assert worse < start


@settings(max_examples=300, deadline=None)
@given(games(), st.lists(st.floats(1e-6, 1 - 1e-6), min_size=2, max_size=6), st.floats(1e-9, 0.99))
def test_fortunes_fall_with_the_mean(game, means, start):
    means = np.sort(means)
    final = play(*game, means, np.full(means.size, start))
    assert np.all(np.diff(final) <= 1e-9)
    assert np.all((final >= 0) & (final <= 1))


@settings(max_examples=300, deadline=None)
@given(games(), st.floats(1e-6, 1 - 1e-6), st.lists(st.floats(1e-12, 0.99), min_size=2, max_size=6))
def test_fortunes_rise_with_the_start(game, mean, starts):
    starts = np.sort(starts)
    final = play(*game, np.full(starts.size, mean), starts)
    assert np.all(np.diff(final) >= -1e-9)


@settings(max_examples=100, deadline=None)
@given(games(), st.floats(0.01, 0.99), st.floats(1e-3, 0.9))
def test_fortunes_against_loops(game, mean, start):
    assert fortune(*game, mean, start) == pytest.approx(reference.fortune(*game, mean, start), abs=2e-3)


@settings(max_examples=50, deadline=None)
@given(games(), st.floats(0.01, 0.99), st.floats(1e-6, 0.9))
def test_compiled_equals_interpreted(game, mean, start):
    orders = tuple(np.stack([part, part[::-1]]) for part in game)
    inverse = kernels.inverse_spread.py_func(*orders)
    np.testing.assert_allclose(kernels.inverse_spread(*orders), inverse, rtol=1e-12)
    arguments = (*orders, inverse, _profile(), np.array([mean]), np.array([start]))
    final = kernels.play(*arguments)
    np.testing.assert_allclose(final, kernels.play.py_func(*arguments), atol=1e-9)
    both = [fortune(*game, mean, start), fortune(*(part[::-1] for part in game), mean, start)]
    assert final[0] == pytest.approx(np.mean(both), abs=1e-9)


def test_the_profile_is_concave_in_the_fortune():
    share = (np.arange(_profile().size) / (_profile().size - 1)) ** 2 / 2
    slopes = np.diff(_profile()) / np.diff(share)
    assert np.all(np.diff(slopes) < 0)
    assert slopes[-1] > 0
