import numpy as np
import pytest
from hypothesis import given
from scipy.stats import kstest

from polycal._validation import check_sample
from polycal.sample import row_lots, split_rows
from tests.strategies import samples


def make(n=500, k=6, seed=0):
    rng = np.random.default_rng(seed)
    return check_sample(rng.integers(0, k, n), rng.dirichlet(np.ones(k), n))


def contents(sample, rows):
    return np.sort(sample.proba[rows].max(axis=1))


def test_parts_cover_every_row_once_with_their_shares():
    sample = make()
    parts = split_rows(sample, (0.5, 0.3, 0.2), seed=1)
    assert [p.size for p in parts] == [250, 150, 100]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(500))


def test_the_seed_decides():
    sample = make()
    first, again, other = (split_rows(sample, (0.5, 0.5), seed=s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_row_order_and_class_names_do_not_decide():
    sample = make()
    rng = np.random.default_rng(3)
    rows, classes = rng.permutation(500), rng.permutation(6)
    moved = check_sample(np.argsort(classes)[sample.labels[rows]], sample.proba[rows][:, classes])
    part, moved_part = (split_rows(s, (0.5, 0.5), seed=1)[0] for s in (sample, moved))
    np.testing.assert_array_equal(np.sort(rows[moved_part]), part)


def test_labels_are_not_stratified():
    # The frequency of a class in a part varies as it does in a random half: a stratified part would not vary.
    rng = np.random.default_rng(0)
    sample = check_sample(rng.integers(0, 2, 1000), rng.random(1000))
    shares = [sample.labels[split_rows(sample, (0.5, 0.5), seed=s)[0]].mean() for s in range(200)]
    assert np.std(shares) == pytest.approx(0.5 / np.sqrt(500) * np.sqrt(0.5), rel=0.25)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_samples(n):
    sample = check_sample(np.zeros(n, int), np.full(n, 0.5))
    assert sum(p.size for p in split_rows(sample, (0.5, 0.5), seed=0)) == n


def test_lots_are_even_and_the_seed_decides():
    sample = make(2000)
    lots, again, other = (row_lots(sample, seed) for seed in (1, 1, 10**40))
    np.testing.assert_array_equal(lots, again)
    assert abs(np.corrcoef(lots, other)[0, 1]) < 0.1
    assert lots.min() >= 0.0
    assert lots.max() < 1.0
    assert kstest(lots, "uniform").pvalue > 0.01


@pytest.mark.parametrize("n_distinct", [500, 7])
def test_more_rows_change_no_lot(n_distinct):
    sample = make(500)
    rows = np.random.default_rng(5).integers(0, n_distinct, 500)
    sample = sample.take(rows) if n_distinct < 500 else sample
    lots = row_lots(sample, 3)
    np.testing.assert_array_equal(row_lots(sample.take(slice(0, 300)), 3), lots[:300])
    # Rows that are alike have lots of their own.
    assert np.unique(lots).size == 500


@given(samples())
def test_order_of_rows_and_names_of_classes_change_no_lot(drawn):
    labels, proba, weight = drawn
    n, k = proba.shape
    rng = np.random.default_rng(0)
    rows, classes = rng.permutation(n), rng.permutation(k)
    again = None if weight is None else weight[rows]
    moved = check_sample(np.argsort(classes)[labels[rows]], proba[rows][:, classes], sample_weight=again)
    lots = row_lots(check_sample(labels, proba, sample_weight=weight), 0)
    np.testing.assert_array_equal(np.sort(row_lots(moved, 0)), np.sort(lots))
