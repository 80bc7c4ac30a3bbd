"""The kernel test by landmarks and redrawn labels."""

import numpy as np
import pytest

from polycal._validation import check_sample
from polycal.datasets import make_calibrated, make_shifted_subset
from polycal.inference.kernel_noise import kernel_noise
from polycal.inference.redraw import noise_test
from polycal.kernels.kernels import Gaussian, Laplace

KERNELS = (Gaussian(0.2), Laplace())


def p_value(made, seed=0, weight=None):
    sample = check_sample(made.labels, made.proba, sample_weight=weight)
    return noise_test(kernel_noise(sample, KERNELS, seed), 99, np.random.SeedSequence(seed))[1]


def by_pairs(sample, kernel, landmarks):
    """The statistic by a double loop over pairs of rows."""
    likeness = np.array([[kernel.block(v[None], u[None])[0, 0] for u in landmarks] for v in sample.proba])
    residual = np.eye(sample.n_classes)[sample.labels] - sample.proba
    products = (likeness @ likeness.T) * (residual @ residual.T)
    return products.sum() - np.trace(products)


def test_the_statistic_is_the_sum_over_pairs():
    # Fewer rows than landmarks: all of them are.
    made = make_calibrated(40, 3, random_state=0)
    sample = check_sample(made.labels, made.proba)
    noise = kernel_noise(sample, (Gaussian(0.5),), 0)
    rng, ratios = np.random.default_rng(0), []
    for _ in range(3):
        labels = rng.integers(0, 3, 40)
        other = kernel_noise(check_sample(labels, made.proba), (Gaussian(0.5),), 0)
        exact = by_pairs(check_sample(labels, made.proba), Gaussian(0.5), sample.proba)
        ratios.append(other.error / exact)
    # The unit depends on the predictions only.
    assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-4)
    assert noise.error == pytest.approx(by_pairs(sample, Gaussian(0.5), sample.proba) * ratios[0], rel=1e-3)


def test_errors_are_found_and_rows_may_come_in_any_order():
    made = make_shifted_subset(2000, 10, error=0.08, random_state=0)
    assert p_value(made) == 0.01
    order = np.random.default_rng(0).permutation(2000)
    turned = check_sample(made.labels[order], made.proba[order])
    straight = check_sample(made.labels, made.proba)
    one, other = (kernel_noise(sample, KERNELS, 0) for sample in (straight, turned))
    assert one.error == pytest.approx(other.error, rel=1e-4)


def test_rows_without_weight_do_not_count():
    made = make_calibrated(60, 3, random_state=1)
    weight = np.r_[np.ones(50), np.zeros(10)]
    changed = made.labels.copy()
    changed[50:] = 0
    one, other = (
        kernel_noise(check_sample(labels, made.proba, sample_weight=weight), KERNELS, 0).error
        for labels in (made.labels, changed)
    )
    assert one == pytest.approx(other, rel=1e-5)


@pytest.mark.slow
def test_calibrated_predictions_are_rarely_accused():
    p_values = np.array([p_value(make_calibrated(150, 4, random_state=s), seed=s) for s in range(200)])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p_values <= level) <= level + 3 * np.sqrt(level * (1 - level) / 200)
