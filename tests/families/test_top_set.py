"""Ranks: is the label among the m most likely?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests import reference
from tests.reference_lists import completed, ragged, spread, truncated
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.sample import ask_top_set


def drawn(seed, n=60, k=6, ties=False):
    rng = np.random.default_rng(seed)
    proba = rng.integers(1, 4, (n, k)) / 1.0 if ties else rng.dirichlet(np.full(k, 0.6), n)
    return rng.integers(0, k, n), proba / proba.sum(axis=1, keepdims=True)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.booleans())
def test_sums_and_answers_are_those_of_sorted_rows(seed, m, ties):
    labels, proba = drawn(seed, n=12, ties=ties)
    question = ask_top_set(check_sample(labels, proba), m)
    total, hits = reference.top_set(labels, proba, m)
    np.testing.assert_allclose(question.predicted, total, atol=1e-12)
    assert question.hits.tolist() == hits.tolist()


@pytest.mark.parametrize("m", [1, 2, 5])
def test_the_error_is_the_supremum_over_lipschitz_weights(m):
    labels, proba = drawn(3)
    total, hits = reference.top_set(labels, proba, m)
    order = np.argsort(total)
    expected = reference.smooth_error_lp(total[order], (hits - total)[order] / total.size)
    assert pc.calibration_error(labels, proba, pc.TopSet(m)) == pytest.approx(expected, abs=1e-8)


def test_one_is_confidence_and_all_are_certain():
    labels, proba = drawn(0)
    expected = pc.calibration_error(labels, proba, pc.Confidence(smooth=True))
    assert pc.calibration_error(labels, proba, pc.TopSet(1)) == pytest.approx(expected)
    for m in (6, 9):
        assert pc.calibration_error(labels, proba, pc.TopSet(m)) == pytest.approx(0.0, abs=1e-12)


def test_the_witness_has_the_error_as_its_correlation():
    labels, proba = drawn(1)
    estimate = pc.estimate_error(labels, proba, pc.TopSet(3))
    sample = check_sample(labels, proba)
    assert estimate.witness.correlation(sample) == pytest.approx(estimate.value, abs=1e-6)
    residual = np.eye(6)[labels] - proba
    by_hand = np.einsum("ij,ij->i", residual, estimate.witness(proba))
    np.testing.assert_allclose(estimate.witness.correlations(sample), by_hand, atol=1e-9)
    assert estimate.witness.describe() == "is it among the 3 most likely?"


def test_lists_of_the_most_likely_classes_tell_it():
    labels, proba = drawn(2)
    listed = truncated(proba, 3)
    for m in (2, 3):
        estimate = pc.estimate_error(labels, listed, pc.TopSet(m))
        assert estimate.kind == "exact"
        assert estimate.value == pytest.approx(pc.calibration_error(labels, proba, pc.TopSet(m)), abs=1e-9)
    short = pc.estimate_error(labels, listed, pc.TopSet(4))
    assert short.kind == "lower bound"
    assert 0 <= short.value <= pc.calibration_error(labels, proba, pc.TopSet(4)) <= short.upper < 1


@settings(max_examples=25, deadline=None)
@given(samples(min_classes=3), st.integers(0, 1000), st.integers(2, 5))
def test_every_completion_of_lists_lies_in_the_interval(data, seed, m):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    for remainder, top in (("unknown", True), ("anywhere", False)):
        sample = check_sample(labels, lists, remainder=remainder, sample_weight=weight)
        question = ask_top_set(sample, m)
        (low, high), sure = question.ranges, True if question.unsure is None else ~question.unsure
        state = pc.QuestionState(top=m).update(labels, lists, weight, remainder=remainder).finish()
        estimate = pc.TopSet(m).estimate(sample)
        upper = estimate.value if estimate.upper is None else estimate.upper
        full = completed(lists, rng, top=top)
        # Of equals, those that are listed come first.
        full[~np.isin(np.arange(full.size), entries(lists)).reshape(full.shape)] *= 1 - 1e-9
        total, hits = reference.top_set(labels, full, m)
        assert (low - 1e-7 <= total).all()
        assert (total <= high + 1e-7).all()
        assert (hits == question.hits)[sure].all()
        exact = pc.calibration_error(labels, full, pc.TopSet(m), sample_weight=weight)
        assert estimate.value - 1e-7 <= exact <= upper + 1e-7
        assert state.low - 1e-7 <= exact <= state.high + 1e-7
        assert state.frequency == pytest.approx(np.average(question.answers, weights=weight))
        gains = estimate.witness.correlations(check_sample(labels, full, sample_weight=weight))
        assert (estimate.witness.correlations(sample) <= gains + 1e-7).all()


def entries(lists):
    """The places of listed classes in the full rows."""
    rows = np.repeat(np.arange(lists.shape[0]), np.diff(lists.indptr))
    return rows * lists.shape[1] + lists.indices


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.booleans())
def test_where_nothing_is_hidden_lists_are_full_predictions(seed, m, ties):
    labels, proba = drawn(seed, n=12, ties=ties)
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    zeros = np.where(rng.random(proba.shape) < 0.4, 0.0, proba) + 1e-3 * np.eye(6)[proba.argmax(axis=1)]
    zeros /= zeros.sum(axis=1, keepdims=True)
    # In a shared rest, rounding decides between equals.
    cases = [(csr_array(zeros), "unknown", zeros), (truncated(zeros, 6), "unknown", zeros)]
    for given_lists, remainder, full in cases if ties else [*cases, (lists, "spread", spread(lists))]:
        question = ask_top_set(check_sample(labels, given_lists, remainder=remainder), m)
        total, hits = reference.top_set(labels, full, m)
        assert question.low is None
        np.testing.assert_allclose(question.predicted, total, atol=1e-12)
        assert question.hits.tolist() == hits.tolist()


def test_states_ask_it_of_chunks():
    labels, proba = drawn(4)
    whole = pc.QuestionState(top=2).update(labels, proba).finish()
    first, second = (
        pc.QuestionState(top=2).update(labels[part], proba[part]) for part in (slice(25), slice(25, None))
    )
    assert first.merge(second).finish().value == pytest.approx(whole.value)
    assert whole.value == pytest.approx(pc.calibration_error(labels, proba, pc.TopSet(2)))
    with pytest.raises(ValueError, match="top"):
        pc.QuestionState(top=2).update(labels, proba).merge(pc.QuestionState(top=3).update(labels, proba))


def test_audits_search_and_read_it():
    made = pc.datasets.make_temperature(2000, 8, temperature=0.5, random_state=0)
    audit = pc.audit(made.labels, made.proba, notions=[pc.TopSet(3)])
    found = next(f for f in audit.findings if f.source == "top-set")
    assert found.is_question
    assert found.significant
    assert found.reading.question == "is it among the 3 most likely?"
    assert [q.name for q in audit.ranks] == ["top 2", "top 3", "top 5"]
    by_name = {q.name: q for q in audit.ranks}
    assert by_name["top 3"].smooth_error == pytest.approx(audit.errors[0].estimate.value)
    assert by_name["top 2"].at_least > 0
    assert 0 < found.at_least < found.at_most == by_name["top 3"].at_most


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="m must be an integer, at least 1"):
        pc.TopSet(0)
    with pytest.raises((TypeError, ValueError), match="m must be"):
        pc.TopSet(2.5)
