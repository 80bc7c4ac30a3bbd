import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_kernel as reference
from tests.strategies import samples

from polycal.inference.kernel_error import kernel_calibration_error, kernel_test
from polycal.kernels import products
from polycal.kernels.kernels import Gaussian, Laplace, Multinomial


def calibrated(n, k, rng):
    """Predictions with labels drawn from them."""
    proba = rng.dirichlet(np.ones(k), n)
    return (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba


def over_confident(n, k, rng):
    """Labels drawn from predictions mixed with the uniform distribution."""
    proba = rng.dirichlet(np.full(k, 0.5), n)
    truth = 0.6 * proba + 0.4 / k
    return (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba


def test_golden_value_of_two_rows():
    value = kernel_calibration_error([1, 2], [[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]])
    assert value == pytest.approx(-0.10317943453412069, abs=1e-14)


def test_golden_value_of_many_rows():
    rng = np.random.default_rng(1234)
    proba, labels = rng.dirichlet((3, 2, 5), 100), rng.integers(1, 4, 100) - 1
    assert kernel_calibration_error(labels, proba) == pytest.approx(0.02015240706950358, abs=1e-14)
    assert kernel_test(labels, proba, n_draws=9).statistic == pytest.approx(0.02015240706950358, abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(samples(max_rows=15), st.booleans())
def test_the_error_is_the_mean_over_pairs(drawn, unbiased):
    labels, proba, weight = drawn
    if unbiased and (len(labels) if weight is None else np.count_nonzero(weight)) < 2:
        with pytest.raises(ValueError, match="at least two"):
            kernel_calibration_error(labels, proba, sample_weight=weight)
        return
    value = kernel_calibration_error(
        labels, proba, kernel=Laplace(0.5), unbiased=unbiased, sample_weight=weight
    )
    expected = reference.squared_kernel_error(
        labels, proba, lambda v, u: reference.laplace(v, u, 0.5), weight, unbiased=unbiased
    )
    assert value == pytest.approx(expected, abs=1e-7)
    assert unbiased or value >= -1e-12


@settings(max_examples=40, deadline=None)
@given(samples(weighted=True, max_rows=15))
def test_biased_weight_two_is_the_row_twice(drawn):
    labels, proba, weight = drawn
    times = weight.astype(int)
    assert kernel_calibration_error(labels, proba, unbiased=False, sample_weight=weight) == pytest.approx(
        kernel_calibration_error(np.repeat(labels, times), np.repeat(proba, times, axis=0), unbiased=False),
        abs=1e-7,
    )


@pytest.mark.parametrize("side", [5, 2048])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_draw_is_the_statistic_of_its_labels(monkeypatch, side, weighted):
    monkeypatch.setattr(products, "_SIDE", side)
    rng = np.random.default_rng(0)
    labels, proba = over_confident(23, 4, rng)
    weight = rng.uniform(0.5, 2, 23) if weighted else None
    seen = []

    def draw(proba, rng):
        seen.append((proba.cumsum(axis=1) > rng.random((len(proba), 1))).argmax(axis=1))
        return seen[-1]

    monkeypatch.setattr("polycal.inference.kernel_error.draw_labels", draw)
    monkeypatch.setattr("polycal.inference.kernel_error.map_threads", lambda f, items: [f(i) for i in items])
    result = kernel_test(labels, proba, kernel=Gaussian(0.4), n_draws=7, sample_weight=weight)
    values = [
        kernel_calibration_error(y, proba, kernel=Gaussian(0.4), sample_weight=weight)
        for y in [labels, *seen]
    ]
    np.testing.assert_allclose([result.statistic, *result.draws], values, atol=1e-12)
    assert result.p_value == (1 + sum(v >= values[0] for v in values[1:])) / 8


def test_the_draws_have_mean_zero_and_the_result_is_complete():
    labels, proba = calibrated(200, 5, np.random.default_rng(0))
    result = kernel_test(labels, proba, kernel=Laplace("median"), n_draws=300)
    assert abs(result.null_mean) < 4 * result.null_std / np.sqrt(300)
    assert result.notion.scale == Laplace("median").resolve(proba).scale
    assert result.null_quantiles[0.95] == np.quantile(result.draws, 0.95)
    assert kernel_test(labels, proba, n_draws=20, random_state=3).draws[0] != result.draws[0]
    again = kernel_test(labels, proba, kernel=Laplace("median"), n_draws=300)
    np.testing.assert_array_equal(again.draws, result.draws)


def test_many_classes_and_several_slices_of_rows():
    labels, proba = calibrated(600, 300, np.random.default_rng(0))
    result = kernel_test(labels, proba, n_draws=19)
    assert result.statistic == pytest.approx(kernel_calibration_error(labels, proba), abs=1e-14)


@pytest.mark.parametrize("kernel", [Laplace(), Gaussian("median"), Multinomial(3)], ids=repr)
def test_power(kernel):
    labels, proba = over_confident(800, 3, np.random.default_rng(0))
    assert kernel_test(labels, proba, kernel=kernel, n_draws=99).p_value == 0.01


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 10])
def test_level(k):
    rng = np.random.default_rng(k)
    rejected = [
        kernel_test(*calibrated(60, k, rng), n_draws=99, random_state=i).p_value <= 0.05 for i in range(400)
    ]
    assert 0.02 <= np.mean(rejected) <= 0.08


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "rbf"}, TypeError, "kernel must be a kernel"),
        ({"n_draws": 0}, ValueError, "n_draws"),
        ({"alpha": 2}, ValueError, "alpha"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"sample_weight": [1.0, 0.0]}, ValueError, "at least two"),
    ],
)
def test_bad_parameters_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        kernel_test([0, 1], [[0.5, 0.5], [0.2, 0.8]], **options)
