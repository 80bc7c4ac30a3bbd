"""Truncated predictions: what they tell about a question, and what not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.strategies import samples

import polycal as pc
from polycal.states._sparse import check_sparse_sample
from polycal.states.truncated import TruncatedQuestionState


def truncated(proba, n_listed):
    """The largest entries of each row; a stored 0 stays listed."""
    keep = np.argsort(-proba, axis=1, kind="stable")[:, :n_listed]
    rows = np.repeat(np.arange(len(proba)), keep.shape[1])
    return csr_array(
        (np.take_along_axis(proba, keep, axis=1).ravel(), (rows, keep.ravel())), shape=proba.shape
    )


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
@given(data=samples(min_classes=3), n_listed=st.integers(1, 3))
def test_spread_is_the_error_of_the_filled_matrix(data, n_listed):
    labels, proba, weight = data
    top = truncated(proba, min(n_listed, proba.shape[1] - 1))
    filled = top.toarray()
    for row, (start, stop) in enumerate(zip(top.indptr, top.indptr[1:], strict=False)):
        free = np.setdiff1d(np.arange(proba.shape[1]), top.indices[start:stop])
        filled[row, free] = (1 - filled[row].sum()) / free.size
    exact = pc.smooth_calibration_error(labels, filled.clip(0), subset=[0], sample_weight=weight)
    found = TruncatedQuestionState([0], remainder="spread").update(labels, top, weight).finish()
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


def test_many_classes_stay_sparse():
    rng = np.random.default_rng(0)
    n, k = 2_000, 100_000
    indices = np.array([rng.choice(k, 5, replace=False) for _ in range(n)])
    values = rng.dirichlet(np.ones(6), n)[:, :5]
    top = csr_array((values.ravel(), indices.ravel(), np.arange(0, 5 * n + 1, 5)), shape=(n, k))
    labels = indices[np.arange(n), rng.integers(0, 5, n)]
    subset = np.arange(k // 2)
    found = TruncatedQuestionState(subset, resolution=1 / 1024).update(labels, top).finish()
    assert found.unknown == pytest.approx(1 - values.sum(axis=1).mean())
    assert 0 <= found.low <= found.value <= found.high <= 1
    # With the whole mass on one side nothing is unknown.
    assert TruncatedQuestionState(np.arange(k)).update(labels, top).finish().unknown == 0


def test_bad_matrices_are_refused():
    state = TruncatedQuestionState([0])
    with pytest.raises(TypeError, match="SciPy sparse"):
        state.update([0], [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"sums to 1\.3"):
        state.update([0], csr_array([[0.5, 0.8]]))
    with pytest.raises(ValueError, match="not a probability"):
        state.update([0], csr_array([[-0.5, 0.8]]))
    with pytest.raises(ValueError, match="one per row"):
        state.update([0, 1], csr_array([[0.5, 0.2]]))
    with pytest.raises(ValueError, match="one per row"):
        state.update([0], csr_array([[0.5, 0.2]]), [1.0, 2.0])
    with pytest.raises(ValueError, match="logits"):
        state.update([0], csr_array([[0.5, 0.2]]), from_logits=True)
    with pytest.raises(ValueError, match="remainder"):
        TruncatedQuestionState([0], remainder="lost")
    with pytest.raises(ValueError, match="class_names has 1"):
        check_sparse_sample([0], csr_array([[0.5, 0.2]]), class_names=["a"])
    with pytest.raises(ValueError, match="outside 0"):
        TruncatedQuestionState([7]).update([0], csr_array([[0.5, 0.2]]))
