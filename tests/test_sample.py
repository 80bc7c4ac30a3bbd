import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polycal._validation import check_sample
from polycal.sample import row_blocks, row_sums
from tests.strategies import samples


@given(st.integers(0, 5000), st.integers(1, 3_000_000))
def test_blocks_cover_every_row_once(n_rows, n_columns):
    covered = [i for rows in row_blocks(n_rows, n_columns) for i in range(rows.start, rows.stop)]
    assert covered == list(range(n_rows))


def test_row_sums_accumulate_in_float64():
    block = np.full((2, 10_000), 1e-4, dtype=np.float32)
    np.testing.assert_allclose(row_sums(block), block.astype(float).sum(axis=1), rtol=1e-12)


@settings(max_examples=50)
@given(samples())
def test_subset_probability_hits_and_mass(drawn):
    labels, proba, weight = drawn
    sample = check_sample(labels, proba, sample_weight=weight)
    np.testing.assert_allclose(sample.subset_proba(np.array([0, 1])), proba[:, :2].sum(axis=1), atol=1e-12)
    np.testing.assert_array_equal(sample.subset_hits(np.array([0, 1])), labels < 2)
    assert np.isclose(sample.mass.sum(), 1.0)


def test_taking_rows_keeps_weights_and_names():
    sample = check_sample([0, 1, 1], [0.1, 0.2, 0.3], sample_weight=[1, 2, 3], class_names=["no", "yes"])
    part = sample.take(np.array([2, 0]))
    np.testing.assert_array_equal(part.labels, [1, 0])
    np.testing.assert_array_equal(part.sample_weight, [3.0, 1.0])
    assert part.name(1) == "yes"
    assert check_sample([0], [0.1]).take(slice(None)).name(1) == "1"


def test_repr():
    sample = check_sample([0], np.array([[0.5, 0.5]], dtype=np.float32), sample_weight=[2])
    assert repr(sample) == "Sample(n_samples=1, n_classes=2, float32, weighted)"
