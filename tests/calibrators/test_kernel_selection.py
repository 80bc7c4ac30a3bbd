from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax
from tests.calibrators.draws import confused

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.kernel import selection, tuning
from polycal.calibrators.kernel.baseline import Seen
from polycal.calibrators.kernel.features import features_of_baseline
from polycal.calibrators.kernel.selection import choose, complete
from polycal.calibrators.kernel.trial import Choice, Trial
from polycal.calibrators.loss import Scores, log_proba
from polycal.calibrators.matrix import HeldOutPath
from polycal.calibrators.priors import PRIOR, MatrixPenalty
from polycal.calibrators.regression import sort_by_fold
from polycal.sample import split_rows


def sorted_by_fold(sample, n_folds=4):
    order, folds = sort_by_fold(split_rows(sample, (1.0,) * n_folds, 0))
    return sample.take(order), folds


def test_choice_is_the_best_of_its_table_up_to_the_least_gain():
    sample, folds = sorted_by_fold(confused(n=3000))
    logs = np.log(sample.proba).astype(np.float32)
    trial = Trial.of(sample, folds, [Seen(logs, lambda: logs)])
    baseline = trial.baseline
    choice = choose(trial, features_of_baseline(4), Choice())
    table = np.array(choice.table)
    gains = 2 - table[:, 2] / baseline.log_loss - table[:, 3] / baseline.brier
    assert choice.gain > 0.0
    assert choice.gain >= gains.max() - tuning.LEAST_GAIN - 1e-6
    assert choice.penalty in table[:, 0]
    np.testing.assert_allclose(choice.final_weight().sum(axis=1), 0.0, atol=1e-9)


def test_a_costly_kind_that_finds_nothing_changes_nothing_even_where_one_fold_says_the_choice_is_bad():
    sample, folds = sorted_by_fold(confused(n=3000))
    logs = np.log(sample.proba).astype(np.float32)
    trial = Trial.of(sample, folds, [Seen(logs, lambda: logs)])
    before = replace(choose(trial, features_of_baseline(4), Choice()), scale=50.0)
    assert before.on(trial.with_folds(1)).gain < 0.0
    choice, found = selection._screened(
        trial, before, lambda _few, known: known.or_better(Choice(), "none", trial)
    )
    assert found is None
    assert choice.weights is before.weights


def test_where_work_is_much_a_walk_from_the_middle_finds_large_penalties_too(monkeypatch):
    monkeypatch.setattr(tuning, "MUCH_WORK", 0)
    start = tuning.PENALTIES[tuning.MIDDLE]
    # Predictions that are right already: going down gains nothing, so that a larger penalty is tried.
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(4), 2500)
    labels = (proba.cumsum(axis=1) > rng.random((2500, 1))).argmax(axis=1)
    sample, folds = sorted_by_fold(check_sample(labels, proba))
    logs = np.log(sample.proba).astype(np.float32)
    trial = Trial.of(sample, folds, [Seen(logs, lambda: logs)], 1)
    assert trial.stride == 2
    choice = choose(trial, features_of_baseline(4), Choice())
    assert choice.table[0][0] == start
    assert tuning.PENALTIES[2] in {row[0] for row in choice.table}
    assert choice.gain < 0.001
    # And where a small one is best, none above the middle is tried.
    sample, folds = sorted_by_fold(confused(n=3000, seed=1))
    logs = np.log(sample.proba).astype(np.float32)
    choice = choose(Trial.of(sample, folds, [Seen(logs, lambda: logs)], 1), features_of_baseline(4), Choice())
    assert choice.penalty < start
    assert max(row[0] for row in choice.table) == start


def test_unlikely_classes_are_left_out_where_most_are():
    rng = np.random.default_rng(0)
    proba = softmax(rng.normal(0, 30, (300, 40)), axis=1)
    x = features_of_baseline(40).of(np.log(np.maximum(proba, 1e-30)).astype(np.float32))
    thin = selection._thinned(x, 40)
    likely = np.hstack([np.ones((300, 1), dtype=bool), proba > 1e-4, proba > 1e-4])
    np.testing.assert_array_equal(thin.toarray(), np.where(likely, x, 0.0))
    assert selection._thinned(x.astype(float), 40).shape == x.shape
    even = features_of_baseline(40).of(np.full((5, 40), np.log(1 / 40), dtype=np.float32))
    np.testing.assert_array_equal(selection._thinned(even, 40), even)


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
    trial = SimpleNamespace(caution=1.0, input=plain, sample=SimpleNamespace(n_samples=400))
    before = Choice(gain=0.1, scores=plain, table=[(1.0,)])
    after = before.or_better(Choice(gain=0.2, scores=rich, table=[(2.0,)]), "input", trial)
    assert (after.scores is rich) == taken
    assert after.table == [(1.0,), (2.0,)]
    noted = after.gains["input"]
    np.testing.assert_allclose(noted[:2], [gained, noise.std() / 20], atol=1e-12)
    assert (noted.needed <= 400) == taken
    # As many rows as are said to be needed would have made the gain two standard errors.
    assert noted.needed == np.inf or noted.needed == pytest.approx(400 * (2 * noted.error / gained) ** 2)


def draw_mixed(n, seed=0, k=5):
    """Logits that mix those of the truth, and a background that no map of logits can take away."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(k) + np.random.default_rng(99).normal(0, 0.4, (k, k))
    logits = rng.normal(0, 5, (n, k))
    truth = 0.98 * softmax(logits @ mixing, axis=1) + 0.02 / k
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return softmax(logits, axis=1), labels


def test_held_out_logits_of_the_matrix_do_not_depend_on_held_out_labels():
    proba, labels = draw_mixed(400)
    sample, folds = sorted_by_fold(check_sample(labels, proba))

    def fitted(given):
        path = HeldOutPath(given, folds, PRIOR)
        path.move(MatrixPenalty.tied(300.0))
        return path.logits(path.models.weights), path.models.weights

    logits, maps = fitted(sample)
    other = sample.labels.copy()
    other[folds[1]] = (other[folds[1]] + 1) % 5
    changed, _ = fitted(check_sample(other, sample.proba))
    np.testing.assert_array_equal(logits[folds[1]], changed[folds[1]])
    assert not np.allclose(logits[folds[0]], changed[folds[0]])
    expected = log_proba(sample)[folds[0]] @ maps[0][:-1] + maps[0][-1]
    np.testing.assert_allclose(logits[folds[0]], expected, rtol=1e-5, atol=1e-5)


def test_what_is_chosen_by_one_fold_is_completed_on_all():
    sample, folds = sorted_by_fold(confused(n=3000))
    logs = np.log(sample.proba).astype(np.float32)
    few = Trial.of(sample, folds, [Seen(logs, lambda: logs)], 1)
    choice = choose(few, features_of_baseline(4), Choice())
    assert choice.scores.log_losses.size == folds[0].stop
    assert len(choice.weights) == 1
    whole = few.with_folds(4)
    full = complete(whole, choice)
    assert len(full.weights) == 4
    np.testing.assert_array_equal(full.change[: folds[0].stop].shape, choice.change.shape)
    # The rows of each fold are predicted by the model that was fitted without them.
    again = Trial.of(sample, folds, [Seen(logs, lambda: logs)])
    np.testing.assert_allclose(selection.path_to(again, full), full.change, atol=1e-5)


def test_matrix_scaling_is_mixed_in_where_it_helps_and_exported(monkeypatch, tmp_path):
    (proba, labels), (new, new_labels) = draw_mixed(3000), draw_mixed(6000, seed=1)
    mixed = pc.KernelCalibrator().fit(proba, labels)
    assert mixed.mixes_matrix_
    monkeypatch.setattr(tuning, "MATRIX_CLASSES", 0)
    plain = pc.KernelCalibrator().fit(proba, labels)
    assert not plain.mixes_matrix_
    losses = [
        -np.log(c.predict_proba(new)[np.arange(new_labels.size), new_labels]).mean() for c in (mixed, plain)
    ]
    assert losses[0] < losses[1]
    mixed.save(tmp_path / "model.polycal")
    np.testing.assert_array_equal(
        pc.load(tmp_path / "model.polycal").predict_proba(new), mixed.predict_proba(new)
    )
    onnxruntime = pytest.importorskip("onnxruntime")
    mixed.to_onnx(tmp_path / "model.onnx", dtype="float64")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (exported,) = session.run(None, {session.get_inputs()[0].name: new})
    np.testing.assert_allclose(exported, mixed.predict_proba(new), atol=1e-9)
