"""Notions, scores and certificates of lists: what holds for every completion, and for complete lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.reference_lists import completed, ragged, spread, truncated
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.families import questions
from polycal.inference.certificate import class_contributions, read_witness
from polycal.states.sums import ScoreState

NOTIONS = [
    pc.Confidence(),
    pc.Confidence(smooth=True),
    pc.TopLabel(norm="max"),
    pc.TopLabel(smooth=True),
    pc.Classwise(strategy="quantile", reduce="mean"),
    *(pc.Classwise(smooth=True, reduce=reduce) for reduce in ("max", "mean", "sum")),
    pc.SubsetSmooth(),
    pc.SubsetSmooth(max_size=1),
]
by_notion = pytest.mark.parametrize("notion", NOTIONS, ids=repr)


@by_notion
@settings(max_examples=20, deadline=None)
@given(data=samples())
def test_complete_lists_have_the_errors_of_full_predictions(notion, data):
    labels, proba, weight = data
    there = pc.estimate_error(labels, proba, notion, sample_weight=weight)
    lists = truncated(proba, proba.shape[1])
    here = pc.estimate_error(labels, lists, notion, sample_weight=weight)
    assert here.value == pytest.approx(there.value, abs=1e-9)
    assert (here.kind, here.upper) == (there.kind, None)
    assert pc.calibration_error(labels, lists, notion, sample_weight=weight) == here.value
    full, listed = (pc.certify(there.witness, labels, rows, sample_weight=weight) for rows in (proba, lists))
    assert listed.estimate == pytest.approx(full.estimate, abs=1e-9)
    assert listed.lower_bound == pytest.approx(full.lower_bound, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(data=samples())
def test_complete_lists_have_the_scores_of_full_predictions(data):
    labels, proba, weight = data
    lists, options = truncated(proba, proba.shape[1]), {"sample_weight": weight}
    assert pc.accuracy(labels, lists, **options) == pytest.approx(pc.accuracy(labels, proba, **options))
    for score in (pc.brier_score, pc.log_loss):
        exact = score(labels, proba, **options)
        assert score(labels, lists, **options) == pytest.approx((exact, exact), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_every_completion_lies_between_the_ends(data, seed):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    options = {"sample_weight": weight}
    for remainder, top in (("unknown", True), ("anywhere", False)):
        for full in (proba, completed(lists, rng, top=top)):
            for score in (pc.brier_score, pc.log_loss):
                found = score(labels, lists, remainder=remainder, **options)
                assert found.low - 1e-8 <= score(labels, full, **options) <= found.high + 1e-8
            for notion in NOTIONS[5:]:
                found = pc.estimate_error(labels, lists, notion, remainder=remainder, **options)
                exact = pc.calibration_error(labels, full, notion, **options)
                # A search may miss the largest error; what it finds is never more.
                assert (
                    found.value - 1e-8
                    <= exact
                    <= (found.value if found.upper is None else found.upper) + 1e-8
                )


@settings(max_examples=60, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_the_brier_score_reaches_its_ends(data, seed):
    """Nothing is given away: some completion has the least, and some the most."""
    labels, proba, _ = data
    lists = ragged(proba, np.random.default_rng(seed))
    found = pc.brier_score(labels, lists, remainder="anywhere")
    sample = check_sample(labels, lists, remainder="anywhere")
    least, most = spread(lists), lists.toarray()
    for row in np.flatnonzero(sample.rest > 0):
        free = np.setdiff1d(
            np.arange(proba.shape[1]), lists.indices[lists.indptr[row] : lists.indptr[row + 1]]
        )
        if labels[row] in free:
            least[row, free] = 0.0
            least[row, labels[row]] = sample.rest[row]
        others = free[free != labels[row]]
        most[row, others[0] if others.size else free[0]] += sample.rest[row]
    assert pc.brier_score(labels, least / least.sum(axis=1, keepdims=True)) == pytest.approx(
        found.low, abs=1e-6
    )
    assert pc.brier_score(labels, most / most.sum(axis=1, keepdims=True)) == pytest.approx(
        found.high, abs=1e-6
    )


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_a_certificate_never_exceeds_that_of_any_completion(data, seed):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    for remainder, top in (("unknown", True), ("anywhere", False)):
        for notion in (pc.Classwise(smooth=True), pc.SubsetSmooth()):
            witness = pc.estimate_error(labels, lists, notion, remainder=remainder).witness
            sample = check_sample(labels, lists, remainder=remainder)
            least = witness.correlations(sample)
            for full in (proba, completed(lists, rng, top=top)):
                assert (least <= witness.correlations(check_sample(labels, full)) + 1e-8).all()
        found = pc.certify(witness, labels, lists, remainder=remainder, sample_weight=weight)
        assert found.estimate <= pc.certify(witness, labels, proba, sample_weight=weight).estimate + 1e-8


@settings(max_examples=60, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_lists_of_the_most_likely_classes_tell_confidence(data, seed):
    labels, proba, weight = data
    lists = ragged(proba, np.random.default_rng(seed))
    rows = np.sort(proba, axis=1)
    for notion in NOTIONS[:4]:
        # Of equals the listed one counts, which need not be the first.
        if (rows[:, -1] > rows[:, -2]).all():
            found = pc.estimate_error(labels, lists, notion, sample_weight=weight)
            assert found.value == pytest.approx(
                pc.calibration_error(labels, proba, notion, sample_weight=weight), abs=1e-9
            )
            assert found.kind == "exact"


def test_a_share_of_the_rest_may_be_the_most_likely_class():
    top = csr_array([[0.0, 0.2, 0.2, 0.0]])
    sample = check_sample([0], top, remainder="spread")
    assert [x.tolist() for x in sample.top_class()] == [[0], [pytest.approx(0.3)]]
    # Of equals the first: class 0, which is not listed.
    sample = check_sample([0], csr_array([[0.0, 0.25, 0.25, 0.25]]), remainder="spread")
    assert sample.top_class()[0].tolist() == [0]
    assert pc.accuracy([0], csr_array([[0.0, 0.25, 0.25, 0.25]]), remainder="spread") == 1.0


def test_where_the_most_likely_class_is_not_known():
    doubtful = csr_array([[0.9, 0.05, 0.0], [0.2, 0.3, 0.0]])
    with pytest.raises(ValueError, match=r"y_proba\[1\] leaves 0.5 to classes that are not listed"):
        pc.estimate_error([0, 2], doubtful, pc.Confidence(), remainder="anywhere")
    low, high = (
        ScoreState().update([0, 2], doubtful, remainder="anywhere").finish()[name]
        for name in ("accuracy", "accuracy_high")
    )
    assert (low, high) == (0.5, 1.0)


def test_many_classes_are_measured_by_the_likely_ones(monkeypatch):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.full(12, 0.4), 200), rng.integers(0, 12, 200)
    lists = truncated(proba, 4)
    every = pc.Classwise(smooth=True, reduce="sum")
    exact = pc.calibration_error(labels, proba, every)
    whole = pc.estimate_error(labels, lists, every)
    monkeypatch.setattr(questions, "MOST_CLASSES", 5)
    few = pc.estimate_error(labels, lists, every)
    assert few.n_steps == 5
    assert few.value <= whole.value <= exact <= whole.upper <= few.upper


@pytest.mark.parametrize(
    "notion", [pc.Canonical(), pc.ProjectedSmooth(), pc.Sigmoid(), pc.Decision()], ids=repr
)
def test_what_needs_full_predictions_says_so(notion):
    lists = csr_array([[0.5, 0.3, 0.0, 0.0], [0.0, 0.6, 0.2, 0.0]])
    message = "lists only some classes, but .* needs full predictions"
    with pytest.raises(TypeError, match=message):
        pc.estimate_error([0, 1], lists, notion)
    with pytest.raises(TypeError, match=message):
        pc.NotionAuditor(notion).find_witness([0, 1], lists)
    with pytest.raises(TypeError, match="full predictions are needed here"):
        pc.bootstrap_interval([0, 1], lists, pc.Confidence())
    with pytest.raises(TypeError, match="bins of the others are not known"):
        pc.estimate_error([0, 1], lists, pc.Classwise())
    witness = pc.SigmoidAuditor().find_witness([0, 1], np.full((2, 4), 0.25))
    with pytest.raises(TypeError, match="a SigmoidWitness needs full predictions"):
        pc.certify(witness, [0, 1], lists)
    with pytest.raises(TypeError, match=message):
        pc.SigmoidAuditor().find_witness([0, 1], lists)


def overconfident(n=4000, k=30, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.1), n)
    labels = np.where(rng.random(n) < 0.3, rng.integers(0, k, n), proba.argmax(axis=1))
    return labels, truncated(proba, 4)


@pytest.mark.parametrize(
    "auditor", [pc.KernelAuditor(), pc.AutoAuditor(), pc.NotionAuditor(pc.Confidence(smooth=True))]
)
def test_auditors_find_and_certify_in_lists(auditor):
    labels, lists = overconfident()
    witness = auditor.find_witness(labels[:2000], lists[:2000])
    certificate = pc.certify(witness, labels[2000:], lists[2000:])
    assert certificate.lower_bound > 0.05
    fit, judge = (
        check_sample(labels[part], lists[part], remainder="unknown")
        for part in (slice(2000), slice(2000, None))
    )
    reading = read_witness(witness, fit, judge)
    assert 0 < reading.share <= 1
    assert reading.doubt >= 0


def test_a_larger_amplification_is_found_and_classes_add_up():
    labels, lists = overconfident(seed=1)
    plain = pc.KernelAuditor(amplify=False).find_witness(labels[:2000], lists[:2000])
    found = pc.KernelAuditor().find_witness(labels[:2000], lists[:2000])
    assert found.amplification > plain.amplification == 1.0
    sample = check_sample(labels[2000:], lists[2000:], remainder="unknown")
    assert found.correlation(sample) > plain.correlation(sample)
    contributions = class_contributions(found, sample)
    assert contributions.shape == (30,)
    # The rest is what classes add where they are not listed.
    assert contributions.sum() <= found.correlation(sample) + 0.5
