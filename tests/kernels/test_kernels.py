import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_kernel as reference
from tests.strategies import samples

from polycal.kernels.kernels import (
    CallableKernel,
    Gaussian,
    Laplace,
    Multinomial,
    median_distance,
)
from polycal.storage.saved import packed, unpacked

KERNELS = {
    Multinomial(0): lambda v, u: reference.multinomial(v, u, 0),
    Multinomial(1): lambda v, u: reference.multinomial(v, u, 1),
    Multinomial(2): lambda v, u: reference.multinomial(v, u, 2),
    Multinomial(7): lambda v, u: reference.multinomial(v, u, 7),
    Laplace(): lambda v, u: reference.laplace(v, u, 1.0),
    Laplace(0.3): lambda v, u: reference.laplace(v, u, 0.3),
    Gaussian(0.2): lambda v, u: reference.gaussian(v, u, 0.2),
}


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=40, deadline=None)
@given(sample=samples(max_rows=8), dtype=st.sampled_from([np.float32, np.float64]))
def test_a_block_is_the_definition(kernel, sample, dtype):
    proba = sample[1].astype(dtype)
    other = proba[::-1][: max(1, len(proba) // 2)]
    block = kernel.block(proba, other)
    expected = [[KERNELS[kernel](v.astype(float), u.astype(float)) for u in other] for v in proba]
    assert block.dtype == dtype
    # Distances from inner products: float32 loses those below 1e-3.
    np.testing.assert_allclose(block, expected, rtol=0, atol=3e-3 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize(("k", "degree"), [(2, 3), (3, 2), (3, 3), (4, 1), (2, 0)])
def test_multinomial_is_the_inner_product_of_its_features(k, degree):
    proba = np.random.default_rng(0).dirichlet(np.ones(k), 5)
    features = np.array([reference.multinomial_features(v, degree) for v in proba])
    assert features.shape[1] == sum(k**i for i in range(degree + 1))
    np.testing.assert_allclose(Multinomial(degree).block(proba, proba), features @ features.T, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_bound_is_reached_at_the_corners_and_never_passed(kernel):
    rng = np.random.default_rng(0)
    proba = np.concatenate([np.eye(4), rng.dirichlet(np.full(4, 0.2), 200)])
    diagonal = np.diag(kernel.block(proba, proba))
    assert diagonal.max() == pytest.approx(kernel.bound)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_are_positive_semidefinite(kernel):
    proba = np.random.default_rng(0).dirichlet(np.full(3, 0.5), 30)
    assert np.linalg.eigvalsh(kernel.block(proba, proba)).min() > -1e-9


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_state_rebuilds_the_kernel(kernel):
    assert unpacked(*packed(kernel)) == kernel


def test_inputs_are_not_changed():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 4)
    proba.flags.writeable = False
    for kernel in KERNELS:
        kernel.block(proba, proba)


def test_equal_predictions_are_at_distance_zero():
    proba = np.random.default_rng(0).dirichlet(np.ones(50), 20).astype(np.float32)
    assert np.all(np.diag(Laplace(0.01).block(proba, proba)) == 1)


@pytest.mark.parametrize("kernel", [Gaussian(0.2), Laplace(0.2)], ids=repr)
@pytest.mark.parametrize("n_left", [1, 300])
def test_float32_loses_a_few_units_of_the_squared_distance(kernel, n_left):
    rng = np.random.default_rng(0)
    corners, inside = np.eye(300)[:50], rng.dirichlet(np.full(300, 0.1), 950)
    points = np.concatenate([corners, inside])[rng.permutation(1000)].astype(np.float32)
    exact = kernel.block(points[:n_left].astype(float), points.astype(float))
    allowed = 10 * np.finfo(np.float32).eps / kernel.scale**2
    np.testing.assert_allclose(kernel.block(points[:n_left], points), exact, rtol=0, atol=allowed)
    assert np.all(np.diag(kernel.block(points, points)) == 1)


def test_the_median_scale_is_the_median_distance():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    distances = [np.linalg.norm(proba[i] - proba[j]) for i in range(40) for j in range(i)]
    resolved = Laplace("median").resolve(proba)
    assert resolved.scale == pytest.approx(np.median(distances))
    assert resolved.resolve(proba[:3]) == resolved
    assert median_distance(np.tile(proba[:1], (5, 1))) == 1.0
    assert median_distance(np.tile(proba, (100, 1))) == pytest.approx(np.median(distances), rel=0.1)


def test_an_unresolved_scale_is_refused():
    with pytest.raises(ValueError, match="resolve"):
        Gaussian("median").block(np.eye(2), np.eye(2))


def test_any_function_is_a_kernel():
    linear = CallableKernel(lambda left, right: left @ right.T, bound=1.0)
    np.testing.assert_array_equal(linear.block(np.eye(3), np.eye(3)[:2]), np.eye(3)[:, :2])
    assert linear.bound == 1.0
    assert "lambda" in linear.describe()
    with pytest.raises(TypeError, match="cannot be saved"):
        packed(linear)
    with pytest.raises(ValueError, match="finite values of shape"):
        CallableKernel(lambda left, right: left, 1.0).block(np.eye(3), np.eye(3)[:2])
    with pytest.raises(ValueError, match="finite values of shape"):
        CallableKernel(lambda left, right: np.full((len(left), len(right)), np.nan), 1.0).block(
            np.eye(2), np.eye(2)
        )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Multinomial(-1), ValueError, "degree must be an integer, at least 0"),
        (lambda: Multinomial(1.5), ValueError, "degree must be an integer"),
        (lambda: Laplace(0), ValueError, "scale must be positive"),
        (lambda: Laplace(-1), ValueError, "scale must be a number"),
        (lambda: Gaussian("mean"), ValueError, "'median'"),
        (lambda: CallableKernel(3, 1.0), TypeError, "function must be callable"),
        (lambda: CallableKernel(print, 0), ValueError, "bound must be positive"),
        (lambda: Multinomial(10**9), ValueError, "degree must be at most 100,000"),
        (lambda: Gaussian(1e-12), ValueError, "scale must lie in"),
        (lambda: unpacked({"is": "kernel/cubic"}, {}), ValueError, "there is no 'kernel/cubic'"),
    ],
)
def test_bad_parameters_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_kernels_compare_by_their_parameters():
    assert Multinomial(3) == Multinomial(3) != Multinomial(4)
    assert len({Laplace(1.0), Laplace(1.0), Gaussian(1.0)}) == 2
