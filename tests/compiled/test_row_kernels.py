import numpy as np
import pytest
from hypothesis import given, settings
from tests.strategies import samples

from polycal._compiled.rows import score_sums, subset_sums, top_classes


@settings(deadline=None)
@given(samples())
def test_the_most_likely_class_is_the_first_of_equals(data):
    _, proba, _ = data
    top, confidence = top_classes(proba)
    np.testing.assert_array_equal(top, proba.argmax(axis=1))
    np.testing.assert_array_equal(confidence, np.minimum(proba.max(axis=1), 1.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_taken_in_float64_and_at_most_1(dtype):
    proba = np.random.default_rng(0).dirichlet(np.ones(9), 50).astype(dtype)
    members = np.array([1, 4, 8])
    expected = proba[:, members].astype(np.float64).sum(axis=1)
    np.testing.assert_allclose(subset_sums(proba, members), expected, rtol=1e-15)
    assert subset_sums(np.full((1, 2), 0.6, dtype=dtype), np.array([0, 1])).tolist() == [1.0]
    assert subset_sums(proba, members).dtype == np.float64


@settings(deadline=None)
@given(samples())
def test_score_sums_are_those_of_the_rows(data):
    labels, proba, weight = data
    weight = np.ones(labels.size) if weight is None else np.asarray(weight, dtype=np.float64)
    onehot = np.eye(proba.shape[1])[labels]
    truth = proba[np.arange(labels.size), labels]
    expected = [
        weight @ (proba.argmax(axis=1) == labels),
        weight @ ((onehot - proba) ** 2).sum(axis=1),
        weight @ -np.log(np.clip(truth, 1e-6, 1.0)),
    ]
    np.testing.assert_allclose(score_sums(proba, labels, weight, 1e-6), expected, rtol=1e-9, atol=1e-12)
