import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference_calibrators import histogram
from tests.strategies import samples

from polycal.calibrators.one_vs_rest import HistogramCalibrator


@settings(max_examples=30, deadline=None)
@given(samples(weighted=False))
def test_each_class_is_the_frequency_in_its_bin(sample):
    labels, proba, _ = sample
    fitted = HistogramCalibrator(n_bins=4).fit(proba, labels)
    ours = fitted.steps_[0](proba)
    for label in np.unique(labels):
        expected = [histogram(proba[:, label], labels == label, 4, value) for value in proba[:, label]]
        np.testing.assert_allclose(ours[:, label], expected, atol=1e-12)


def test_an_empty_bin_predicts_its_centre():
    fitted = HistogramCalibrator(n_bins=4).fit([0.1, 0.9, 0.95], [0, 1, 0])
    np.testing.assert_allclose(fitted.predict_proba([0.4, 0.9]), [[0.625, 0.375], [0.5, 0.5]])


def test_quantile_bins_have_equal_mass():
    rng = np.random.default_rng(0)
    predicted = rng.beta(1, 9, 1000)
    fitted = HistogramCalibrator(n_bins=5, strategy="quantile").fit(predicted, rng.integers(0, 2, 1000))
    knots = fitted.steps_[0].knots[fitted.steps_[0].starts[1] :]
    counts = np.diff(np.searchsorted(np.sort(predicted), [*knots, np.inf], side="right"))
    np.testing.assert_allclose(counts, 200, atol=1)


def test_a_class_that_does_not_occur_predicts_the_mean_of_its_bin():
    proba = np.array([[0.5, 0.5, 0.0], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])
    heights = HistogramCalibrator(n_bins=2).fit(proba, [0, 1, 0]).steps_[0].heights
    np.testing.assert_allclose(heights[-2:], [0.1, 0.7])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"n_bins": 0}, "n_bins must be an integer"), ({"strategy": "wide"}, "strategy must be one of")],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        HistogramCalibrator(**parameters).fit([0.1, 0.9], [0, 1])
