import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tests import reference_inference as reference

from polycal.inference.bounds import empirical_bernstein_bound, mean_interval, mean_lower_bound, mean_p_value

# Name: (draw n values of [0, 1], their true mean).
DISTRIBUTIONS = {
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "fair coin": (lambda rng, n: (rng.random(n) < 0.5).astype(float), 0.5),
    "rarely 1": (lambda rng, n: (rng.random(n) < 0.05).astype(float), 0.05),
    "rarely 0": (lambda rng, n: (rng.random(n) < 0.95).astype(float), 0.95),
    "skewed": (lambda rng, n: rng.beta(0.2, 2.0, n), 0.2 / 2.2),
    "narrow": (lambda rng, n: rng.beta(200, 300, n), 0.4),
    "near-degenerate": (lambda rng, n: np.where(rng.random(n) < 0.01, 0.0, 0.6), 0.594),
}


@st.composite
def weighted_values(draw):
    """(values in [-1, 1], weights or None)."""
    n = draw(st.integers(1, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = 2 * rng.beta(draw(st.sampled_from([0.1, 1.0, 9.0])), draw(st.sampled_from([0.1, 2.0])), n) - 1
    if draw(st.booleans()):
        values = np.round(values, 1)
    weight = rng.integers(0, 4, n).astype(float) if draw(st.booleans()) else None
    if weight is not None:
        weight[rng.integers(0, n)] = 1.0
    return values, weight


@settings(max_examples=60, deadline=None)
@given(weighted_values())
def test_row_order_does_not_matter(drawn):
    values, weight = drawn
    order = np.random.default_rng(0).permutation(values.size)
    shuffled = None if weight is None else weight[order]
    options = {"low": -1, "high": 1}
    assert mean_lower_bound(values[order], weight=shuffled, **options) == mean_lower_bound(
        values, weight=weight, **options
    )
    assert mean_p_value(values[order], weight=shuffled, **options) == mean_p_value(
        values, weight=weight, **options
    )


@settings(max_examples=100, deadline=None)
@given(weighted_values(), st.floats(0.001, 0.3))
def test_the_interval_holds_the_mean_and_stays_in_range(drawn, alpha):
    values, weight = drawn
    low, high = mean_interval(values, low=-1, high=1, alpha=2 * alpha, weight=weight)
    assert -1 <= low <= np.average(values, weights=weight) + 1e-12
    assert np.average(values, weights=weight) - 1e-12 <= high <= 1
    assert low == mean_lower_bound(values, low=-1, high=1, alpha=alpha, weight=weight)


@settings(max_examples=100, deadline=None)
@given(weighted_values(), st.floats(0.001, 0.5), st.floats(-0.9, 0.9))
def test_bound_and_p_value_agree(drawn, alpha, null):
    values, weight = drawn
    bound = mean_lower_bound(values, low=-1, high=1, alpha=alpha, weight=weight)
    p_value = mean_p_value(values, low=-1, high=1, null=null, weight=weight)
    # The bound is rounded down by a thousandth of the standard error, the p-value up by a thousandth of itself.
    if bound > null:
        assert p_value <= 1.002 * alpha
    if p_value <= alpha:
        assert bound >= min(null, np.average(values, weights=weight)) - 2e-3


@settings(max_examples=50, deadline=None)
@given(weighted_values(), st.floats(0.1, 5.0), st.floats(-3, 3))
def test_scale_and_shift(drawn, scale, shift):
    values, weight = drawn
    bound = mean_lower_bound(values, low=-1, high=1, weight=weight)
    moved = mean_lower_bound(scale * values + shift, low=shift - scale, high=shift + scale, weight=weight)
    assert moved == pytest.approx(scale * bound + shift, abs=0.02 * scale)


@settings(max_examples=50, deadline=None)
@given(weighted_values())
def test_weights(drawn):
    values, weight = drawn
    weight = np.ones(values.size) if weight is None else weight
    bound = mean_lower_bound(values, low=-1, high=1, weight=weight)
    assert mean_lower_bound(values, low=-1, high=1, weight=4 * weight) == bound
    kept = weight > 0
    assert mean_lower_bound(values[kept], low=-1, high=1, weight=weight[kept]) == bound
    assert mean_lower_bound(values, low=-1, high=1, weight=np.full(values.size, 3)) == pytest.approx(
        mean_lower_bound(values, low=-1, high=1), abs=1e-12
    )


def test_a_row_of_weight_two_proves_less_than_two_rows():
    values = np.random.default_rng(0).uniform(-1, 1, 200)
    doubled = mean_lower_bound(values, low=-1, high=1, weight=np.full(200, 2.0))
    assert doubled < mean_lower_bound(np.repeat(values, 2), low=-1, high=1)


@settings(max_examples=50, deadline=None)
@given(weighted_values(), st.floats(0.001, 0.5))
def test_maurer_and_pontil(drawn, alpha):
    values = np.append(drawn[0], 0.0)
    expected = reference.maurer_pontil(values, alpha, -1, 1)
    assert empirical_bernstein_bound(values, low=-1, high=1, alpha=alpha) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 2, 20])
def test_constant_values(n):
    assert mean_lower_bound(np.full(n, -1.0), low=-1, high=1) == -1
    assert (-1 if n == 1 else -0.95) <= mean_lower_bound(np.full(n, 1.0), low=-1, high=1) <= 1
    assert mean_p_value(np.full(n, -1.0), low=-1, high=1, null=-1) == 1
    assert mean_p_value(np.full(n, 0.5), low=-1, high=1, null=-1) < 1e-100
    assert mean_p_value(np.full(n, 1.0), low=-1, high=1, null=1) == 1


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [100, 2000])
def test_tighter_than_other_bounds(name, n):
    draw, _ = DISTRIBUTIONS[name]
    rng = np.random.default_rng(n)
    ours, theirs, plug_in = 0.0, 0.0, 0.0
    for _ in range(20):
        values = draw(rng, n)
        ours += values.mean() - mean_lower_bound(values, low=0, high=1)
        theirs += values.mean() - empirical_bernstein_bound(values, low=0, high=1)
        plug_in += values.mean() - reference.plug_in_bound(values, 0.05, 0, 1)
    assert ours < 0.7 * theirs
    assert ours < 1.15 * plug_in


@pytest.mark.parametrize(("n", "factor"), [(100, 1.25), (1000, 1.15), (10_000, 1.09), (100_000, 1.06)])
@pytest.mark.parametrize("name", ["uniform", "fair coin"])
def test_close_to_the_central_limit_theorem(name, n, factor):
    draw, _ = DISTRIBUTIONS[name]
    rng = np.random.default_rng(n)
    ratios = []
    for _ in range(max(2, min(30, 20_000 // n))):
        values = draw(rng, n)
        normal = norm.ppf(0.95) * values.std(ddof=1) / np.sqrt(n)
        ratios.append((values.mean() - mean_lower_bound(values, low=0, high=1)) / normal)
    assert 0.95 < np.mean(ratios) < factor


def test_strong_evidence_gives_tiny_p_values():
    values = np.random.default_rng(0).uniform(-0.9, 1, 2000)
    p_value = mean_p_value(values, low=-1, high=1)
    normal = norm.sf(values.mean() / values.std() * np.sqrt(2000))
    assert normal < p_value < 30 * normal


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize(("n", "n_runs"), [(20, 2000), (200, 1000), (2000, 300)])
def test_coverage(name, n, n_runs):
    draw, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng(n)
    missed = sum(
        mean_lower_bound(draw(rng, n), low=0, high=1, random_state=run) > mean for run in range(n_runs)
    )
    assert missed / n_runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_p_values_are_valid(name):
    draw, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng(7)
    p = np.array([mean_p_value(draw(rng, 300), low=0, high=1, null=mean) for _ in range(1000)])
    for level in (0.01, 0.05, 0.2, 0.5):
        assert np.mean(p <= level) <= level + 3 * np.sqrt(level * (1 - level) / p.size)


@pytest.mark.slow
def test_coverage_of_a_weighted_mean():
    # E[w x] / E[w] where x is 1 with probability 1 / (1 + w).
    mean = (0.5 / 1.5 + 1 / 2 + 3 / 4) / (0.5 + 1 + 3)
    rng = np.random.default_rng(3)
    missed = 0
    for run in range(1500):
        weight = rng.choice([0.5, 1.0, 3.0], 200)
        values = (rng.random(200) < 1 / (1 + weight)).astype(float)
        missed += mean_lower_bound(values, low=0, high=1, weight=weight, random_state=run) > mean
    assert missed / 1500 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1500)


GOOD = {"values": [0.1, 0.2], "low": 0, "high": 1}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"values": [0.1, 2.0]}, r"values\[1\] is 2, outside \[0, 1\]"),
        ({"values": [np.nan]}, r"values\[0\] is nan"),
        ({"values": []}, "values must be numbers"),
        ({"values": [[0.1]]}, r"values must be numbers, of shape \(n,\)"),
        ({"values": ["a"]}, "values must be numbers"),
        ({"high": 0}, "high must be a number"),
        ({"low": None}, "low must be a number"),
        ({"alpha": 0}, "alpha must be a number"),
        ({"alpha": 1}, "alpha must be a number"),
        ({"weight": [1.0]}, "weight has 1 entries"),
        ({"weight": [1.0, -1.0]}, r"weight\[1\] is negative"),
        ({"random_state": -1}, "random_state must be an integer"),
    ],
)
def test_bad_input(bad, message):
    with pytest.raises(ValueError, match=message):
        mean_lower_bound(**(GOOD | bad))


def test_bad_null_and_too_few_values():
    with pytest.raises(ValueError, match="null must be a number from 0 to 1"):
        mean_p_value([0.1], low=0, high=1, null=2)
    with pytest.raises(ValueError, match="number of values must be an integer, at least 2"):
        empirical_bernstein_bound([0.1], low=0, high=1)
