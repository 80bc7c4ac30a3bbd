"""Maps with a full matrix: the objective and its minimum, and penalties chosen within the sample."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_linear, log_loss, logs
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators import loss, matrix
from polycal.calibrators.matrix import (
    EFFORT,
    N_FOLDS,
    RELATIVE_PENALTIES,
    DirichletCalibrator,
    MatrixScaling,
    fit_log_linear,
    tempered_map,
)
from polycal.calibrators.priors import MatrixPenalty
from polycal.calibrators.regression import SoftmaxRegression
from polycal.calibrators.temperature import TemperatureScaling
from polycal.calibrators.vector import VectorScaling
from polycal.sample import split_rows

PENALTIES = [
    MatrixPenalty(1.0, 0.01, 0.01),
    MatrixPenalty(1e-2, 1e-3, 1e-1),
    MatrixPenalty(1e-5, 1e-4, 1e-6),
]
PROBA, LABELS, _ = tempered(2.0, n=200, k=3)
few_rows = pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")
both = pytest.mark.parametrize("make", [MatrixScaling, DirichletCalibrator])


def draw_weighted(n=300, k=4, seed=0, weighted=False):
    """Over-confident predictions in which one class is taken for another."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, 0.5), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = truth**2
    proba[:, 0] += 0.5 * proba[:, 1]
    proba /= proba.sum(axis=1, keepdims=True)
    return check_sample(labels, proba, sample_weight=rng.integers(0, 4, n) if weighted else None)


def slow_objective(sample, penalty, point):
    """The penalised log loss in the words of the docstrings."""
    k = sample.n_classes
    W, b = point[: k * k].reshape(k, k), point[k * k :]
    at_label = log_softmax(logs(sample.proba) @ W + b, axis=1)[np.arange(sample.n_samples), sample.labels]
    own = np.diag(W)
    off = ((W - np.diag(own)) ** 2).sum()
    held = (
        penalty.off_diagonal * off + penalty.diagonal * ((own - own.mean()) ** 2).sum() + penalty.bias * b @ b
    )
    return -sample.mass @ at_label + held / 2


def slow_minimum(sample, penalty):
    """The least objective that BFGS finds."""
    k, x, onehot = sample.n_classes, logs(sample.proba), np.eye(sample.n_classes)[sample.labels]

    def gradient(point):
        W, b = point[: k * k].reshape(k, k), point[k * k :]
        residual = (softmax(x @ W + b, axis=1) - onehot) * sample.mass[:, None]
        own = np.diag(W)
        held = penalty.off_diagonal * (W - np.diag(own)) + penalty.diagonal * np.diag(own - own.mean())
        return np.concatenate([(x.T @ residual + held).ravel(), residual.sum(axis=0) + penalty.bias * b])

    start = np.concatenate([np.eye(k).ravel(), np.zeros(k)])
    options = {"maxiter": 5000, "gtol": 1e-8}
    return minimize(lambda p: slow_objective(sample, penalty, p), start, jac=gradient, options=options).fun


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("small", [2**16, 0])
def test_the_objective_is_within_the_tolerance_of_its_minimum(monkeypatch, penalty, small):
    """In double precision, and with the curvature in single precision."""
    monkeypatch.setattr(loss, "_SMALL", small)
    sample = draw_weighted(weighted=True)
    W, b = fit_log_linear(sample, penalty)
    found = slow_objective(sample, penalty, np.concatenate([W.ravel(), b]))
    assert found <= slow_minimum(sample, penalty) + EFFORT.tolerance


@pytest.mark.parametrize("penalty", PENALTIES)
def test_few_passes_are_needed(monkeypatch, penalty):
    """Without centring the steps, or with a diagonal for the blocks, it would be several times as many."""
    calls, passed = [], SoftmaxRegression.loss
    monkeypatch.setattr(SoftmaxRegression, "loss", lambda *given: calls.append(1) or passed(*given))
    fit_log_linear(draw_weighted(n=2000, k=12), penalty)
    assert len(calls) < 25


def test_centring_changes_no_prediction_and_costs_least():
    penalty = MatrixPenalty(0.7, 0.2, 0.1)
    step = np.random.default_rng(0).normal(size=(5, 4))
    centred = penalty.centred(step.copy())
    np.testing.assert_allclose(np.ptp(step - centred, axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(penalty.gradient(centred).sum(axis=1), 0.0, atol=1e-12)


@given(samples())
@settings(max_examples=30, deadline=None)
def test_no_start_is_better_than_the_end(drawn):
    labels, proba, weight = drawn
    sample, penalty = check_sample(labels, proba, sample_weight=weight), MatrixPenalty(0.1, 0.01, 0.01)
    W, b = fit_log_linear(sample, penalty)
    k = sample.n_classes
    found = slow_objective(sample, penalty, np.concatenate([W.ravel(), b]))
    for inverse in (0.2, 1.0, 3.0):
        start = np.concatenate([inverse * np.eye(k).ravel(), np.zeros(k)])
        assert found <= slow_objective(sample, penalty, start) + 2 * EFFORT.tolerance


@pytest.mark.parametrize("penalty", [MatrixPenalty(0.0, 0.0, 0.0), MatrixPenalty(0.0, 1.0, 0.0)])
def test_no_penalty_is_no_error(penalty):
    sample = draw_weighted(k=3)
    W, b = fit_log_linear(sample, penalty)
    fitted = slow_objective(sample, penalty, np.concatenate([W.ravel(), b]))
    assert fitted < slow_objective(sample, penalty, np.concatenate([np.eye(3).ravel(), np.zeros(3)]))


def test_separable_data_end_somewhere():
    """Without a penalty there is no minimum: the loss falls to 0."""
    labels = np.arange(30) % 3
    sample = check_sample(labels, 0.7 * np.eye(3)[labels] + 0.1)
    W, b = fit_log_linear(sample, MatrixPenalty(0.0, 0.0, 0.0))
    assert np.isfinite([*W, b]).all()


def test_the_minimum_of_matrix_scaling_is_found():
    fitted = MatrixScaling(off_diagonal=30.0, diagonal=5.0).fit(PROBA, LABELS)

    def penalty(W, b):
        diagonal = np.diag(W)
        off = W - np.diag(diagonal)
        return 15.0 * (off**2).sum() + 2.5 * (((diagonal - diagonal.mean()) ** 2).sum() + (b**2).sum())

    W, b = log_linear(PROBA, LABELS, penalty, 3)
    np.testing.assert_allclose(fitted.weight_, W, atol=3e-3)
    np.testing.assert_allclose(fitted.bias_, b, atol=3e-3)


def test_the_minimum_of_dirichlet_calibration_is_found():
    fitted = DirichletCalibrator(off_diagonal=30.0, intercept=5.0).fit(PROBA, LABELS)

    def penalty(W, b):
        diagonal = np.diag(W)
        off = W - np.diag(diagonal)
        return 15.0 * (off**2).sum() + 0.5 * ((diagonal - diagonal.mean()) ** 2).sum() + 2.5 * (b**2).sum()

    W, b = log_linear(PROBA, LABELS, penalty, 3)
    np.testing.assert_allclose(fitted.weight_, W, atol=3e-3)
    np.testing.assert_allclose(fitted.bias_, b, atol=3e-3)


def test_a_large_penalty_is_vector_scaling():
    fitted = MatrixScaling(off_diagonal=1e9, diagonal=3.0, prior=None).fit(PROBA, LABELS)
    vector = VectorScaling(ridge=3.0, prior=None).fit(PROBA, LABELS)
    np.testing.assert_allclose(fitted.predict_proba(PROBA), vector.predict_proba(PROBA), atol=1e-4)


def test_dirichlet_densities_are_undone():
    """With Dirichlet predictions in each class, the family holds the truth (Kull et al., theorem 1)."""
    rng = np.random.default_rng(0)
    alpha = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 1.0], [1.0, 2.0, 3.0]])
    labels = rng.integers(0, 3, 20_000)
    proba = np.array([rng.dirichlet(alpha[label]) for label in labels])
    fitted = DirichletCalibrator(off_diagonal=0.1, intercept=0.1).fit(proba, labels)
    # log-odds of the classes are linear in log v with slopes alpha; rows of W count up to a shift.
    difference = fitted.weight_ - fitted.weight_.mean(axis=1, keepdims=True)
    expected = alpha.T - alpha.T.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(difference, expected, atol=0.25)


def draw(n=400, k=4, seed=0, mixed=0.5, concentration=0.5):
    """Over-confident predictions that give part of class 1 to class 0; labels from the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, concentration), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = np.maximum(truth, 1e-9) ** 1.5
    proba[:, 0] += mixed * proba[:, 1]
    proba[:, 1] *= 1 - mixed
    return proba / proba.sum(axis=1, keepdims=True), labels


def brute_force(make, sample, n_held_out):
    """For each penalty, the log losses of the rows of the first ``n_held_out`` parts, each part without its own."""
    parts = split_rows(sample, (1.0,) * N_FOLDS, 0)[:n_held_out]
    table = []
    for penalty in RELATIVE_PENALTIES * sample.n_samples:
        losses = []
        for part in parts:
            rest = sample.take(np.setdiff1d(np.arange(sample.n_samples), part))
            held = make()._penalty(penalty).under(1.0, tempered_map(rest, 1.0)[0, 0])
            W, b = fit_log_linear(rest, held.per(rest.n_samples))
            logits = log_softmax(logs(sample.proba[part]) @ W + b, axis=1)
            losses.extend(-row[label] for row, label in zip(logits, sample.labels[part], strict=True))
        table.append(losses)
    return np.array(table)


@both
@pytest.mark.parametrize(("n_held_out", "much_work"), [(N_FOLDS, 2**24), (1, 0)])
def test_the_choice_is_that_of_brute_force(monkeypatch, make, n_held_out, much_work):
    monkeypatch.setattr(matrix, "_MUCH_WORK", much_work)
    proba, labels = draw()
    fitted = make().fit(proba, labels)
    losses = brute_force(make, check_sample(labels, proba), n_held_out)
    means = losses.mean(axis=1)
    excess = losses - losses[means.argmin()]
    errors = excess.std(axis=1) / np.sqrt(losses.shape[1])
    chosen = np.flatnonzero(excess.mean(axis=1) <= errors)[0]
    assert fitted.off_diagonal_ == 400 * RELATIVE_PENALTIES[chosen]
    # The path went on for two penalties after the best, and no more.
    tried = means.argmin() + 3
    assert tried < len(means)
    expected = np.transpose([400 * RELATIVE_PENALTIES[:tried], means[:tried]])
    np.testing.assert_allclose(fitted.cv_log_loss_, expected, rtol=1e-3)


@both
def test_the_result_is_that_of_the_penalty_chosen(make):
    proba, labels = draw()
    fitted = make().fit(proba, labels)
    given = make(off_diagonal=fitted.off_diagonal_).fit(proba, labels)
    np.testing.assert_allclose(fitted.predict_proba(proba), given.predict_proba(proba), atol=1e-5)
    assert given.off_diagonal_ == fitted.off_diagonal_
    assert given.cv_log_loss_.shape == (0, 2)


@both
@few_rows
@pytest.mark.parametrize("k", [20, 60])
def test_scarce_data_do_no_harm(make, k):
    proba, labels = draw(4000 + 3 * k, k, mixed=0.0, concentration=0.1)
    few, rest = slice(0, 3 * k), slice(3 * k, None)
    ours = make().fit(proba[few], labels[few]).predict_proba(proba[rest])
    temperature = TemperatureScaling().fit(proba[few], labels[few]).predict_proba(proba[rest])
    at = np.arange(4000), labels[rest]
    assert -np.log(ours[at]).mean() < -np.log(proba[rest][at]).mean()
    loss = np.log(temperature[at]) - np.log(ours[at])
    assert loss.mean() < 2 * loss.std() / np.sqrt(loss.size) + 0.002


@both
@pytest.mark.parametrize("seed", range(3))
def test_calibrated_predictions_stay_all_but_unchanged(make, seed):
    proba, labels, _ = tempered(1.0, n=500, seed=seed)
    assert np.abs(make().fit(proba, labels).predict_proba(proba) - proba).sum(axis=1).mean() < 0.08


@both
def test_swapped_classes_are_swapped_back(make):
    proba, labels, _ = tempered(1.0, n=3000)
    swapped = proba[:, [1, 0, 2, 3]]
    fitted = make().fit(swapped, labels)
    assert log_loss(fitted.predict_proba(swapped), labels) == pytest.approx(log_loss(proba, labels), abs=0.01)


@both
def test_neither_order_nor_names_nor_copies_matter_to_the_choice(make):
    proba, labels = draw()
    plain = make().fit(proba, labels).off_diagonal_
    rows = np.random.default_rng(0).permutation(400)
    assert make().fit(proba[rows], labels[rows]).off_diagonal_ == plain
    names = np.array([2, 0, 3, 1])
    assert make().fit(proba[:, names], np.argsort(names)[labels]).off_diagonal_ == plain
    copies = np.random.default_rng(1).integers(0, 3, 400)
    weighted = make().fit(proba, labels, sample_weight=copies)
    repeated = make().fit(proba.repeat(copies, axis=0), labels.repeat(copies))
    assert weighted.off_diagonal_ == repeated.off_diagonal_


@both
def test_the_unit_of_weights_does_not_matter(make):
    proba, labels = draw()
    weight = np.random.default_rng(0).random(400)
    one, other = (make(prior=None).fit(proba, labels, sample_weight=unit * weight) for unit in (1.0, 1e-3))
    assert other.off_diagonal_ == pytest.approx(1e-3 * one.off_diagonal_)
    np.testing.assert_allclose(one.predict_proba(proba), other.predict_proba(proba), atol=1e-5)


@both
@few_rows
def test_too_few_rows_to_part_get_the_largest(make):
    proba, labels = draw(7)
    fitted = make().fit(proba, labels)
    assert fitted.off_diagonal_ == 7 * RELATIVE_PENALTIES[0]
    assert fitted.cv_log_loss_.shape == (0, 2)
    assert make().fit(*draw(8)).cv_log_loss_.size


@both
def test_what_was_chosen_is_saved(make, tmp_path):
    fitted = make().fit(*draw())
    fitted.save(tmp_path / "model.polycal")
    loaded = pc.load(tmp_path / "model.polycal")
    assert loaded.off_diagonal_ == fitted.off_diagonal_
    np.testing.assert_array_equal(loaded.cv_log_loss_, fitted.cv_log_loss_)
    assert loaded.get_params() == fitted.get_params()


@pytest.mark.parametrize(
    ("tied", "given"),
    [
        (MatrixScaling(off_diagonal=600.0), MatrixScaling(off_diagonal=600.0, diagonal=2.0)),
        (DirichletCalibrator(off_diagonal=3e3), DirichletCalibrator(off_diagonal=3e3, intercept=1.0)),
    ],
)
def test_the_other_penalties_are_a_fixed_part_of_the_first(tied, given):
    proba, labels = draw()
    expected = given.fit(proba, labels).predict_proba(proba)
    np.testing.assert_allclose(tied.fit(proba, labels).predict_proba(proba), expected, atol=1e-7)


@pytest.mark.parametrize(
    ("make", "name"),
    [(MatrixScaling, "off_diagonal"), (MatrixScaling, "diagonal"), (DirichletCalibrator, "intercept")],
)
def test_words_other_than_auto_are_refused(make, name):
    with pytest.raises(ValueError, match=f"{name} must be a number from 0, or 'auto'; got 'weak'"):
        make(**{name: "weak"}).fit(*draw(20))


@pytest.mark.parametrize(
    ("make", "name"),
    [(MatrixScaling, "off_diagonal"), (MatrixScaling, "diagonal"), (DirichletCalibrator, "off_diagonal")],
)
def test_negative_penalties_are_refused(make, name):
    with pytest.raises(ValueError, match=f"{name} must be a number from 0"):
        make(**{name: -1.0}).fit(PROBA, LABELS)
