import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.inference.certificate import class_contributions, read_witness, worst_range
from polycal.sample import Question


def make(n, seed, shift=0.2):
    """Class 1 of three happens less often than predicted when it is likely, more often when it is not."""
    rng = np.random.default_rng(seed)
    u = rng.random(n)
    truth = np.clip(u + np.where(u > 0.5, -shift, shift), 0, 1)
    rest = rng.random(n) < 0.5
    labels = np.where(rng.random(n) < truth, 1, np.where(rest, 0, 2))
    return check_sample(labels, np.column_stack([(1 - u) / 2, u, (1 - u) / 2]))


def test_the_worst_range_is_the_largest_sum_of_residuals():
    rng = np.random.default_rng(0)
    for _ in range(50):
        u = np.round(rng.random(12), 1)
        hits = rng.random(12) < 0.5
        low, high = worst_range(Question(u, hits, None, ""))
        inside = (u > low) & (u <= high)
        edges = [-1.0, *np.unique(u)]
        sums = [abs((hits - u)[(u > a) & (u <= b)].sum()) for a in edges for b in edges if a < b]
        assert abs((hits - u)[inside].sum()) == pytest.approx(max(sums))


def test_contributions_add_up_to_the_correlation():
    sample = make(300, 0)
    witness = pc.estimate_error(sample.labels, sample.proba, pc.Classwise(smooth=True)).witness
    assert class_contributions(witness, sample).sum() == pytest.approx(witness.correlation(sample))


def test_the_reading_is_true_on_unseen_rows():
    fit, judge = make(20_000, 0), make(20_000, 1)
    witness = pc.Classwise(smooth=True).estimate(fit).witness
    reading = read_witness(witness, fit, judge)
    assert abs(reading.predicted - reading.observed) == pytest.approx(0.2, abs=0.05)
    assert 0.2 < reading.share < 0.8
    assert "says" in str(reading)


def test_an_empty_range_reads_as_nothing():
    fit, judge = check_sample([1, 1], [0.1, 0.2]), check_sample([0], [0.9])
    witness = pc.estimate_error([1, 1], [0.1, 0.2], pc.Classwise(smooth=True)).witness
    reading = read_witness(witness, fit, judge)
    assert np.isnan(reading.predicted)
    assert np.isnan(reading.observed)
    assert reading.share == 0


def test_confidence_is_read_as_confidence():
    fit, judge = make(2000, 0), make(2000, 1)
    witness = pc.Confidence(smooth=True).estimate(fit).witness
    assert read_witness(witness, fit, judge).question == "is the most likely class right?"
