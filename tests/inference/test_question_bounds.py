"""Bounds of a question's error from both sides, evidence, and discoveries."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tests.reference_inference import bentkus_quantile, e_bh

from polycal.inference.question_bounds import Residuals, deviation, discoveries, e_value, error_bounds
from polycal.measures.smooth import projected_error, smooth_error
from polycal.sample import Question


def right(rng, n):
    u = rng.beta(0.5, 0.5, n)
    return u, u


def rare(rng, n):
    u = 0.5 * rng.beta(0.5, 20, n)
    return u, u


def shifted(rng, n):
    u = 0.9 * rng.random(n)
    return u, u + 0.1


def overconfident(rng, n):
    u = 0.5 + 0.5 * np.sqrt(rng.random(n))
    return u, 0.5 + 0.6 * (u - 0.5)


def crossing(rng, n):
    u = rng.random(n)
    return u, u + 0.3 * np.sin(2 * np.pi * u) * np.minimum(u, 1 - u)


DESIGNS = (right, rare, shifted, overconfident, crossing)


def asked(design, n, rng, weight=None):
    u, truth = design(rng, n)
    return Question(u, rng.random(n) < truth, weight, "")


def residuals(question):
    return Residuals.of_question(question, smooth_error(question))


def true_error(design, weigh=np.ones_like):
    u, truth = design(np.random.default_rng(9), 400_000)
    order = np.argsort(u)
    weight = weigh(u)[order]
    return projected_error(u[order], (truth - u)[order] * weight / weight.sum())


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("n", [200, 2000, 100_000])
def test_both_bounds_hold(design, n):
    truth, rng = true_error(design), np.random.default_rng(n)
    repeats = 300 if n <= 2000 else 20
    drawn = [residuals(asked(design, n, rng)) for _ in range(repeats)]
    low, high = error_bounds(drawn, 0.05, 0.05)
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)
    assert np.mean(low > truth + 1e-4) <= allowed
    assert np.mean(high < truth - 1e-4) <= allowed


@pytest.mark.parametrize("design", DESIGNS)
def test_the_upper_bound_is_at_most_twice_as_far_as_normal_theory_says(design):
    rng = np.random.default_rng(0)
    for n in (2000, 20_000):
        one = residuals(asked(design, n, rng))
        (_, high) = error_bounds([one], 0.05, 0.05)[:, 0]
        assert high - one.error <= 2 * norm.ppf(0.95) * np.sqrt((one.square - one.mean**2) / n)


def test_errors_that_are_there_are_shown():
    rng = np.random.default_rng(0)
    for design in (shifted, overconfident):
        low, high = error_bounds([residuals(asked(design, 5000, rng))], 0.05, 0.05)[:, 0]
        assert 0.05 < low < true_error(design) < high < 0.2


@pytest.mark.slow
def test_bounds_hold_for_weighted_rows():
    def weigh(u):
        return np.where(u < 0.5, 1.0, 0.1)

    rng, truth = np.random.default_rng(3), true_error(shifted, weigh)
    drawn = []
    for _ in range(300):
        question = asked(shifted, 1000, rng)
        weighted = Question(question.predicted, question.hits, weigh(question.predicted), "")
        drawn.append(residuals(weighted))
    low, high = error_bounds(drawn, 0.05, 0.05)
    assert np.mean(low > truth + 1e-4) <= 0.05
    assert np.mean(high < truth - 1e-4) <= 0.05
    assert np.median(high) < 0.3


def test_equal_weights_are_no_weights_and_order_does_not_matter():
    question = asked(overconfident, 300, np.random.default_rng(0))
    heavy = Question(question.predicted, question.hits, np.full(300, 7.0), "")
    turned = Question(question.predicted[::-1], question.hits[::-1], None, "")
    expected = error_bounds([residuals(question)], 0.05, 0.05)
    for other in (heavy, turned):
        assert error_bounds([residuals(other)], 0.05, 0.05) == pytest.approx(expected)


def test_opposite_questions_have_the_same_bounds():
    question = asked(crossing, 500, np.random.default_rng(1))
    opposite = Question(1 - question.predicted, ~question.hits, None, "")
    one, other = (error_bounds([residuals(q)], 0.1, 0.1) for q in (question, opposite))
    assert one == pytest.approx(other)


@settings(deadline=None)
@given(
    st.integers(1, 400),
    st.floats(1e-4, 1.0),
    st.floats(1.0, 2.0),
    st.sampled_from([0.05, 0.01, 1e-4]),
)
def test_the_deviation_is_bentkus_or_less(n, variance, largest, level):
    (found,) = deviation(np.array([variance]), np.array([largest]), np.array([n]), level)
    exact = bentkus_quantile(variance, largest, n, level)
    bernstein = np.sqrt(2 * np.log(1 / level) * variance / n) + largest * np.log(1 / level) / (3 * n)
    assert found >= min(exact, bernstein) * (1 - 1e-6)
    assert found <= bernstein * (1 + 1e-9)


def test_tails_of_sums_are_below_the_level():
    # Two values, the worst there are: all outcomes counted.
    for n, chance, level in product((5, 40), (0.02, 0.3), (0.2, 0.01)):
        values = np.array([1.0 - chance, -chance])
        variance = chance * (1 - chance)
        (width,) = deviation(np.array([variance]), values[:1], np.array([n]), level)
        rng = np.random.default_rng(0)
        means = (rng.random((20_000, n)) < chance).mean(axis=1) - chance
        assert np.mean(means >= width) <= level + 3 * np.sqrt(level / 20_000)


def test_no_rows_prove_nothing():
    one = residuals(Question(np.array([0.5]), np.array([True]), None, ""))
    assert error_bounds([one], 0.05, 0.05)[:, 0].tolist() == [0.0, 1.0]
    assert error_bounds([], 0.05, 0.05).shape == (2, 0)


def test_certain_and_right_predictions_are_right_to_within_little():
    hits = np.arange(1000) % 3 == 0
    low, high = error_bounds([residuals(Question(hits.astype(float), hits, None, ""))], 0.05, 0.05)[:, 0]
    assert low == 0.0
    assert 0 < high < 0.02


def test_evidence_has_mean_one_at_most():
    u, level = np.array([0.1, 0.4, 0.9, 0.5, 0.2, 0.7, 0.95, 0.02]), 0.05
    expected = 0.0
    for hits in product([False, True], repeat=u.size):
        answered = np.array(hits)
        chance = np.prod(np.where(answered, u, 1 - u))
        expected += chance * e_value(residuals(Question(u, answered, None, "")), level)
    assert 0 < expected <= 1


def test_evidence_grows_against_wrong_predictions():
    rng = np.random.default_rng(0)
    assert e_value(residuals(asked(shifted, 2000, rng)), 0.05) > 1e6
    assert e_value(residuals(asked(right, 2000, rng)), 0.05) < 20


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e4), max_size=12), st.floats(0.01, 0.5))
def test_discoveries_are_those_of_e_bh(e_values, alpha):
    found, expected = discoveries(e_values, alpha), e_bh(e_values, alpha)
    assert sorted(e for e, f in zip(e_values, found, strict=True) if f) == sorted(
        e for e, f in zip(e_values, expected, strict=True) if f
    )


@pytest.mark.slow
def test_few_discoveries_are_false():
    rng, shares, missed = np.random.default_rng(5), [], []
    for _ in range(100):
        wrong = rng.random(30) < 0.3
        questions = [asked(shifted if one else right, 800, rng) for one in wrong]
        found = np.array(discoveries([e_value(residuals(q), 0.1 / 30) for q in questions], 0.1))
        shares.append((found & ~wrong).sum() / max(found.sum(), 1))
        missed.append(1 - found[wrong].mean())
    assert np.mean(shares) <= 0.1
    assert np.mean(missed) < 0.3
