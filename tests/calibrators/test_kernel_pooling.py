"""The pool of maps for few rows: its members, what weighs them, and what is left of the input."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import softmax
from tests.calibrators.draws import confused, tempered

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.kernel import pooling, selection, tuning
from polycal.calibrators.kernel.baseline import fit_baseline
from polycal.calibrators.kernel.neighbours import Neighbourhood
from polycal.calibrators.kernel.pooling import Pool, cross_fit, fit_temperature, fit_vector, weigh
from polycal.calibrators.kernel.selection import choose_first, choose_model
from polycal.calibrators.kernel.trial import Trial
from polycal.calibrators.loss import log_proba
from polycal.calibrators.regression import sort_by_fold
from polycal.sample import split_rows
from polycal.steps import run


def sorted_by_fold(sample, n_folds=4):
    order, folds = sort_by_fold(split_rows(sample, (1.0,) * n_folds, 0))
    return sample.take(order), folds


def log_loss(proba, labels):
    return -np.log(np.maximum(proba[np.arange(labels.size), labels], 1e-12)).mean()


def test_the_gradient_of_vector_scaling_is_right():
    sample = confused(n=30, k=3, weighted=True)
    background = np.array([0.2, 0.3, 0.5])
    point = np.random.default_rng(0).normal(size=8)

    def loss(at):
        return pooling._vector_loss(sample, log_proba(sample), background, at)

    np.testing.assert_allclose(loss(point)[1], approx_fprime(point, lambda at: loss(at)[0]), atol=1e-6)


def test_vector_scaling_finds_slopes_shifts_and_background():
    proba, labels, truth = tempered(2.0, n=20_000, k=3)
    biased = softmax(np.log(proba) + [0.0, 1.0, -0.5], axis=1)
    rng = np.random.default_rng(1)
    lost = rng.random(labels.size) < 0.1
    labels = np.where(lost, rng.integers(0, 3, labels.size), labels)
    out = run(fit_vector(check_sample(labels, biased)), biased)
    np.testing.assert_allclose(out, 0.9 * truth + 0.1 / 3, atol=0.04)


@pytest.mark.parametrize("fit", [fit_temperature, fit_vector])
@pytest.mark.parametrize("labels", [np.zeros(4, int), np.arange(4) % 2])
def test_members_exist_for_any_rows(fit, labels):
    for proba in (np.tile([1.0, 0.0], (4, 1)), np.full((4, 2), 0.5)):
        out = run(fit(check_sample(labels, proba)), proba)
        assert np.isfinite(out).all()
        np.testing.assert_allclose(out.sum(axis=1), 1.0)


def test_held_out_predictions_do_not_depend_on_their_own_labels():
    sample, folds = sorted_by_fold(confused(n=300, k=3))
    other = sample.labels.copy()
    other[folds[1]] = (other[folds[1]] + 1) % 3
    changed = check_sample(other, sample.proba)
    for one, two in zip(*(cross_fit(rows, folds)[1][:2] for rows in (sample, changed)), strict=True):
        np.testing.assert_array_equal(one[folds[1]], two[folds[1]])
        assert not np.array_equal(one[folds[0]], two[folds[0]])
    # The kernel's choice is given. (Its multipliers are fitted to what models that saw this fold predict for others.)
    whole = Trial.of(sample, folds, [fit_baseline(sample).seen(sample)])
    choice = choose_model(whole, fit_baseline(sample).mixture, 0, choose_first(whole))
    assert choice.features is not None
    rows, held_out = np.arange(300), []
    for given in (sample, changed):
        seen = [fit_baseline(given.take(np.delete(rows, fold))).seen(given) for fold in folds]
        trial = Trial.of(given, folds, seen)
        change = selection.path_to(trial, choice)
        held_out.append((np.exp(trial.log_proba), softmax(trial.log_proba + change, axis=1)))
        np.testing.assert_allclose(trial.held_out(choice, change).sum(axis=1), 1.0)
    for one, two in zip(*held_out, strict=True):
        # The blocks that precondition the search are those of all rows: searches end at the same place about.
        np.testing.assert_allclose(one[folds[1]], two[folds[1]], atol=0.01)
        assert np.abs(one[folds[0]] - two[folds[0]]).max() > 0.05


def test_the_better_member_gets_the_larger_share_and_ties_the_prior():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 400)
    labels = (truth.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    sample, even = check_sample(labels, np.full((400, 3), 1 / 3)), np.full((400, 3), 1 / 3)
    shares, part, _ = weigh(sample, np.arange(400), [truth, even, even], 1.0)
    assert shares[0] > 0.85
    assert part > 0.8
    for tied, prior in (
        ([truth] * 3, [0.025, 0.0625, 0.9125, 0.0]),
        ([truth] * 4, [0.025, 0.0625, 0.5125, 0.4]),
    ):
        np.testing.assert_allclose(weigh(sample, np.arange(400), tied, 1.0)[0], prior, atol=1e-3)


def test_few_rows_trust_simpler_maps_and_fewest_the_simplest():
    temperature, vector, near = tuning.PRIOR_SHARES
    np.testing.assert_allclose(
        pooling._prior_shares(100.0, 4), [temperature, vector, 1.0 - temperature - vector - near, near]
    )
    np.testing.assert_allclose(pooling._prior_shares(1e6, 3), [0.0, 0.0, 1.0], atol=1e-4)
    halfway = pooling._prior_shares(tuning.SCARCE_ROWS / 2, 4)
    assert halfway[0] == pytest.approx(0.5 + temperature / 2)
    for total in (1.0, 25.0, 70.0, 300.0):
        assert pooling._prior_shares(total, 4).sum() == pytest.approx(1.0)


def test_without_evidence_the_input_stays():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 100)
    labels = (truth.cumsum(axis=1) > rng.random((100, 1))).argmax(axis=1)
    noisy = softmax(np.log(truth) + rng.normal(0, 0.5, truth.shape), axis=1)
    shares, part, _ = weigh(check_sample(labels, truth), np.arange(100), [noisy, noisy, noisy], 1.0)
    assert part == 0.0
    assert Pool(shares, part).steps([(), (), (), ()]) == ()


def test_the_steps_are_the_formula():
    sample = confused(n=60, k=3)
    vector = fit_vector(sample)
    members = [fit_temperature(sample), vector, (), Neighbourhood(0.5, 4.0).steps(vector, sample)]
    shares, part = np.array([0.2, 0.3, 0.4, 0.1]), 0.7
    rows = [np.maximum(run(member, sample.proba), tuning.POOL_FLOOR) for member in members]
    linear = sum(share * row for share, row in zip(shares, rows, strict=True))
    geometric = softmax(sum(share * np.log(row) for share, row in zip(shares, rows, strict=True)), axis=1)
    mean = (1 - tuning.GEOMETRIC) * linear + tuning.GEOMETRIC * geometric
    expected = (1 - part) * sample.proba + part * mean
    np.testing.assert_allclose(run(Pool(shares, part).steps(members), sample.proba), expected, atol=1e-12)
    alone = Pool(np.array([0.0, 1.0, 0.0, 0.0]), 1.0)
    assert alone.steps(members) == members[1]


@pytest.mark.parametrize("n", [30, 100, 300])
def test_few_rows_of_a_confused_classifier_help_and_do_no_harm(n):
    losses = []
    for seed in range(20):
        sample, new = confused(n=n, k=3, seed=seed), confused(n=4000, k=3, seed=100 + seed)
        fitted = pc.KernelCalibrator().fit(sample.proba, sample.labels)
        assert fitted.shares_.sum() == pytest.approx(1.0)
        losses.append([log_loss(rows, new.labels) for rows in (fitted.predict_proba(new.proba), new.proba)])
    ours, theirs = np.array(losses).T
    assert ours.mean() < theirs.mean()
    # With thirty rows one draw in ten misleads.
    assert (ours / theirs).max() < (1.2 if n == 30 else 1.01)
    assert (ours / theirs > 1.01).mean() <= 0.15


def test_separable_rows_do_not_make_predictions_certain():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    proba = softmax(rng.normal(0, 0.3, (60, 3)) + 3.0 * np.eye(3)[labels], axis=1)
    fitted = pc.KernelCalibrator().fit(proba, labels)
    assert (fitted.predict(proba) == labels).all()
    # One new row in forty is wrong, as sixty right ones do not exclude.
    out = fitted.predict_proba(proba[:40])
    surprised = labels[:40].copy()
    surprised[0] = (surprised[0] + 1) % 3
    assert log_loss(out, surprised) < 1.5 * log_loss(proba[:40], surprised)


def test_the_pool_says_what_it_is_made_of(tmp_path):
    sample = confused(n=300, k=3)
    fitted = pc.KernelCalibrator().fit(sample.proba, sample.labels)
    assert fitted.used_ == "pool"
    assert fitted.shares_.shape == (5,)
    assert (fitted.shares_ >= 0.0).all()
    fitted.save(tmp_path / "pool.polycal")
    again = pc.load(tmp_path / "pool.polycal")
    np.testing.assert_array_equal(again.shares_, fitted.shares_)
    np.testing.assert_array_equal(again.predict_proba(sample.proba), fitted.predict_proba(sample.proba))
