import numpy as np
import pytest
from scipy import stats

from polycal.measures.binned import ReliabilityCurve, reliability_curve


def every_outcome(n):
    """One bin for each number of hits that n rows can have."""
    frequency = np.arange(n + 1) / n
    mass = np.full(n + 1, 1 / (n + 1))
    return ReliabilityCurve(frequency, frequency, mass, np.full(n + 1, n), np.array([0.0, 1.0]))


@pytest.mark.parametrize("n", [1, 2, 7, 100, 12345])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_interval_equals_scipy(n, level):
    low, high = every_outcome(n).interval(level)
    for hits in {0, 1, n // 2, n}:
        expected = stats.binomtest(hits, n).proportion_ci(level, method="wilson")
        assert (low[hits], high[hits]) == pytest.approx((expected.low, expected.high), abs=1e-13)


@pytest.mark.parametrize("n", [1, 3, 50, 999])
def test_interval_holds_the_frequency(n):
    curve = every_outcome(n)
    for level in (0.0, 1e-9, 0.5, 0.999999):
        low, high = curve.interval(level)
        assert (low >= 0).all()
        assert (low <= curve.frequency).all()
        assert (curve.frequency <= high).all()
        assert (high <= 1).all()


def test_interval_grows_with_level_and_shrinks_with_count():
    width = [
        np.subtract(*every_outcome(n).interval(level)[::-1])[0]
        for n, level in [(9, 0.5), (9, 0.9), (99, 0.9)]
    ]
    assert width[0] < width[1] > width[2]


@pytest.mark.parametrize("n", [10, 40, 200])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_interval_covers_as_often_as_it_says(n, level):
    # Exact: the probabilities of all outcomes, for a grid of true probabilities.
    low, high = every_outcome(n).interval(level)
    truth = np.linspace(0.0, 1.0, 501)[:, None]
    covered = ((low <= truth) & (truth <= high)) * stats.binom.pmf(np.arange(n + 1), n, truth)
    coverage = covered.sum(axis=1)
    assert coverage.mean() == pytest.approx(level, abs=0.012)
    assert coverage.min() > level - 0.13


def test_interval_covers_on_calibrated_predictions():
    rng = np.random.default_rng(0)
    predicted = rng.random(1500)
    covered = []
    for _ in range(400):
        curve = reliability_curve(rng.random(1500) < predicted, predicted, n_bins=10)
        low, high = curve.interval()
        covered.append((low <= curve.predicted) & (curve.predicted <= high))
    # 4000 intervals: one standard deviation is 0.0034.
    assert np.mean(covered) == pytest.approx(0.95, abs=0.014)


def test_interval_counts_rows_not_weight():
    y_true, y_proba = [0, 1, 1, 0], [0.6, 0.7, 0.8, 0.9]
    plain = reliability_curve(y_true, y_proba, n_bins=1)
    heavy = reliability_curve(y_true, y_proba, n_bins=1, sample_weight=[10.0] * 4)
    np.testing.assert_allclose(plain.interval(), heavy.interval())


@pytest.mark.parametrize("level", [-0.1, 1.0, 95, "0.95", True, np.nan])
def test_interval_refuses_other_levels(level):
    with pytest.raises(ValueError, match=r"level must be a number from 0 to 0\.999999"):
        every_outcome(3).interval(level)


def test_rows_of_weight_zero_are_left_out():
    curve = reliability_curve([0, 1, 1, 0], [0.2, 0.2, 0.2, 0.9], n_bins=2, sample_weight=[1, 1, 0, 0])
    np.testing.assert_array_equal(curve.count, [2])
    np.testing.assert_array_equal(curve.frequency, [0.5])
