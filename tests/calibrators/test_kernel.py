import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import softmax
from tests.strategies import samples

import polycal as pc
from polycal.calibrators.kernel import KernelCalibrator, tuning
from polycal.calibrators.temperature import TemperatureScaling


def log_losses(proba, labels):
    return -np.log(np.maximum(proba[np.arange(labels.size), labels], 1e-12))


def brier_scores(proba, labels):
    return ((proba - np.eye(proba.shape[1])[labels]) ** 2).sum(axis=1)


def draw(n, k, seed=0, mixed=0.5, concentration=0.5):
    """Predictions that give part of class 1 to class 0, and are over-confident; labels from the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, concentration), n)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = np.maximum(truth, 1e-9) ** 1.5
    proba[:, 0] += mixed * proba[:, 1]
    proba[:, 1] *= 1 - mixed
    return proba / proba.sum(axis=1, keepdims=True), labels


def draw_hidden(n, seed=0, k=6):
    """One label in twenty-five at random, else far from it; and how unlikely a class is says much of another."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 4, (n, k))
    truth = softmax(logits @ (np.eye(k) + 0.5 * np.roll(np.eye(k), 1, axis=1)), axis=1)
    truth = 0.96 * truth + 0.04 / k
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return softmax(logits, axis=1), labels


@pytest.fixture(scope="module")
def fashion():
    parts = [pc.datasets.load_fashion(part) for part in ("calibration", "evaluation")]
    return KernelCalibrator().fit(parts[0].proba, parts[0].labels), *parts


def test_beats_input_and_temperature_on_real_predictions(fashion):
    calibrator, calibration, evaluation = fashion
    ours = calibrator.predict_proba(evaluation.proba)
    temperature = TemperatureScaling().fit(calibration.proba, calibration.labels)
    for scores in (log_losses, brier_scores):
        mine = scores(ours, evaluation.labels)
        for other in (evaluation.proba, temperature.predict_proba(evaluation.proba)):
            gain = scores(other, evaluation.labels) - mine
            assert gain.mean() > 4 * gain.std() / np.sqrt(gain.size)
    assert np.mean(ours.argmax(axis=1) == evaluation.labels) > 0.88
    assert calibrator.used_ == "kernel"
    assert 0 < calibrator.mixing_ <= 1
    assert calibrator.regularisation_ in calibrator.cv_log_loss_[:, 0]


def test_what_the_background_hides_is_taken_from_the_input(monkeypatch, tmp_path):
    (proba, labels), (new, new_labels) = draw_hidden(3000), draw_hidden(40000, seed=1)
    calibrator = KernelCalibrator().fit(proba, labels)
    assert (calibrator.used_, calibrator.features_of_) == ("kernel", "input")
    out = calibrator.predict_proba(new)
    for name in ("HIDING", "MANY_ROWS"):
        monkeypatch.setattr(tuning, name, np.inf)
    monkeypatch.setattr(tuning, "SMALL_PENALTY", 0.0)
    blind = KernelCalibrator().fit(proba, labels)
    assert blind.features_of_ == "baseline"
    gain = log_losses(blind.predict_proba(new), new_labels) - log_losses(out, new_labels)
    assert gain.mean() > 4 * gain.std() / np.sqrt(gain.size)
    # The models of both kinds are in the table.
    assert len(calibrator.cv_log_loss_) > len(blind.cv_log_loss_)
    onnxruntime = pytest.importorskip("onnxruntime")
    calibrator.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (exported,) = session.run(None, {session.get_inputs()[0].name: new.astype(np.float32)})
    np.testing.assert_allclose(exported, calibrator.predict_proba(new.astype(np.float32)), atol=1e-5)


def test_saved_and_loaded_predicts_the_same(fashion, tmp_path):
    calibrator, _, evaluation = fashion
    calibrator.save(tmp_path / "model.polycal")
    loaded = pc.load(tmp_path / "model.polycal")
    np.testing.assert_array_equal(
        loaded.predict_proba(evaluation.proba), calibrator.predict_proba(evaluation.proba)
    )
    assert (loaded.used_, loaded.mixing_) == (calibrator.used_, calibrator.mixing_)


@pytest.mark.parametrize("k", [20, 60])
def test_scarce_data_do_no_harm(k):
    proba, labels = draw(4000 + 3 * k, k, mixed=0.0, concentration=0.1)
    few = slice(0, 3 * k)
    rest = slice(3 * k, None)
    ours = KernelCalibrator().fit(proba[few], labels[few]).predict_proba(proba[rest])
    temperature = TemperatureScaling().fit(proba[few], labels[few]).predict_proba(proba[rest])
    for scores in (log_losses, brier_scores):
        loss = scores(ours, labels[rest]) - scores(temperature, labels[rest])
        assert loss.mean() < 2 * loss.std() / np.sqrt(loss.size) + 0.002


@pytest.mark.parametrize("seed", range(3))
def test_calibrated_input_stays_all_but_unchanged(seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(5, 0.5), 1000)
    labels = (proba.cumsum(axis=1) > rng.random((1000, 1))).argmax(axis=1)
    calibrated = KernelCalibrator().fit(proba, labels).predict_proba(proba)
    assert np.abs(calibrated - proba).sum(axis=1).mean() < 0.06


def test_nothing_of_the_kernel_is_said_to_be_used_where_the_input_stays():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 2400)
    calibrator = KernelCalibrator().fit(np.eye(3)[labels], labels)
    assert calibrator.used_ == "identity"
    said = calibrator.features_of_, calibrator.n_landmarks_, calibrator.mixes_matrix_, calibrator.mixing_
    assert said == ("baseline", 0, False, 0.0)


def test_predictions_close_together_are_told_apart_as_well_after_the_fit():
    """More than 65,536 cells are fitted in single precision."""

    def draw_near(n, seed):
        rng = np.random.default_rng(seed)
        place = rng.normal(size=(n, 3))
        truth = softmax(1.5 * np.cos(2 * place), axis=1)
        return softmax(0.01 * place, axis=1), (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)

    calibrator = KernelCalibrator().fit(*draw_near(24000, 0))
    new, labels = draw_near(24000, 1)
    loss = log_losses(calibrator.predict_proba(new), labels).mean()
    assert loss == pytest.approx(calibrator.cv_log_loss_[:, 2].min(), abs=0.01)
    assert loss < log_losses(new, labels).mean()


def test_finds_structure_that_temperature_cannot_see():
    proba, labels = draw(6000, 6)
    fitted, rest = slice(0, 3000), slice(3000, None)
    calibrator = KernelCalibrator().fit(proba[fitted], labels[fitted])
    temperature = TemperatureScaling().fit(proba[fitted], labels[fitted])
    ours, theirs = (c.predict_proba(proba[rest]) for c in (calibrator, temperature))
    assert calibrator.used_ == "kernel"
    assert log_losses(ours, labels[rest]).mean() < log_losses(theirs, labels[rest]).mean() - 0.02


def test_many_peaked_classes_are_no_worse_than_temperature():
    proba, labels = draw(6000, 150, concentration=0.01)
    fitted, rest = slice(0, 4000), slice(4000, None)
    ours = KernelCalibrator().fit(proba[fitted], labels[fitted]).predict_proba(proba[rest])
    temperature = TemperatureScaling().fit(proba[fitted], labels[fitted]).predict_proba(proba[rest])
    # What keeps every class possible costs a little, where nothing asks for it.
    loss = log_losses(ours, labels[rest]) - log_losses(temperature, labels[rest])
    assert loss.mean() < 1e-4


def test_very_many_classes_and_fewer_rows_have_no_kernel(monkeypatch):
    monkeypatch.setattr("polycal.calibrators.kernel.tuning.MANY_CLASSES", 20)
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(30, 0.1), 100)
    labels = (proba.cumsum(axis=1) > rng.random((100, 1))).argmax(axis=1)
    few, enough = (pc.KernelCalibrator().fit(proba[:n], labels[:n]) for n in (29, 100))
    assert len(few.cv_log_loss_) == 0 < len(enough.cv_log_loss_)


def test_a_fit_compiles_nothing():
    code = "import sys, numpy as np, polycal as pc; p = np.full((60, 2), 0.5); p[:, 0] = np.linspace(0.1, 0.9, 60); "
    code += "p[:, 1] = 1 - p[:, 0]; pc.KernelCalibrator().fit(p, np.arange(60) % 2); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_renaming_classes_renames_the_result():
    proba, labels = draw(1500, 5)
    order = np.array([3, 0, 4, 1, 2])
    renamed = KernelCalibrator().fit(proba[:, order], np.argsort(order)[labels])
    plain = KernelCalibrator().fit(proba, labels)
    np.testing.assert_allclose(
        renamed.predict_proba(proba[:, order]), plain.predict_proba(proba)[:, order], atol=2e-3
    )


def test_the_order_of_rows_does_not_matter():
    proba, labels = draw(800, 4)
    order = np.random.default_rng(0).permutation(800)
    shuffled = KernelCalibrator().fit(proba[order], labels[order])
    plain = KernelCalibrator().fit(proba, labels)
    np.testing.assert_allclose(shuffled.predict_proba(proba), plain.predict_proba(proba), atol=2e-3)


def test_same_seed_same_model():
    proba, labels = draw(500, 3)
    first, second = (
        KernelCalibrator(random_state=7).fit(proba, labels).predict_proba(proba) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_classes_that_do_not_occur_stay_possible():
    proba, labels = draw(1000, 6)
    kept = labels < 4
    calibrated = KernelCalibrator().fit(proba[kept], labels[kept]).predict_proba(proba)
    assert calibrated.min() > 0
    assert calibrated[:, 4:].mean() < proba[:, 4:].mean()


def test_exact_zeros_become_possible():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(4), 1000)
    labels = (truth.cumsum(axis=1) > rng.random((1000, 1))).argmax(axis=1)
    proba = np.array([rng.multinomial(5, p) for p in truth]) / 5
    assert proba[np.arange(1000), labels].min() == 0
    calibrated = KernelCalibrator().fit(proba, labels).predict_proba(proba)
    assert calibrated.min() > 0
    assert log_losses(calibrated, labels).mean() < 1.3


def test_weights_choose_the_rows_that_count():
    proba, labels = draw(2000, 3)
    wrong = np.concatenate([labels, (labels + 1) % 3])
    weight = np.concatenate([np.ones(2000), np.zeros(2000)])
    doubled = np.vstack([proba, proba])
    weighted = KernelCalibrator().fit(doubled, wrong, sample_weight=weight).predict_proba(proba)
    misled = KernelCalibrator().fit(doubled, wrong).predict_proba(proba)
    assert log_losses(weighted, labels).mean() < log_losses(misled, labels).mean() - 0.1


def test_two_classes():
    proba, labels = draw(3000, 2, mixed=0.3)
    calibrated = KernelCalibrator().fit(proba[:, 1], labels).predict_proba(proba[:, 1])
    assert calibrated.shape == (3000, 2)
    assert log_losses(calibrated, labels).mean() < log_losses(proba, labels).mean()


@given(samples(max_rows=25))
@settings(max_examples=25, deadline=None)
def test_a_few_rows_of_any_kind_give_rows_on_the_simplex(drawn):
    labels, proba, weight = drawn
    calibrated = KernelCalibrator().fit(proba, labels, sample_weight=weight).predict_proba(proba)
    assert calibrated.min() >= 0
    np.testing.assert_allclose(calibrated.sum(axis=1), 1.0)


def test_float32_in_float32_out():
    proba, labels = draw(300, 3)
    calibrator = KernelCalibrator().fit(proba, labels)
    assert calibrator.predict_proba(proba.astype(np.float32)).dtype == np.float32
    assert calibrator.predict_proba(proba).dtype == np.float64


@pytest.mark.parametrize("bad", [{"n_folds": 1}, {"n_folds": 2.5}, {"random_state": -1}])
def test_bad_parameters_are_named(bad):
    proba, labels = draw(50, 3)
    with pytest.raises(ValueError, match=next(iter(bad))):
        KernelCalibrator(**bad).fit(proba, labels)
