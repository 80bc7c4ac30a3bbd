import numpy as np
import pytest

from polycal._validation import check_sample
from polycal.kernels import products
from polycal.kernels.kernels import Laplace, Multinomial

KERNELS = [Multinomial(3), Laplace(0.5)]


@pytest.fixture(params=[1, 3, 7, 100])
def _side(request, monkeypatch):
    monkeypatch.setattr(products, "_SIDE", request.param)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(4), 23), rng.normal(size=(23, 5)), rng.dirichlet(np.ones(4), 11)


@pytest.mark.usefixtures("_side")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_any_blocking_gives_the_whole(kernel, data):
    points, values, at = data
    whole = kernel.block(points, points)
    hollow = whole - np.diag(np.diag(whole))
    np.testing.assert_allclose(products.kernel_times(kernel, points, values), whole @ values, rtol=1e-10)
    np.testing.assert_allclose(
        products.kernel_times(kernel, points, values, diagonal=False), hollow @ values, rtol=1e-10
    )
    np.testing.assert_allclose(
        products.kernel_times(kernel, points, values, at=at), kernel.block(at, points) @ values, rtol=1e-10
    )
    np.testing.assert_allclose(
        products.quadratic_forms(kernel, points, values), np.diag(values.T @ whole @ values), rtol=1e-10
    )
    np.testing.assert_allclose(
        products.quadratic_forms(kernel, points, values, diagonal=False),
        np.diag(values.T @ hollow @ values),
        rtol=1e-10,
    )


@pytest.mark.usefixtures("_side")
def test_cross_products_are_those_of_the_parts(data):
    points, values, at = data
    kernel, other = KERNELS[0], values[:11]
    at_left, at_right = products.cross_times(kernel, points, at, values, other)
    block = kernel.block(points, at)
    np.testing.assert_allclose(at_left, block @ other, rtol=1e-10)
    np.testing.assert_allclose(at_right, block.T @ values, rtol=1e-10)


def test_float32_blocks_are_summed_in_float64(data):
    points, values, _ = (array.astype(np.float32) for array in data)
    result = products.kernel_times(KERNELS[0], points, values)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, products.kernel_times(KERNELS[0], *data[:2]), rtol=1e-4, atol=1e-4)


def test_residuals_have_weights_of_mean_one():
    sample = check_sample([0, 1], [[0.25, 0.75], [0.5, 0.5]], sample_weight=[1.0, 3.0])
    np.testing.assert_allclose(
        products.residuals(sample, np.float64), [[0.375, -0.375], [-0.75, 0.75]], rtol=1e-12
    )
    assert products.residuals(sample, np.float32).dtype == np.float32


def test_large_samples_are_searched_in_float32():
    small = check_sample([0, 1], np.eye(2))
    large = check_sample(np.zeros(5000, dtype=int), np.full((5000, 2), 0.5))
    assert products.search_dtype(small) is np.float64
    assert products.search_dtype(large) is np.float32
