import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array
from tests.calibrators.draws import confused

from polycal._threads import thread_budget
from polycal._validation import check_sample
from polycal.calibrators import loss, regression
from polycal.calibrators.kernel.features import features_of_baseline
from polycal.calibrators.optimise import Effort
from polycal.calibrators.regression import (
    ClassBlocks,
    FoldModels,
    LastSearch,
    Ridge,
    SoftmaxRegression,
    fit_tilt,
    sort_by_fold,
    tilt_derivatives,
)

ALL = (slice(0, 300),)


def make_problem(weighted=True):
    """A regression of the kernel's features, and their relative penalties."""
    sample = confused(weighted=weighted)
    log_proba = np.log(sample.proba).astype(np.float32)
    kind = features_of_baseline(4)
    mass = sample.mass.astype(np.float32)
    return SoftmaxRegression(kind.of(log_proba), sample.labels, mass, log_proba, ALL), kind.penalty(4)


def penalised(problem, ridge, weight):
    return problem.loss(weight)[0] + 0.5 * np.vdot(ridge.gradient(weight), weight)


def test_tilt_derivatives_are_slopes():
    sample = confused(weighted=True)
    offset = np.log(sample.proba).astype(np.float32)
    along = np.random.default_rng(3).normal(size=(2, *offset.shape)).astype(np.float32)

    def at(point):
        return tilt_derivatives(sample, offset, lambda rows: along[:, rows], point)

    point = np.array([0.3, -0.2])
    numeric = approx_fprime(point, lambda p: at(p)[0], 1e-3)
    np.testing.assert_allclose(at(point)[1], numeric, atol=2e-3)
    second = [(at(point + h)[1] - at(point - h)[1]) / 0.02 for h in 0.01 * np.eye(2)]
    np.testing.assert_allclose(at(point)[2], second, atol=1e-3)


def test_tilt_finds_the_temperature():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(5), 20_000)
    labels = (proba.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1)
    hot = check_sample(labels, proba**2 / (proba**2).sum(axis=1, keepdims=True))
    logs = np.log(hot.proba).astype(np.float32)
    assert fit_tilt(hot, logs, lambda rows: logs[None, rows], 1) == pytest.approx([-0.5], abs=0.02)


def test_threads_change_no_number(monkeypatch):
    monkeypatch.setattr(loss, "LARGE", 0)
    monkeypatch.setattr(regression, "LARGE", 0)
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(np.ones(5), 3000)).astype(np.float32)
    labels, mass = rng.integers(0, 5, 3000), np.full(3000, 1 / 3000, dtype=np.float32)
    problem = SoftmaxRegression(logs, labels, mass, None, (slice(0, 900), slice(1500, 3000)))
    ridge, start = Ridge(np.ones((5, 5), np.float32), 1e-3), np.zeros((5, 5), np.float32)
    found = []
    for n_jobs in (1, 3):
        with thread_budget(n_jobs):
            found.append(problem.solve(ridge, start, Effort(1e-8, 50)))
    np.testing.assert_array_equal(*found)
    assert len(list(problem._blocks(start))) > 2


def test_a_search_begins_with_the_loss_that_the_one_before_ended_with(monkeypatch):
    problem, relative = make_problem()
    kept, seen, plain = LastSearch(), [], SoftmaxRegression._loss
    monkeypatch.setattr(SoftmaxRegression, "_loss", lambda *given: seen.append(given[1]) or plain(*given))
    first = problem.solve(Ridge(relative, 0.1), np.zeros_like(relative), Effort(1e-4, 12), kept)
    n_first = len(seen)
    again = problem.solve(Ridge(relative, 0.01), first, Effort(1e-4, 12), kept)
    assert all(weight is not first for weight in seen[n_first:])
    fresh = problem.solve(Ridge(relative, 0.01), first, Effort(1e-4, 12), LastSearch(kept.blocks))
    np.testing.assert_array_equal(again, fresh)


def test_gradient_is_the_slope_of_the_loss():
    problem, _ = make_problem()
    rng = np.random.default_rng(1)
    weight, way = rng.normal(size=(2, 9, 4))
    ahead, behind = (problem.loss(weight + h * way)[0] for h in (1e-4, -1e-4))
    assert (ahead - behind) / 2e-4 == pytest.approx(np.vdot(problem.loss(weight)[1], way), rel=1e-5)


def test_sparse_features_give_the_same_loss():
    problem, _ = make_problem()
    weight = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
    sparse = SoftmaxRegression(csr_array(problem.features), problem.labels, problem.mass, problem.offset, ALL)
    value, gradient = problem.loss(weight)
    assert sparse.loss(weight)[0] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(sparse.loss(weight)[1], gradient, atol=1e-6)


@pytest.mark.parametrize("fold", [slice(0, 100), slice(50, 90), slice(200, 300)])
def test_rows_of_a_fold_do_not_count(fold):
    problem, _ = make_problem()
    weight = np.random.default_rng(1).normal(size=(9, 4))
    rest = np.delete(np.arange(300), fold)
    mass = problem.mass[rest] / problem.mass[rest].sum()
    few = SoftmaxRegression(
        problem.features[rest], problem.labels[rest], mass, problem.offset[rest], (slice(0, rest.size),)
    )
    assert problem.without(fold).loss(weight)[0] == pytest.approx(few.loss(weight)[0], rel=1e-6)
    np.testing.assert_allclose(problem.without(fold).loss(weight)[1], few.loss(weight)[1], atol=1e-7)


@pytest.mark.parametrize("amount", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize(("dtype", "rel"), [(np.float32, 2e-5), (np.float64, 1e-8)])
def test_the_optimum_of_scipy_is_reached(amount, dtype, rel):
    problem, relative = make_problem()
    ridge = Ridge(relative.astype(dtype), amount)

    def objective(flat):
        weight = flat.reshape(9, 4)
        return penalised(problem, ridge, weight), (problem.loss(weight)[1] + ridge.gradient(weight)).ravel()

    options = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9}
    best = minimize(objective, np.zeros(36), jac=True, method="L-BFGS-B", options=options).fun
    found = problem.solve(ridge, np.zeros((9, 4), dtype=dtype), Effort(1e-10, 500))
    assert found.dtype == dtype
    assert penalised(problem, ridge, found) == pytest.approx(best, rel=rel)


def test_blocks_invert_the_blocks_of_the_hessian(monkeypatch):
    monkeypatch.setattr(regression, "_NEGLIGIBLE", 0.0)
    problem, relative = make_problem(weighted=False)
    proba = np.exp(problem.offset.astype(float))
    features = problem.features.astype(float)
    gradient = np.random.default_rng(0).normal(size=(9, 4))
    step = ClassBlocks(features, proba, problem.mass.astype(float), relative).solve(gradient, 0.01)
    for c in range(4):
        curvature = proba[:, c] * (1 - proba[:, c]) * problem.mass
        block = 2 * (features.T * curvature) @ features + 0.01 * np.diag(relative[:, c].astype(float))
        np.testing.assert_allclose(block @ step[:, c], gradient[:, c], atol=1e-6)


def test_small_blocks_leave_the_rest_to_the_diagonal():
    problem, relative = make_problem()
    small = ClassBlocks(problem.features, np.exp(problem.offset), problem.mass, relative, 3)
    ridge, start = Ridge(relative, 1e-2), np.zeros((9, 4), dtype=np.float32)
    weight = problem.solve(ridge, start, Effort(1e-7, 12), LastSearch(small))
    assert penalised(problem, ridge, weight) < penalised(problem, ridge, start)
    gradient = problem.loss(weight)[1] + ridge.gradient(weight)
    assert float(np.vdot(small.solve(gradient, 1e-2), gradient)) > 0


@pytest.mark.parametrize("block_size", [96, 3])
def test_preconditioners_are_symmetric_and_positive_on_gradients(block_size):
    problem, relative = make_problem()
    ridge = Ridge(relative.astype(float), 0.01)
    arrays = problem.features.astype(float), np.exp(problem.offset.astype(float)), problem.mass, relative
    blocks = ClassBlocks(*arrays, block_size)
    gradients = np.random.default_rng(0).normal(size=(10, 9, 4))
    gradients -= gradients.mean(axis=2, keepdims=True)
    products = [[np.vdot(a, ridge.centred(blocks.solve(b, 0.01))) for b in gradients] for a in gradients]
    np.testing.assert_allclose(products, np.transpose(products), rtol=1e-6, atol=1e-6)
    assert np.linalg.eigvalsh(products).min() > 0.0


def test_held_out_rows_do_not_depend_on_their_labels():
    problem, relative = make_problem()
    _, folds = sort_by_fold(np.split(np.arange(300), 3))
    flipped = problem.labels.copy()
    flipped[folds[0]] = (flipped[folds[0]] + 1) % 4
    other = SoftmaxRegression(problem.features, flipped, problem.mass, problem.offset, ALL)
    changes = []
    for one in (problem, other):
        models = FoldModels([one], folds, [np.zeros_like(relative)] * 3)
        models.move([Ridge(relative, 0.01)] * 3, Effort(1e-4, 12))
        changes.append(models.held_out())
    np.testing.assert_array_equal(*(change[folds[0]] for change in changes))
    assert not np.allclose(*(change[folds[1]] for change in changes))


def test_a_preconditioner_that_promises_too_much_does_not_end_the_search():
    problem, relative = make_problem()
    # Where all rows are certain there is no curvature, and the penalty is all that holds a step.
    blind = ClassBlocks(problem.features, np.eye(4, dtype=np.float32)[problem.labels], problem.mass, relative)
    ridge, start = Ridge(relative, 1e-7), np.zeros((9, 4), dtype=np.float32)
    found = problem.solve(ridge, start, Effort(1e-4, 12), LastSearch(blind))
    assert penalised(problem, ridge, found) < 0.98 * penalised(problem, ridge, start)
