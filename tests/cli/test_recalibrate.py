"""Recalibrate, apply and compare, as a user runs them."""

import json

import numpy as np
import pytest

import polycal as pc


@pytest.fixture
def model(run, over_confident):
    path = over_confident.with_name("m.polycal")
    done = run(
        "recalibrate", over_confident, "--part", "calibration", "--out", path, "--method", "temperature"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "fitted on 200 rows of 3 classes" in done.stdout
    return path


def test_what_is_written_is_the_calibrator_fitted_in_python(model, over_confident):
    sample = pc.read_predictions(over_confident, part="calibration")
    fitted = pc.TemperatureScaling().fit(sample.proba, sample.labels, sample.sample_weight)
    loaded = pc.load(model)
    assert loaded.temperature_ == pytest.approx(fitted.temperature_)
    assert loaded.class_names_ == ("cat", "dog", "<eel>")


@pytest.mark.parametrize("name", ["fixed.npz", "fixed.csv", "fixed.parquet", "fixed.feather"])
def test_apply_changes_the_probabilities_and_nothing_else(run, model, over_confident, name):
    out = over_confident.with_name(name)
    done = run("apply", model, over_confident, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    before, after = pc.read_predictions(over_confident), pc.read_predictions(out)
    np.testing.assert_allclose(after.proba, pc.load(model).predict_proba(before.proba), atol=1e-12)
    np.testing.assert_array_equal(after.labels, before.labels)
    np.testing.assert_array_equal(after.sample_weight, before.sample_weight)
    assert after.class_names == before.class_names
    assert pc.read_predictions(out, part="evaluation").n_samples == 200


def test_apply_needs_no_labels(run, model, tmp_path):
    pc.write_predictions(tmp_path / "new.csv", None, [[0.2, 0.3, 0.5]], class_names=["cat", "dog", "<eel>"])
    done = run("apply", model, tmp_path / "new.csv", "--out", tmp_path / "fixed.csv", "--json")
    assert json.loads(done.stdout)["n_samples"] == 1
    assert pc.read_probabilities(tmp_path / "fixed.csv")[0].shape == (1, 3)


@pytest.mark.parametrize("held", ["logits", "proba"])
def test_apply_knows_a_model_of_logits(run, over_confident, tmp_path, held):
    sample = pc.read_predictions(over_confident)
    logits = np.log(sample.proba)
    calibrator = pc.TemperatureScaling(from_logits=True).fit(logits, sample.labels)
    calibrator.save(tmp_path / "m.polycal")
    np.savez(tmp_path / "given.npz", **{held: logits if held == "logits" else sample.proba})
    done = run("apply", tmp_path / "m.polycal", tmp_path / "given.npz", "--out", tmp_path / "fixed.npz")
    assert done.returncode == 0, done.stderr
    found, _ = pc.read_probabilities(tmp_path / "fixed.npz")
    np.testing.assert_allclose(found, calibrator.predict_proba(logits), atol=1e-12)


def test_json_and_quiet(run, over_confident, tmp_path):
    arguments = "recalibrate", over_confident, "--out", tmp_path / "m.polycal"
    told = json.loads(run(*arguments, "--json").stdout)
    assert (told["method"], told["n_samples"], told["n_classes"]) == ("kernel", 400, 3)
    assert run(*arguments, "--quiet").stdout == ""


def test_an_onnx_model_can_be_written_too(run, over_confident, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    paths = tmp_path / "m.polycal", tmp_path / "m.onnx"
    assert run("recalibrate", over_confident, "--out", paths[0], "--onnx", paths[1]).returncode == 0
    proba = pc.read_predictions(over_confident).proba.astype(np.float32)
    (out,) = onnxruntime.InferenceSession(paths[1]).run(None, {"proba": proba})
    np.testing.assert_allclose(out, pc.load(paths[0]).predict_proba(proba), atol=1e-6)


def test_compare_takes_the_parts_of_one_file_or_two_files(run, over_confident, tmp_path):
    methods = "--method", "identity", "--method", "temperature"
    parts = json.loads(run("compare", over_confident, *methods, "--json").stdout)
    for part in ("calibration", "evaluation"):
        sample = pc.read_predictions(over_confident, part=part)
        pc.write_predictions(
            tmp_path / f"{part}.npz",
            sample.labels,
            sample.proba,
            sample_weight=sample.sample_weight,
            class_names=sample.class_names,
        )
    files = tmp_path / "calibration.npz", tmp_path / "evaluation.npz"
    both = json.loads(run("compare", *files, *methods, "--json").stdout)
    assert [m["log_loss"] for m in both["methods"]] == [m["log_loss"] for m in parts["methods"]]
    assert parts["methods"][0]["name"] == "temperature"
    assert "temperature" in run("compare", *files, *methods).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recalibrate", "{file}", "--out", "{folder}/no/m.polycal"), "there is no folder"),
        (
            ("recalibrate", "{file}", "--out", "{folder}/m.polycal", "--method", "magic"),
            "'magic' is not one of",
        ),
        (("apply", "{file}", "{file}", "--out", "{folder}/out.npz"), "p.npz"),
        (("apply", "{model}", "{other}", "--out", "{folder}/out.npz"), "2 classes"),
        (("apply", "{model}", "{renamed}", "--out", "{folder}/out.npz"), "'cow'"),
        (("apply", "{model}", "{file}", "--out", "{folder}/out.xyz"), "'.xyz'"),
        (("apply", "{model}", "{file}", "--out", "s3://bucket/out.npz"), "not a URL"),
        (("compare", "{other}"), "does not mark its parts, so its calibration part cannot be read"),
        (("compare", "{file}", "{other}"), "2 classes"),
        (("compare", "{file}", "--method", "magic"), "'magic' is not one of"),
        (("compare", "{file}", "--alpha", "2"), "alpha"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run, model, over_confident, tmp_path, arguments, message):
    pc.write_predictions(tmp_path / "two.npz", [0, 1], [[0.5, 0.5], [0.1, 0.9]])
    pc.write_predictions(
        tmp_path / "renamed.npz", None, [[0.2, 0.3, 0.5]], class_names=["cow", "dog", "<eel>"]
    )
    places = {
        "file": over_confident,
        "model": model,
        "folder": tmp_path,
        "other": tmp_path / "two.npz",
        "renamed": tmp_path / "renamed.npz",
    }
    before = set(tmp_path.iterdir())
    done = run(*(argument.format(**places) for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert set(tmp_path.iterdir()) == before
