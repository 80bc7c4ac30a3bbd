"""Rows that are alike: groups of them, folds that keep them together, and models that are not misled by them."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import softmax
from tests.calibrators.draws import confused

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.kernel.alike import grouped_parts, like_groups
from polycal.calibrators.rows import counted_index, counted_rows


def log_loss(proba, labels):
    return -np.log(np.maximum(proba[np.arange(labels.size), labels], 1e-12)).mean()


def draw(n, k=8, seed=0):
    """Over-confident predictions in which one class is taken for another."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2.0, (n, k))
    truth = softmax(0.5 * logits, axis=1)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return logits, labels


def copied(n, times, noise, k=8, seed=0):
    """Each of n rows several times, with noise on its logits and the same label."""
    logits, labels = draw(n, k, seed)
    rows = np.repeat(np.arange(n), times)
    noisy = logits[rows] + noise * np.random.default_rng(seed + 1).normal(size=(rows.size, k))
    return softmax(noisy, axis=1), labels[rows], rows


def test_copies_are_in_one_group():
    proba, labels, rows = copied(100, 3, 0.05)
    _, (groups, *_) = like_groups(check_sample(labels, proba), 20)
    assert all(np.unique(groups[rows == row]).size == 1 for row in range(100))
    assert groups.max() + 1 > 60


def test_groups_grow_but_there_are_enough_of_them():
    sample = confused(n=400, k=5)
    _, levels = like_groups(sample, 4)
    sizes = [groups.max() + 1 for groups in levels]
    assert sizes == sorted(sizes, reverse=True)
    assert 200 >= sizes[0] > sizes[-1] >= 4
    # Larger groups are made of smaller ones.
    for small, large in pairwise(levels):
        assert all(np.unique(large[small == group]).size == 1 for group in range(small.max() + 1))
    assert like_groups(sample, 50)[1][-1].max() + 1 >= 50
    nearest, levels = like_groups(check_sample([0, 1], [[0.9, 0.1], [0.2, 0.8]]), 20)
    assert (nearest.tolist(), levels) == ([1, 0], [])


def test_parts_keep_groups_together_and_are_about_even():
    sample = confused(n=200, k=3)
    groups = np.random.default_rng(0).integers(0, 30, 200)
    parts = grouped_parts(sample, groups, 4, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(200))
    of_row = np.empty(200, dtype=int)
    for i, part in enumerate(parts):
        of_row[part] = i
    assert all(np.unique(of_row[groups == group]).size == 1 for group in np.unique(groups))
    assert max(map(len, parts)) - min(map(len, parts)) <= 12
    order = np.random.default_rng(1).permutation(200)
    for part, other in zip(parts, grouped_parts(sample.take(order), groups[order], 4, 0), strict=True):
        np.testing.assert_array_equal(part, np.sort(order[other]))
    assert len(grouped_parts(sample, np.zeros(200, dtype=int), 4, 0)) == 1


@pytest.mark.parametrize(
    ("n", "times", "noise", "k"),
    [
        (300, 3, 0.1, 8),
        (300, 2, 0.2, 8),
        (100, 10, 0.3, 8),
        (200, 10, 0.5, 12),
        (40, 25, 0.3, 8),
        (20, 50, 0.5, 8),
    ],
)
def test_copies_and_batches_do_not_make_the_calibrator_bold(n, times, noise, k):
    proba, labels, rows = copied(n, times, noise, k)
    logits, new_labels = draw(20_000, k, seed=7)
    new = softmax(logits, axis=1)
    losses = {
        calibrator: log_loss(calibrator.fit(proba, labels).predict_proba(new), new_labels)
        for calibrator in (pc.KernelCalibrator(), pc.TemperatureScaling(), pc.VectorScaling())
    }
    ours, *others = losses.values()
    assert ours < log_loss(new, new_labels)
    # Of forty batches, forty labels are all there is to learn from.
    assert ours < min(others) + (0.02 if n >= 100 else 0.07)
    told = pc.KernelCalibrator().fit(proba, labels, groups=rows)
    assert ours < log_loss(told.predict_proba(new), new_labels) + 0.02


@pytest.mark.parametrize(("n", "times", "noise"), [(60, 25, 1.0), (100, 20, 1.0), (30, 100, 0.5)])
def test_few_batches_that_are_wide_do_no_harm_though_they_would(n, times, noise, monkeypatch):
    proba, labels, rows = copied(n, times, noise)
    logits, new_labels = draw(20_000, seed=7)
    new = softmax(logits, axis=1)
    ours = log_loss(pc.KernelCalibrator().fit(proba, labels).predict_proba(new), new_labels)
    told = log_loss(pc.KernelCalibrator().fit(proba, labels, groups=rows).predict_proba(new), new_labels)
    monkeypatch.setattr("polycal.calibrators.kernel.search.find_groups", lambda *_: None)
    bold = log_loss(pc.KernelCalibrator().fit(proba, labels).predict_proba(new), new_labels)
    given = log_loss(new, new_labels)
    assert told < ours < given < bold - 0.5


def test_batches_that_lie_apart_are_found_though_they_have_nearly_all_different_labels():
    """Held out together they leave nothing to learn their labels from, which alone would not tell them from classes."""
    rng = np.random.default_rng(0)

    def draw_rows(n):
        logits = rng.normal(0, 3.0, (n, 60))
        truth = softmax(logits / 1.2, axis=1)
        return logits, (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)

    logits, labels = draw_rows(40)
    new, new_labels = draw_rows(4000)
    near = softmax(np.repeat(logits, 25, axis=0) + rng.normal(0, 0.3, (1000, 60)), axis=1)
    assert np.unique(labels).size > 22
    fitted = pc.KernelCalibrator().fit(near, np.repeat(labels, 25))
    assert fitted.n_groups_ <= 40
    given = softmax(new, axis=1)
    assert log_loss(fitted.predict_proba(given), new_labels) < 1.05 * log_loss(given, new_labels)


@pytest.mark.parametrize("n", [400, 2000])
def test_a_classifier_that_errs_smoothly_is_not_taken_for_one_of_batches(n):
    """Rows nearby agree more often than the baseline is right, but less where they are hard to predict."""
    rng = np.random.default_rng(n)
    logits = rng.normal(0, 1.5, (n, 6))
    logits[:, 1] += 1.5 * np.sin(2 * logits[:, 0])
    truth = softmax(5.0 * logits[:, [1, 0, 2, 4, 3, 5]], axis=1)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    calibrator = pc.KernelCalibrator().fit(softmax(logits, axis=1), labels)
    assert calibrator.n_groups_ == n


def test_rows_of_one_class_are_no_batch():
    """Two classes are always taken for one another: held out with all its like, neither could be learnt."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 600)
    logits = 4.0 * np.eye(6)[[1, 0, 3, 2, 5, 4]][labels] + rng.normal(0, 0.7, (600, 6))
    calibrator = pc.KernelCalibrator().fit(softmax(logits, axis=1), labels)
    assert calibrator.n_groups_ == 600
    assert log_loss(calibrator.predict_proba(softmax(logits, axis=1)), labels) < 0.1


@pytest.mark.parametrize("k", [2, 5])
def test_rows_that_are_not_alike_are_left_alone(k, monkeypatch):
    sample = confused(n=600, k=k)
    ours = pc.KernelCalibrator().fit(sample.proba, sample.labels).predict_proba(sample.proba)
    monkeypatch.setattr("polycal.calibrators.kernel.search.find_groups", lambda *_: None)
    alone = pc.KernelCalibrator().fit(sample.proba, sample.labels).predict_proba(sample.proba)
    np.testing.assert_array_equal(ours, alone)


def test_groups_may_have_any_labels_and_go_with_the_weights():
    proba, labels, rows = copied(80, 3, 0.1, k=4)
    names = np.array([f"film {row}" for row in rows])
    one, other = (
        pc.KernelCalibrator().fit(proba, labels, groups=groups).predict_proba(proba)
        for groups in (rows, names)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)
    weight = np.random.default_rng(0).integers(0, 3, labels.size)
    weighted = pc.KernelCalibrator().fit(proba, labels, weight, groups=rows).predict_proba(proba)
    again = np.repeat(np.arange(labels.size), weight)
    repeated = pc.KernelCalibrator().fit(proba[again], labels[again], groups=rows[again]).predict_proba(proba)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_one_group_teaches_nothing_of_rows_not_seen():
    sample = confused(n=100, k=3)
    fitted = pc.KernelCalibrator().fit(sample.proba, sample.labels, groups=np.zeros(100))
    assert fitted.used_ in {"identity", "temperature"}


def test_groups_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"groups must have shape \(20,\), a label for each row; got \(3,\)"):
        pc.KernelCalibrator().fit(np.full((20, 2), 0.5), np.arange(20) % 2, groups=[1, 2, 3])


@pytest.mark.parametrize("weight", [None, [0, 2, 1], [0.0, 0.5, 1.5]])
def test_the_index_of_counted_rows(weight):
    sample = check_sample([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]], sample_weight=weight)
    np.testing.assert_array_equal(counted_rows(sample).proba, sample.proba[counted_index(sample)])
