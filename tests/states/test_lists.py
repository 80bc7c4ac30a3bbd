"""States of lists: what they tell about questions, and what not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.reference_lists import completed, ragged, spread, truncated
from tests.states.catalogue import everything
from tests.strategies import samples

import polycal as pc
from polycal import sparse
from polycal.states.certificate import ReadingState
from polycal.states.lists import TruncatedQuestionState
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import ScoreState


@settings(max_examples=80, deadline=None)
@given(data=samples(), n_listed=st.integers(1, 6), size=st.integers(1, 5))
def test_the_error_before_truncation_lies_in_the_range(data, n_listed, size):
    labels, proba, weight = data
    subset = list(range(min(size, proba.shape[1])))
    exact = pc.smooth_calibration_error(labels, proba, subset=subset, sample_weight=weight)
    found = TruncatedQuestionState(subset).update(labels, truncated(proba, n_listed), weight).finish()
    assert found.low - 1e-9 <= exact <= found.high + 1e-9
    if n_listed >= proba.shape[1]:
        assert found.unknown == 0
        assert found.value == pytest.approx(exact, abs=2.0**-16)


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_every_completion_lies_in_the_range(data, seed):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    for remainder, top in (("unknown", True), ("anywhere", False)):
        found = TruncatedQuestionState([0, 2], remainder=remainder).update(labels, lists, weight).finish()
        full = completed(lists, rng, top=top)
        exact = pc.smooth_calibration_error(labels, full, subset=[0, 2], sample_weight=weight)
        assert found.low - 1e-8 <= exact <= found.high + 1e-8
        # In memory the interval is no wider, but for the cells.
        sharp = sparse.smooth_calibration_error(
            labels, lists, subset=[0, 2], remainder=remainder, sample_weight=weight
        )
        assert found.low <= sharp.low + 2.0**-15
        assert found.high >= sharp.high - 2.0**-15


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_spread_is_the_error_of_the_filled_matrix(data, seed):
    labels, proba, weight = data
    lists = ragged(proba, np.random.default_rng(seed))
    exact = pc.smooth_calibration_error(labels, spread(lists), subset=[0], sample_weight=weight)
    found = TruncatedQuestionState([0], remainder="spread").update(labels, lists, weight).finish()
    assert found.unknown == 0
    assert found.low - 1e-9 <= exact <= found.high + 1e-9
    assert found.high - found.low < 2.0**-15


def test_chunks_merge_and_resume(tmp_path):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(8), 60), rng.integers(0, 8, 60)
    top = truncated(proba, 3)
    whole = TruncatedQuestionState([1, 4]).update(labels, top).finish()
    first = TruncatedQuestionState([4, 1]).update(labels[:20], top[:20])
    first.save(tmp_path / "first.polycal")
    second = TruncatedQuestionState([1, 4]).update(labels[20:], top[20:]).update([], top[:0])
    merged = second.merge(pc.load(tmp_path / "first.polycal")).finish()
    for name in ("value", "low", "high", "unknown"):
        assert getattr(merged, name) == pytest.approx(getattr(whole, name))
    assert second.n_samples == 60


def test_a_set_of_all_classes_leaves_nothing_unknown():
    top = csr_array([[0.5, 0.3, 0.0, 0.0], [0.0, 0.6, 0.2, 0.0]])
    assert TruncatedQuestionState(np.arange(4)).update([0, 1], top).finish().unknown == 0
    found = TruncatedQuestionState([0, 3]).update([0, 1], top).finish()
    # In the second row both classes that are not listed belong to the set.
    assert found.unknown == pytest.approx(0.1)
    # A fifth class stands for all that rows do not list.
    as_class = TruncatedQuestionState([0, 4], remainder="class").update([0, 3], top).finish()
    assert as_class.unknown == 0
    assert as_class.value == pytest.approx(
        sparse.smooth_calibration_error([0, 3], top, subset=[0, 4], remainder="class").value, abs=1e-4
    )


FORMS = [
    QuestionState,
    lambda: QuestionState([0, 2]),
    lambda: QuestionState([0], resolution=0.03),
    lambda: ClassesState(resolution=0.05),
    lambda: ClassesState(resolution=0.05, classes=[1, 2]),
    ScoreState,
    lambda: ReadingState([0], 0.1, 0.6),
    lambda: SketchState(5, random_state=3),
]


@pytest.mark.parametrize("make", FORMS)
@settings(max_examples=25, deadline=None)
@given(data=samples(min_classes=3))
def test_complete_lists_are_full_predictions(make, data):
    labels, proba, weight = data
    there = make().update(labels, proba, weight)
    here = make().update(labels, truncated(proba, proba.shape[1]), weight)
    np.testing.assert_allclose(everything(here), everything(there), atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_classes_and_scores_of_every_completion_lie_in_their_ranges(data, seed):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    for remainder, top in (("unknown", True), ("anywhere", False)):
        full = completed(lists, rng, top=top)
        kinds = {"remainder": remainder, "sample_weight": weight}
        classes = ClassesState(resolution=0.01).update(labels, lists, **kinds).finish()
        for label, summary in enumerate(classes):
            exact = pc.smooth_calibration_error(labels, full, subset=[label], sample_weight=weight)
            assert summary.low - 1e-8 <= exact <= summary.high + 1e-8
        scores = ScoreState().update(labels, lists, **kinds).finish()
        exact = ScoreState().update(labels, full, weight).finish()
        for name in ("brier_score", "log_loss"):
            high = scores.get(f"{name}_high", scores[name])
            assert scores[name] - 1e-8 <= exact[name] <= high + 1e-8


@settings(max_examples=30, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_lists_and_full_predictions_may_be_mixed(data, seed):
    labels, proba, weight = data
    rng, cut = np.random.default_rng(seed), len(labels) // 2
    lists = ragged(proba, rng)
    halves = slice(0, cut), slice(cut, None)
    for make in (lambda: QuestionState([0, 1]), lambda: ClassesState(resolution=0.01)):
        state = make()
        for half, rows in zip(halves, (lists, proba), strict=True):
            state.update(labels[half], rows[half], None if weight is None else weight[half])
        found, subset = (
            (state.finish(), [0, 1]) if isinstance(state, QuestionState) else (state.finish()[0], [0])
        )
        full = np.concatenate([completed(lists, rng)[:cut], proba[cut:]])
        exact = pc.smooth_calibration_error(labels, full, subset=subset, sample_weight=weight)
        assert found.low - 1e-8 <= exact <= found.high + 1e-8


def test_a_reading_says_what_is_in_doubt():
    lists = csr_array([[0.5, 0.3, 0, 0], [0.4, 0.3, 0, 0]])
    reading = ReadingState([0, 2], 0.0, 1.0).update([0, 1], lists).finish()
    # The rest may fall to class 2 wholly, or not at all.
    assert reading.predicted == pytest.approx((0.6 + 0.55) / 2)
    assert reading.doubt == pytest.approx((0.1 + 0.15) / 2)
    assert "says 0.575 ± 0.125, is 0.500" in str(reading)


def test_bad_matrices_are_refused():
    state = TruncatedQuestionState([0])
    good = csr_array([[0.5, 0.2, 0.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match=r"sums to 1\.3"):
        state.update([0], csr_array([[0.5, 0.8]]))
    with pytest.raises(ValueError, match="give one for each"):
        state.update([0], good, [1.0, 2.0])
    with pytest.raises(ValueError, match="logits"):
        state.update([0], good, from_logits=True)
    with pytest.raises(ValueError, match="remainder"):
        TruncatedQuestionState([0], remainder="lost")
    with pytest.raises(ValueError, match="outside 0"):
        TruncatedQuestionState([7]).update([0], good)
    with pytest.raises(ValueError, match="no row of positive weight"):
        TruncatedQuestionState([0]).update([0], good, [0.0]).finish()
