"""Maps with a full matrix: the objective, its minimum, and the parts of the search for it."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from tests.reference_calibrators import logs
from tests.strategies import samples

from polycal._validation import check_sample
from polycal.calibrators import _likelihood, _matrix_blocks, _newton_blocks
from polycal.calibrators._log_linear import TOLERANCE, LogLinearProblem, fit_log_linear
from polycal.calibrators._matrix_blocks import MatrixBlocks
from polycal.calibrators._matrix_ridge import MatrixRidge

RIDGES = [MatrixRidge(1.0, 0.01, 0.01), MatrixRidge(1e-2, 1e-3, 1e-1), MatrixRidge(1e-5, 1e-4, 1e-6)]


def draw(n=300, k=4, seed=0, weighted=False):
    """Over-confident predictions in which one class is taken for another."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, 0.5), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = truth**2
    proba[:, 0] += 0.5 * proba[:, 1]
    proba /= proba.sum(axis=1, keepdims=True)
    return check_sample(labels, proba, sample_weight=rng.integers(0, 4, n) if weighted else None)


def slow_objective(sample, ridge, point):
    """The penalised log loss in the words of the docstrings."""
    k = sample.n_classes
    W, b = point[: k * k].reshape(k, k), point[k * k :]
    at_label = log_softmax(logs(sample.proba) @ W + b, axis=1)[np.arange(sample.n_samples), sample.labels]
    own = np.diag(W)
    off = ((W - np.diag(own)) ** 2).sum()
    penalty = ridge.off_diagonal * off + ridge.diagonal * ((own - own.mean()) ** 2).sum() + ridge.bias * b @ b
    return -sample.mass @ at_label + penalty / 2


def slow_minimum(sample, ridge):
    """The least objective that BFGS finds."""
    k, x, onehot = sample.n_classes, logs(sample.proba), np.eye(sample.n_classes)[sample.labels]

    def gradient(point):
        W, b = point[: k * k].reshape(k, k), point[k * k :]
        residual = (softmax(x @ W + b, axis=1) - onehot) * sample.mass[:, None]
        own = np.diag(W)
        held = ridge.off_diagonal * (W - np.diag(own)) + ridge.diagonal * np.diag(own - own.mean())
        return np.concatenate([(x.T @ residual + held).ravel(), residual.sum(axis=0) + ridge.bias * b])

    start = np.concatenate([np.eye(k).ravel(), np.zeros(k)])
    options = {"maxiter": 5000, "gtol": 1e-8}
    return minimize(lambda p: slow_objective(sample, ridge, p), start, jac=gradient, options=options).fun


def make_problem(k=4, ridge=RIDGES[1]):
    sample = draw(k=k, weighted=True)
    return sample, LogLinearProblem(sample, _likelihood.log_proba(sample), ridge)


def dense_hessian(problem, at, shape):
    units = np.eye(np.prod(shape)).reshape(-1, *shape)
    return np.stack([problem.product(at, unit).ravel() for unit in units])


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("small", [2**16, 0])
def test_the_objective_is_within_the_tolerance_of_its_minimum(monkeypatch, ridge, small):
    """In double precision, and with the curvature in single precision."""
    monkeypatch.setattr(_likelihood, "_SMALL", small)
    sample = draw(weighted=True)
    W, b = fit_log_linear(sample, ridge)
    found = slow_objective(sample, ridge, np.concatenate([W.ravel(), b]))
    assert found <= slow_minimum(sample, ridge) + TOLERANCE


def test_few_rows_for_each_class_lead_to_the_same_minimum(monkeypatch):
    sample, ridge = draw(k=12), MatrixRidge(1e-2, 1e-3, 1e-3)
    full = fit_log_linear(sample, ridge)
    monkeypatch.setattr(_matrix_blocks, "_LARGEST", 5)
    few = fit_log_linear(sample, ridge)
    np.testing.assert_allclose(few[0], full[0], atol=1e-4)
    np.testing.assert_allclose(few[1], full[1], atol=1e-4)


@pytest.mark.parametrize("ridge", RIDGES)
def test_few_products_are_needed(monkeypatch, ridge):
    """Without centring the steps, or with a diagonal for the blocks, it would be several times as many."""
    calls, product = [], LogLinearProblem.product
    monkeypatch.setattr(LogLinearProblem, "product", lambda *given: calls.append(1) or product(*given))
    fit_log_linear(draw(n=2000, k=12), ridge)
    assert len(calls) < 25


def test_value_gradient_and_product_are_those_of_the_objective():
    sample, problem = make_problem()
    rng = np.random.default_rng(0)
    point, way = rng.normal(size=(2, 5, 4))
    at = problem.evaluate(point)
    assert at.value == pytest.approx(slow_objective(sample, RIDGES[1], point.ravel()))
    ahead, behind = (problem.evaluate(point + h * way) for h in (1e-4, -1e-4))
    assert (ahead.value - behind.value) / 2e-4 == pytest.approx(np.vdot(at.gradient, way), rel=1e-5)
    np.testing.assert_allclose(
        problem.product(at, way), (ahead.gradient - behind.gradient) / 2e-4, rtol=1e-4, atol=1e-6
    )


def test_centring_changes_no_prediction_and_costs_least():
    ridge = MatrixRidge(0.7, 0.2, 0.1)
    step = np.random.default_rng(0).normal(size=(5, 4))
    centred = ridge.centred(step.copy())
    np.testing.assert_allclose(np.ptp(step - centred, axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(ridge.gradient(centred).sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("largest", [256, 2])
def test_the_preconditioner_is_symmetric_and_positive_on_gradients(monkeypatch, largest):
    monkeypatch.setattr(_matrix_blocks, "_LARGEST", largest)
    _, problem = make_problem()
    precondition = problem.preconditioner(problem.evaluate(np.eye(5, 4)))
    gradients = np.random.default_rng(0).normal(size=(10, 5, 4))
    gradients -= gradients.mean(axis=2, keepdims=True)
    products = [[np.vdot(a, precondition(b)) for b in gradients] for a in gradients]
    np.testing.assert_allclose(products, np.transpose(products), rtol=1e-6, atol=1e-6)
    assert np.linalg.eigvalsh(products).min() > 0.0


def test_blocks_and_vector_scaling_are_inverted(monkeypatch):
    """The sum of the inverses of the Hessian's blocks, and of its part for the diagonal and the bias."""
    monkeypatch.setattr(_newton_blocks, "_NEGLIGIBLE", 0.0)
    sample, problem = make_problem()
    at = problem.evaluate(np.eye(5, 4))
    hessian = dense_hessian(problem, at, (5, 4))
    strengths = RIDGES[1].strengths(4)
    features = np.hstack([logs(sample.proba), np.ones((300, 1))])
    step = MatrixBlocks(features, at.proba, sample.mass, strengths).solve(np.ones((5, 4)))
    index = np.arange(20).reshape(5, 4)
    expected = np.zeros(20)
    for c in range(4):
        block = hessian[np.ix_(index[:, c], index[:, c])].copy()
        # In its block, a class's diagonal is held towards 0, not towards the mean.
        block[c, c] += strengths[0, 0] / 4
        expected[index[:, c]] += np.linalg.solve(block, np.ones(5))
    vector = np.concatenate([np.diagonal(index), index[4]])
    expected[vector] += np.linalg.solve(hessian[np.ix_(vector, vector)], np.ones(8))
    np.testing.assert_allclose(step, expected.reshape(5, 4), rtol=1e-5)


@given(samples())
@settings(max_examples=30, deadline=None)
def test_no_start_is_better_than_the_end(drawn):
    labels, proba, weight = drawn
    sample, ridge = check_sample(labels, proba, sample_weight=weight), MatrixRidge(0.1, 0.01, 0.01)
    W, b = fit_log_linear(sample, ridge)
    k = sample.n_classes
    found = slow_objective(sample, ridge, np.concatenate([W.ravel(), b]))
    for inverse in (0.2, 1.0, 3.0):
        start = np.concatenate([inverse * np.eye(k).ravel(), np.zeros(k)])
        assert found <= slow_objective(sample, ridge, start) + 2 * TOLERANCE


@pytest.mark.parametrize("ridge", [MatrixRidge(0.0, 0.0, 0.0), MatrixRidge(0.0, 1.0, 0.0)])
def test_no_ridge_is_no_error(ridge):
    sample = draw(k=3)
    W, b = fit_log_linear(sample, ridge)
    fitted = slow_objective(sample, ridge, np.concatenate([W.ravel(), b]))
    assert fitted < slow_objective(sample, ridge, np.concatenate([np.eye(3).ravel(), np.zeros(3)]))


def test_separable_data_end_somewhere():
    """Without a ridge there is no minimum: the loss falls to 0."""
    labels = np.arange(30) % 3
    sample = check_sample(labels, 0.7 * np.eye(3)[labels] + 0.1)
    W, b = fit_log_linear(sample, MatrixRidge(0.0, 0.0, 0.0))
    assert np.isfinite([*W, b]).all()
