import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import approx_fprime, minimize
from tests.strategies import samples

from polycal._validation import check_sample
from polycal.calibrators._choice import Choice, choose
from polycal.calibrators._fold_path import FoldPath
from polycal.calibrators._kernel_features import FEATURES_OF_INPUT, features_of_base
from polycal.calibrators._mixture_base import _loss as mixture_loss
from polycal.calibrators._mixture_base import fit_mixture_base
from polycal.calibrators._newton_blocks import NewtonBlocks
from polycal.calibrators._ridge import DenseProblem
from polycal.calibrators._scoring import Scores, logit_scores, proba_scores
from polycal.calibrators._shared_curve import KNOTS, SharedCurve, fit_shared_curve
from polycal.calibrators._sparse_problem import SparseProblem
from polycal.calibrators._tilt import fit_tilt, tilt_derivatives
from polycal.sample import split_rows
from polycal.steps import Softmax, run


def draw(n=300, k=4, seed=0, weighted=False):
    """Over-confident predictions with a confusion that temperature scaling cannot see."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, 0.7), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = truth**1.6
    proba[:, 0] += 0.4 * proba[:, 1]
    proba /= proba.sum(axis=1, keepdims=True)
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    return check_sample(labels, proba, sample_weight=weight)


def make_problem(k=4, weighted=True):
    """A ridge problem and its preconditioner."""
    sample = draw(k=k, weighted=weighted)
    log_proba = np.log(sample.proba).astype(np.float32)
    kind = features_of_base(k)
    features, penalty = kind.of(log_proba), kind.penalty(k)
    mass = sample.mass.astype(np.float32)
    problem = DenseProblem(features, log_proba, sample.labels, mass, penalty)
    return problem, NewtonBlocks(features, np.exp(log_proba), mass, penalty, 128)


KINDS = pytest.mark.parametrize("kind", [features_of_base(3), FEATURES_OF_INPUT], ids=["base", "input"])


@KINDS
def test_features_are_the_definition(kind):
    proba = np.array([[0.7, 0.3, 0.0], [1e-5, 0.5, 0.49999]])
    with np.errstate(divide="ignore"):
        features = kind.of(np.log(proba).astype(np.float32))
    logs = np.log(np.maximum(proba, kind.floor) / kind.floor) / np.log(1 / kind.floor)
    np.testing.assert_allclose(features, np.hstack([np.ones((2, 1)), proba, logs]), atol=1e-6)


@KINDS
def test_branches_are_the_features_times_the_weights(kind):
    rng = np.random.default_rng(0)
    proba, weight = rng.dirichlet(np.ones(3), 20), rng.normal(size=(7, 3))
    expected = kind.of(np.log(proba).astype(np.float32)) @ weight
    np.testing.assert_allclose(run(kind.steps(weight), proba), expected, atol=1e-5)


def test_ridge_gradient_is_the_slope_of_the_objective():
    problem, _ = make_problem()
    rng = np.random.default_rng(1)
    weight, way = rng.normal(size=(2, 9, 4)).astype(np.float32)
    ahead, behind = (problem.loss(weight + np.float32(h) * way, 0.1)[0] for h in (0.03, -0.03))
    slope = float(np.vdot(problem.loss(weight, 0.1)[1], way))
    assert (ahead - behind) / 0.06 == pytest.approx(slope, rel=1e-3)


def test_sparse_problem_is_the_dense_one_without_unlikely_classes():
    problem, _ = make_problem()
    features = problem.features.copy()
    features[:, 1:5][features[:, 5:] == 0.0] = 0.0
    arrays = problem.offset, problem.labels, problem.mass, problem.penalty
    weight = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
    sparse = SparseProblem.from_features(problem.features, *arrays)
    assert sparse.values.size < problem.features.size
    value, gradient = DenseProblem(features, *arrays).log_loss(weight)
    assert sparse.log_loss(weight)[0] == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(sparse.log_loss(weight)[1], gradient, atol=1e-5)


def test_sparse_problem_leaves_out_rows_without_weight():
    problem, _ = make_problem(weighted=False)
    arrays = problem.features, problem.offset, problem.labels, problem.mass, problem.penalty
    mass = np.zeros(300, dtype=np.float32)
    mass[:100] = 0.01
    weight = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
    few = SparseProblem.from_features(*(a[:100] for a in arrays[:3]), mass[:100], problem.penalty)
    some = SparseProblem.from_features(*arrays).with_mass(mass)
    assert some.log_loss(weight)[0] == few.log_loss(weight)[0]
    np.testing.assert_array_equal(some.log_loss(weight)[1], few.log_loss(weight)[1])


@pytest.mark.parametrize("strength", [1e-1, 1e-3, 1e-5])
def test_ridge_solver_reaches_the_optimum_of_scipy(strength):
    problem, blocks = make_problem()

    def objective(flat):
        value, gradient = problem.loss(flat.reshape(9, 4).astype(np.float32), strength)
        return value, gradient.ravel().astype(float)

    best = minimize(objective, np.zeros(36), jac=True, method="L-BFGS-B", options={"maxiter": 5000}).fun
    start = np.zeros((9, 4), dtype=np.float32)
    for _ in range(3):
        start = problem.solve(start, strength, blocks, 1e-8)
    assert problem.loss(start, strength)[0] == pytest.approx(best, rel=2e-5)


def test_blocks_invert_the_blocks_of_the_hessian():
    problem, blocks = make_problem(weighted=False)
    proba = np.exp(problem.offset.astype(float))
    gradient = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    step = blocks.solve(gradient, 0.01)
    features = problem.features.astype(float)
    for c in range(4):
        curvature = proba[:, c] * (1 - proba[:, c]) / proba.shape[0]
        block = 2 * (features.T * curvature) @ features + 0.01 * np.diag(problem.penalty[:, c].astype(float))
        np.testing.assert_allclose(block @ step[:, c], gradient[:, c], atol=2e-2)


def test_small_blocks_leave_the_rest_to_the_diagonal():
    problem, _ = make_problem()
    proba = np.exp(problem.offset)
    small = NewtonBlocks(problem.features, proba, problem.mass, problem.penalty, 3)
    weight = problem.solve(np.zeros((9, 4), dtype=np.float32), 1e-2, small, 1e-7)
    assert problem.loss(weight, 1e-2)[0] < problem.loss(np.zeros_like(weight), 1e-2)[0]
    gradient = problem.loss(weight, 1e-2)[1]
    assert float(np.vdot(small.solve(gradient, 1e-2), gradient)) > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_mixture_gradient_is_the_slope_of_its_loss(weighted):
    sample = draw(weighted=weighted)
    logs = np.log(sample.proba).astype(np.float32)
    frequency = np.bincount(sample.labels, minlength=4) / sample.n_samples
    point = np.array([0.2, -1.5, 0.4])
    numeric = approx_fprime(point, lambda p: mixture_loss(sample, logs, frequency, p)[0], 1e-3)
    np.testing.assert_allclose(mixture_loss(sample, logs, frequency, point)[1], numeric, atol=1e-3)


@given(samples())
@settings(max_examples=40, deadline=None)
def test_base_makes_every_class_possible(drawn):
    labels, proba, weight = drawn
    sample = check_sample(labels, proba, sample_weight=weight)
    q = np.exp(fit_mixture_base(sample).log_proba(sample))
    assert q.min() > 0
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-5)


def test_tilt_derivatives_are_slopes():
    sample = draw(weighted=True)
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


def test_curve_steps_are_what_apply_does():
    log_proba = np.log(draw().proba).astype(np.float32)
    curve = SharedCurve(np.linspace(-1, 1, len(KNOTS)))
    expected = run((*curve.logit_steps(), Softmax()), np.exp(log_proba.astype(np.float64)))
    curve.apply(log_proba)
    np.testing.assert_allclose(np.exp(log_proba), expected, atol=1e-5)


def test_curve_lowers_the_log_loss():
    sample = draw(n=2000)
    log_proba = np.log(sample.proba).astype(np.float32)
    before = logit_scores(sample, log_proba, log_proba, 1.0, 0.0)
    fit_shared_curve(sample, log_proba).apply(log_proba)
    assert logit_scores(sample, log_proba, log_proba, 1.0, 0.0).log_loss < before.log_loss


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_their_definitions(weighted):
    sample = draw(weighted=weighted)
    onehot = np.eye(4)[sample.labels]
    expected = [
        -np.log((sample.proba * onehot).sum(axis=1)),
        ((sample.proba - onehot) ** 2).sum(axis=1),
        sample.proba.argmax(axis=1) == sample.labels,
    ]
    logs = np.log(sample.proba).astype(np.float32)
    for scores in (proba_scores(sample), logit_scores(sample, 2 * logs, logs, 0.25, 0.5)):
        means = scores.log_loss, scores.brier, scores.accuracy
        np.testing.assert_allclose(means, [e @ sample.mass for e in expected], rtol=1e-5)
        assert scores.relative_gain(scores) == scores.accuracy_gain(scores) == (0.0, 0.0)


def test_rows_without_weight_do_not_count_even_when_infinitely_wrong():
    sample = check_sample([0, 1], [[1.0, 0.0], [1.0, 0.0]], sample_weight=[1.0, 0.0])
    scores = proba_scores(sample)
    assert (scores.log_loss, scores.brier, scores.accuracy) == (0.0, 0.0, 1.0)


def test_gains_come_with_standard_errors():
    mass = np.full(4, 0.25)
    good = Scores(np.ones(4), np.ones(4), np.array([True, True, True, False]), mass, 4.0)
    bad = Scores(np.array([2.0, 2, 2, 6]), np.full(4, 2.0), np.array([False, True, True, True]), mass, 4.0)
    gain, error = good.relative_gain(bad)
    assert gain == pytest.approx(2 / 3 + 1 / 2)
    assert error == pytest.approx(np.std([1, 1, 1, 5]) / 3 / 2)
    assert good.accuracy_gain(bad) == pytest.approx((0.0, np.sqrt(2) / 4))


def fold_path(sample, log_proba, n_folds):
    """The path with features of the base."""
    parts = split_rows(sample, (1,) * n_folds, 0)
    return FoldPath(sample, log_proba, features_of_base(sample.n_classes), log_proba, parts)


def test_held_out_changes_do_not_depend_on_held_out_labels():
    sample = draw()
    log_proba = np.log(sample.proba).astype(np.float32)
    path = fold_path(sample, log_proba, 3)
    held = path.order[path.folds[0]]
    flipped = sample.labels.copy()
    flipped[held] = (flipped[held] + 1) % 4
    other = fold_path(sample, log_proba, 3)
    other.sample.labels[other.folds[0]] = flipped[held]
    changes = [next(p.solutions([0.01]))[2][path.folds[0]] for p in (path, other)]
    np.testing.assert_array_equal(*changes)


def test_choice_is_the_best_of_its_table_up_to_the_least_gain():
    sample = draw(n=3000)
    log_proba = np.log(sample.proba).astype(np.float32)
    path = fold_path(sample, log_proba, 4)
    standard = logit_scores(path.sample, path.log_proba, path.log_proba, 1.0, 0.0)
    choice = choose(path, standard, standard, Choice())
    table = np.array(choice.table)
    gains = 2 - table[:, 2] / standard.log_loss - table[:, 3] / standard.brier
    assert choice.gain > 0.0
    assert choice.gain >= gains.max() - 0.002 - 1e-6
    assert choice.strength in table[:, 0]
    np.testing.assert_allclose(choice.final_weight().sum(axis=1), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("gained", "spread", "taken"), [(0.1, 0.01, True), (0.1, 50.0, False), (0.0, 0.0, False)]
)
def test_a_richer_kind_must_gain_more_than_noise(gained, spread, taken):
    rng = np.random.default_rng(0)
    losses, briers = rng.random((2, 400)) + 1.0
    noise = spread * rng.normal(size=400)
    noise -= noise.mean()
    plain, rich = (
        Scores(loss, briers, np.ones(400, dtype=bool), np.full(400, 1 / 400), 400.0)
        for loss in (losses, losses - gained + noise)
    )
    before = Choice(gain=0.1, scores=plain, table=[(1.0,)])
    after = before.or_better(Choice(gain=0.2, scores=rich, table=[(2.0,)]))
    assert (after.scores is rich) == taken
    assert after.table == [(1.0,), (2.0,)]
