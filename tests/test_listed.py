"""Lists of classes: the gate, the trusted arrays behind it, and what they tell of full predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from polycal._validation import check_chunk, check_sample
from polycal.listed import joined
from tests.reference_lists import completed, ragged, spread
from tests.strategies import samples


def listed(y_true, y_proba, remainder="unknown", **options):
    return check_sample(y_true, y_proba, remainder=remainder, **options)


TOP = csr_array([[0.5, 0.3, 0.0, 0.0], [0.0, 0.0, 0.9, 0.05]])


def test_rows_are_sorted_and_kept_sparse():
    shuffled = csr_array((np.array([0.3, 0.5, 0.1]), np.array([3, 0, 2]), np.array([0, 2, 3])), shape=(2, 4))
    sample = listed([0, 1], shuffled, remainder="anywhere")
    assert sample.indices.tolist() == [0, 3, 2]
    assert sample.values.tolist() == [0.5, 0.3, 0.1]
    np.testing.assert_allclose(sample.rest, [0.2, 0.9])
    assert sample.label_entry.tolist() == [0, -1]
    np.testing.assert_array_equal(sample.proba.toarray(), shuffled.toarray())
    assert "n_listed=3" in repr(sample)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (coo_array(([0.2, 0.3], ([1, 1], [2, 2])), shape=(2, 4)), r"y_proba\[1\] lists class 2 twice"),
        (csr_array([[0.5, 0.1, 0, 0], [0.4, -0.1, 0, 0]]), r"y_proba\[1\] holds -0.1"),
        (csr_array([[0.5, 0.1, 0, 0], [0.4, np.nan, 0, 0]]), r"y_proba\[1\] holds nan"),
        (csr_array([[0.5, 0.1, 0, 0], [0.9, 0.2, 0, 0]]), r"y_proba\[1\] sums to 1\.1"),
        (csr_array([[0.3, 0.3, 0.2, 0.1], [1.0, 0, 0, 0]]), r"y_proba\[0\] lists all classes"),
        (csr_array([[0.5, 0.3, 0, 0], [0.1, 0.05, 0, 0]]), r"y_proba\[1\] leaves 0.85.*anywhere"),
        (csr_array((2, 1)), "column"),
    ],
)
def test_bad_rows_are_refused_by_number(matrix, message):
    with pytest.raises(ValueError, match=message):
        listed([0, 0], matrix)


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="full predictions are needed here"):
        check_sample([0, 1], TOP)
    with pytest.raises(ValueError, match="logits"):
        check_sample([0, 1], TOP, remainder="unknown", from_logits=True)
    with pytest.raises(TypeError, match="real numbers"):
        listed([0], csr_array(np.array([[1j, 0.0]])))
    with pytest.raises(ValueError, match="y_true has 3 entries"):
        listed([0, 1, 1], TOP)
    with pytest.raises(ValueError, match="sample_weight has 1 entries"):
        listed([0, 1], TOP, sample_weight=[1.0])
    with pytest.raises(ValueError, match="sums to 0"):
        listed([0, 1], TOP, sample_weight=[0.0, 0.0])
    with pytest.raises(ValueError, match="class_names has 1"):
        listed([0, 1], TOP, class_names=["a"])
    with pytest.raises(ValueError, match="'a' twice"):
        listed([0, 1], TOP, class_names=["a", "b", "a", "c"])
    with pytest.raises(ValueError, match="remainder"):
        listed([0, 1], TOP, remainder="lost")
    with pytest.raises(ValueError, match="empty"):
        listed([], TOP[:0])


def test_chunks_may_be_empty_or_without_weight():
    assert check_chunk([], TOP[:0], remainder="unknown") is None
    chunk = check_chunk([0, 1], TOP, sample_weight=[0, 0], remainder="unknown")
    assert chunk.sample_weight.tolist() == [0, 0]


def test_rounding_is_no_remainder():
    row = np.array([[0.6, 0.3, 0.1, 0.0]], dtype=np.float32)
    assert listed([0], csr_array(row)).rest.tolist() == [0.0]
    assert listed([0], csr_array(row * np.float32(1.0001))).values.sum() == pytest.approx(1, abs=1e-12)


def test_the_rest_as_a_class():
    sample = listed([0, 1], TOP, remainder="class", class_names=list("abcd"))
    assert sample.n_classes == 5
    assert sample.labels.tolist() == [0, 4]
    assert sample.name(4) == "(not listed)"
    np.testing.assert_allclose(sample.proba.toarray()[:, 4], [0.2, 0.05])
    assert not sample.rest.any()


@settings(max_examples=60, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000), size=st.integers(1, 4))
def test_the_range_holds_every_completion(data, seed, size):
    labels, proba, _ = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    subset = np.sort(rng.permutation(proba.shape[1])[:size])
    for remainder, top in (("unknown", True), ("anywhere", False)):
        low, high = listed(labels, lists, remainder=remainder).subset_range(subset)
        for _ in range(3):
            full = completed(lists, rng, top=top)[:, subset].sum(axis=1)
            assert (low - 1e-9 <= full).all()
            assert (full <= high + 1e-9).all()
    even = listed(labels, lists, remainder="spread").subset_range(subset)
    np.testing.assert_allclose(even[0], spread(lists)[:, subset].sum(axis=1), atol=1e-9)
    np.testing.assert_array_equal(*even)


def test_the_range_is_sharper_for_lists_of_the_most_likely_classes():
    lists = csr_array([[0.6, 0.2, 0.1, 0.0, 0.0, 0.0]])
    known = listed([0], lists).subset_range(np.array([0, 3]))
    free = listed([0], csr_array([[0.6, 0.2, 0.02, 0, 0, 0]]), remainder="anywhere")
    np.testing.assert_allclose(known, [[0.6], [0.7]])
    np.testing.assert_allclose(free.subset_range(np.array([0, 3])), [[0.6], [0.78]])
    # 0.14 left for two classes of at most 0.08: each has at least 0.06.
    tight = listed([0], csr_array([[0.5, 0.2, 0.08, 0.08, 0, 0]]))
    np.testing.assert_allclose(tight.subset_range(np.array([4])), [[0.06], [0.08]])


def test_rows_are_taken_and_joined():
    lists = ragged(np.random.default_rng(0).dirichlet(np.ones(5), 8), np.random.default_rng(1))
    sample = listed(np.arange(8) % 5, lists, sample_weight=np.arange(8.0))
    parts = [sample.take(np.array([3, 1])), sample.take(np.arange(8) > 5)]
    both = joined(parts)
    np.testing.assert_array_equal(both.proba.toarray(), sample.proba.toarray()[[3, 1, 6, 7]])
    assert both.labels.tolist() == [3, 1, 1, 2]
    assert both.sample_weight.tolist() == [3, 1, 6, 7]
    assert joined([listed([0, 1], TOP)]).sample_weight is None
