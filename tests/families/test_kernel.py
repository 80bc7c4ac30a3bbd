import numpy as np
import pytest
from hypothesis import given, settings
from tests import reference_kernel as reference
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.families.auditor import AMPLIFICATIONS, amplified_gains
from polycal.families.kernel import KernelAuditor
from polycal.kernels import products
from polycal.kernels.kernels import CallableKernel, Gaussian, Laplace, Multinomial
from polycal.kernels.products import kernel_times
from polycal.storage.saved import packed, unpacked


def plain(degree=2):
    """The paper's Algorithm 2."""
    return KernelAuditor(Multinomial(degree), amplify=False)


@pytest.mark.parametrize("degree", [0, 1, 3])
@settings(max_examples=40, deadline=None)
@given(drawn=samples(max_rows=12))
def test_algorithm_two_is_the_loops(degree, drawn):
    labels, proba, weight = drawn
    witness = plain(degree).find_witness(labels, proba, sample_weight=weight)
    s = np.sqrt(degree + 1)
    lam, loops = reference.algorithm_two(
        labels, proba, lambda v, u: reference.multinomial(v, u, degree), s, weight
    )
    at = np.concatenate([proba, np.eye(proba.shape[1])])
    np.testing.assert_allclose(witness(at), [loops(v) for v in at], atol=1e-6)
    total = len(labels) if weight is None else weight.sum()
    np.testing.assert_allclose(witness.strengths, lam / (total * s), atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(drawn=samples())
def test_own_sample_correlation_is_the_sum_of_strengths(drawn):
    labels, proba, weight = drawn
    witness = plain().find_witness(labels, proba, sample_weight=weight)
    correlation = witness.correlation(check_sample(labels, proba, sample_weight=weight))
    assert correlation == pytest.approx(witness.strengths.sum(), abs=1e-9)


@pytest.mark.parametrize("kernel", [Multinomial(8), Laplace(0.1), Gaussian(0.2)], ids=repr)
@settings(max_examples=30, deadline=None)
@given(drawn=samples())
def test_values_need_no_clipping(kernel, drawn):
    labels, proba, weight = drawn
    witness = KernelAuditor(kernel, amplify=False).find_witness(labels, proba, sample_weight=weight)
    at = np.concatenate([proba, np.eye(proba.shape[1])])
    values = kernel_times(kernel, witness.points, witness.coefficients, at=at)
    assert np.abs(values).max() <= 1 + 1e-6


@settings(max_examples=30, deadline=None)
@given(drawn=samples())
def test_amplified_values_are_in_range(drawn):
    labels, proba, weight = drawn
    witness = KernelAuditor().find_witness(labels, proba, sample_weight=weight)
    assert np.abs(witness(np.concatenate([proba, np.eye(proba.shape[1])]))).max() <= 1
    assert witness.amplification >= 1


def test_one_hot_predictions_reach_but_do_not_pass_one():
    witness = plain(4).find_witness([1, 1], np.eye(2)[[0, 0]])
    np.testing.assert_allclose(witness(np.eye(2)), [[-1, 1], [-0.2, 0.2]])


def test_a_class_without_residual_gets_weight_zero():
    labels, proba = [0, 1, 0], np.array([[0.4, 0.6, 0.0], [0.7, 0.3, 0.0], [0.2, 0.8, 0.0]])
    witness = plain().find_witness(labels, proba)
    assert np.all(witness(proba)[:, 2] == 0)
    assert witness.strengths[2] == 0
    assert not np.any(plain().find_witness([0, 1, 1], np.eye(2)[[0, 1, 1]])(np.eye(2)))


def test_exactly_calibrated_counts_give_no_witness():
    proba = np.repeat([[0.25, 0.75], [0.5, 0.5]], 8, axis=0)
    labels = [0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]
    witness = plain(3).find_witness(labels, proba)
    assert np.all(witness.strengths == 0)
    assert "no class" in witness.describe()


@settings(max_examples=30, deadline=None)
@given(drawn=samples(weighted=True))
def test_weight_two_is_the_row_twice(drawn):
    labels, proba, weight = drawn
    times = weight.astype(int)
    weighted = plain().find_witness(labels, proba, sample_weight=weight)
    repeated = plain().find_witness(np.repeat(labels, times), np.repeat(proba, times, axis=0))
    np.testing.assert_allclose(weighted(proba), repeated(proba), atol=1e-7)


@pytest.mark.parametrize("amplify", [False, True])
def test_row_order_does_not_matter(amplify):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(4), 60), rng.integers(0, 4, 60)
    order = rng.permutation(60)
    auditor = KernelAuditor(amplify=amplify)
    first, second = auditor.find_witness(labels, proba), auditor.find_witness(labels[order], proba[order])
    np.testing.assert_allclose(first(proba), second(proba), atol=1e-9)


def test_relabelling_classes_relabels_the_witness():
    rng = np.random.default_rng(0)
    proba, labels, new = rng.dirichlet(np.ones(4), 60), rng.integers(0, 4, 60), np.array([2, 0, 3, 1])
    witness, relabelled = (
        plain().find_witness(labels, proba),
        plain().find_witness(np.argsort(new)[labels], proba[:, new]),
    )
    np.testing.assert_allclose(relabelled(proba[:, new]), witness(proba)[:, new], atol=1e-9)


def test_float32_finds_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(5), 300), rng.integers(0, 5, 300)
    exact = plain().find_witness(labels, proba)
    monkeypatch.setattr(products, "_FLOAT32_ROWS", 0)
    rounded = plain().find_witness(labels, proba)
    assert rounded.points.dtype == np.float32
    np.testing.assert_allclose(rounded(proba), exact(proba), atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(drawn=samples())
def test_gains_are_the_correlations_of_the_clipped_values(drawn):
    labels, proba, weight = drawn
    z = reference.residual(labels, proba, weight)
    rng = np.random.default_rng(0)
    values, scale = (
        rng.normal(size=z.shape) * 10.0 ** rng.integers(-7, 1, z.shape),
        rng.uniform(0, 2, z.shape[1]),
    )
    direct = [np.sum(z * np.clip(c * values * scale, -1, 1)) for c in AMPLIFICATIONS]
    # An entry of modulus above 1 counts as clipped even for c = 1.
    np.testing.assert_allclose(amplified_gains(z, values, scale)[1:], direct[1:], atol=1e-9)
    small = np.clip(values * scale, -1, 1)
    np.testing.assert_allclose(amplified_gains(z, small, np.ones(z.shape[1]))[0], direct[0], atol=1e-9)


def test_amplification_finds_more_on_fresh_rows():
    fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    fit = fit.take(slice(3000))
    found = {
        amplify: KernelAuditor(Multinomial(8), amplify=amplify)
        .find_witness(fit.labels, fit.proba)
        .correlation(fresh)
        for amplify in (False, True)
    }
    assert found[True] > 1.5 * found[False] > 0.03


def test_calibrated_labels_give_nothing_on_fresh_rows():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 6000)
    labels = (proba.cumsum(axis=1) > rng.random((6000, 1))).argmax(axis=1)
    witness = KernelAuditor(Multinomial(4)).find_witness(labels[:2000], proba[:2000])
    fresh = witness.correlations(check_sample(labels[2000:], proba[2000:]))
    assert abs(fresh.mean()) < 4 * fresh.std() / np.sqrt(fresh.size)


# Two predictions and their true label probabilities: the error over the kernel's ball is known in closed form.
SUPPORT = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
TRUTH = np.array([[0.4, 0.3, 0.3], [0.1, 0.6, 0.3]])
MASS = np.array([0.6, 0.4])


def ball_error(kernel, radius):
    """CE over B(r)^k: r times the sum over classes of the norms of E z_l ker(v, .)."""
    z = MASS[:, None] * (TRUTH - SUPPORT)
    return radius * np.sqrt(np.diag(z.T @ kernel.block(SUPPORT, SUPPORT) @ z)).sum()


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_the_theorem_holds(radius):
    kernel, k, delta = Multinomial(2), 3, 0.1
    alpha = ball_error(kernel, radius)
    # The proof's own count for the mean deviation; its logarithmic part is left out, which is harder.
    n = int(np.ceil(72 * k * radius**2 * kernel.bound / alpha**2))
    promised = alpha / (3 * radius * np.sqrt(kernel.bound))
    rng = np.random.default_rng(0)
    cells = (MASS[:, None] * TRUTH).ravel()
    reached = []
    for _ in range(200):
        # A sample of a finite support is its counts: rows with weights.
        counts = rng.multinomial(n, cells)
        witness = KernelAuditor(kernel, amplify=False).find_witness(
            np.tile(np.arange(k), 2), np.repeat(SUPPORT, k, axis=0), sample_weight=counts
        )
        reached.append(reference.population_correlation(witness, SUPPORT, MASS, TRUTH) >= promised)
    assert np.mean(reached) >= 1 - delta


def test_the_witness_of_endless_data_is_optimal():
    kernel = Multinomial(3)
    cells = (MASS[:, None] * TRUTH).ravel()
    witness = KernelAuditor(kernel, amplify=False).find_witness(
        np.tile(np.arange(3), 2), np.repeat(SUPPORT, 3, axis=0), sample_weight=cells
    )
    attained = reference.population_correlation(witness, SUPPORT, MASS, TRUTH)
    assert attained == pytest.approx(ball_error(kernel, 1 / np.sqrt(kernel.bound)))


def test_few_rows_and_subsamples():
    assert KernelAuditor().find_witness([0], [[0.3, 0.7]]).amplification == 1
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(3), 500), rng.integers(0, 3, 500)
    for amplify in (False, True):
        witness = KernelAuditor(max_samples=100, amplify=amplify).find_witness(labels, proba)
        assert witness.points.shape == (100, 3)
    weight = np.zeros(500)
    weight[[3, 7]] = 1
    assert KernelAuditor(max_samples=2).find_witness(labels, proba, sample_weight=weight).points.shape == (
        2,
        3,
    )


def test_the_state_rebuilds_the_witness():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 50)
    for kernel in (Multinomial(3), Laplace("median"), Gaussian(0.2)):
        witness = KernelAuditor(kernel).find_witness(rng.integers(0, 5, 50), proba, class_names=list("abcde"))
        again = unpacked(*packed(witness))
        np.testing.assert_array_equal(again(proba), witness(proba))
        assert again.describe() == witness.describe()


def test_any_function_can_be_the_kernel_but_not_be_saved():
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40)
    kernel = CallableKernel(lambda left, right: 1 + left @ right.T, bound=2.0)
    witness = KernelAuditor(kernel, amplify=False).find_witness(labels, proba)
    np.testing.assert_allclose(witness(proba), plain(1).find_witness(labels, proba)(proba), atol=1e-12)
    with pytest.raises(TypeError, match="cannot be saved"):
        packed(witness)


def test_degrees_for_the_notions():
    assert KernelAuditor.for_projected_smooth(0.1).kernel == Multinomial(62)
    assert KernelAuditor.for_sigmoid(4, 0.1).kernel.degree < 62
    assert not KernelAuditor.for_sigmoid(4, 0.1, amplify=False).amplify
    with pytest.raises(ValueError, match="alpha must be positive"):
        KernelAuditor.for_projected_smooth(0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: KernelAuditor("rbf"), TypeError, "kernel must be a kernel"),
        (lambda: KernelAuditor(max_samples=0), ValueError, "max_samples must be an integer"),
        (lambda: KernelAuditor(random_state=-1), ValueError, "random_state must be an integer"),
    ],
)
def test_bad_parameters_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
