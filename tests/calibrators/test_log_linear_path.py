"""Strengths chosen within the sample: against brute force, and what they are for."""

import numpy as np
import pytest
from scipy.special import log_softmax
from tests.calibrators.draws import tempered
from tests.reference_calibrators import log_loss, logs

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators import _log_linear_path
from polycal.calibrators._log_linear import fit_log_linear
from polycal.calibrators._log_linear_path import N_FOLDS, RELATIVE_STRENGTHS
from polycal.calibrators.dirichlet import DirichletCalibrator
from polycal.calibrators.matrix import MatrixScaling
from polycal.calibrators.temperature import TemperatureScaling
from polycal.sample import split_rows

both = pytest.mark.parametrize("make", [MatrixScaling, DirichletCalibrator])


def draw(n=400, k=4, seed=0, mixed=0.5, concentration=0.5):
    """Over-confident predictions that give part of class 1 to class 0; labels from the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, concentration), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = np.maximum(truth, 1e-9) ** 1.5
    proba[:, 0] += mixed * proba[:, 1]
    proba[:, 1] *= 1 - mixed
    return proba / proba.sum(axis=1, keepdims=True), labels


def brute_force(make, sample, n_aside):
    """For each strength, the log losses of the rows of the first ``n_aside`` parts, each part without its own."""
    parts = split_rows(sample, (1.0,) * N_FOLDS, 0)[:n_aside]
    table = []
    for strength in RELATIVE_STRENGTHS * sample.n_samples:
        losses = []
        for part in parts:
            rest = sample.take(np.setdiff1d(np.arange(sample.n_samples), part))
            W, b = fit_log_linear(rest, make()._ridge(strength).per(rest.n_samples))
            logits = log_softmax(logs(sample.proba[part]) @ W + b, axis=1)
            losses.extend(-row[label] for row, label in zip(logits, sample.labels[part], strict=True))
        table.append(losses)
    return np.array(table)


@both
@pytest.mark.parametrize(("n_aside", "much_work"), [(N_FOLDS, 2**24), (1, 0)])
def test_the_choice_is_that_of_brute_force(monkeypatch, make, n_aside, much_work):
    monkeypatch.setattr(_log_linear_path, "_MUCH_WORK", much_work)
    proba, labels = draw()
    fitted = make().fit(proba, labels)
    losses = brute_force(make, check_sample(labels, proba), n_aside)
    means = losses.mean(axis=1)
    excess = losses - losses[means.argmin()]
    errors = excess.std(axis=1) / np.sqrt(losses.shape[1])
    chosen = np.flatnonzero(excess.mean(axis=1) <= errors)[0]
    assert fitted.off_diagonal_ == 400 * RELATIVE_STRENGTHS[chosen]
    # The path went on for two strengths after the best, and no more.
    tried = means.argmin() + 3
    assert tried < len(means)
    expected = np.transpose([400 * RELATIVE_STRENGTHS[:tried], means[:tried]])
    np.testing.assert_allclose(fitted.cv_log_loss_, expected, rtol=1e-3)


@both
def test_the_result_is_that_of_the_strength_chosen(make):
    proba, labels = draw()
    fitted = make().fit(proba, labels)
    given = make(off_diagonal=fitted.off_diagonal_).fit(proba, labels)
    np.testing.assert_allclose(fitted.predict_proba(proba), given.predict_proba(proba), atol=1e-5)
    assert given.off_diagonal_ == fitted.off_diagonal_
    assert given.cv_log_loss_.shape == (0, 2)


@both
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
    one, other = (make().fit(proba, labels, sample_weight=unit * weight) for unit in (1.0, 1e-3))
    assert other.off_diagonal_ == pytest.approx(1e-3 * one.off_diagonal_)
    np.testing.assert_allclose(one.predict_proba(proba), other.predict_proba(proba), atol=1e-5)


@both
def test_too_few_rows_to_part_get_the_strongest(make):
    proba, labels = draw(7)
    fitted = make().fit(proba, labels)
    assert fitted.off_diagonal_ == 7 * RELATIVE_STRENGTHS[0]
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
def test_the_other_strengths_are_a_fixed_part_of_the_first(tied, given):
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
