"""Answer at the right depth, as a user runs it."""

import csv
import json

import numpy as np
import pytest

import polycal as pc

TREE = "animal: [cat, dog]\n<eel>:\n"


@pytest.fixture
def fitted(run, over_confident):
    """A model that was fitted on the calibration rows."""
    (over_confident.parent / "tree.yaml").write_text(TREE)
    model = over_confident.with_name("depth.polycal")
    options = ("--taxonomy", over_confident.with_name("tree.yaml"), "--risk", "0.4", "--part", "calibration")
    done = run("answer", model, over_confident, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Fitted on 200 rows of 3 classes" in done.stdout
    return model


def test_the_model_is_that_of_python(fitted, over_confident):
    sample = pc.read_predictions(over_confident, part="calibration")
    tree = pc.read_taxonomy(over_confident.with_name("tree.yaml"))
    made = pc.AnswerDepth(tree, risk=0.4)
    made.fit(sample.proba, sample.labels, sample.sample_weight, class_names=sample.class_names)
    loaded = pc.load(fitted)
    assert loaded.certificate_ == made.certificate_ is not None
    assert loaded.predict(sample.proba).tolist() == made.predict(sample.proba).tolist()


def test_rows_are_answered(run, fitted, over_confident, tmp_path):
    done = run("answer", fitted, over_confident, "--out", tmp_path / "answers.csv", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    said, sample = json.loads(done.stdout), pc.read_predictions(over_confident)
    with (tmp_path / "answers.csv").open() as file:
        lines = list(csv.DictReader(file))
    model = pc.load(fitted)
    assert [line["answer"] for line in lines] == model.predict(sample.proba).tolist()
    wrong = np.mean([line["right"] == "0" for line in lines])
    assert said["wrong"] == pytest.approx(wrong)
    assert sum(said["by_depth"].values()) == said["n_samples"] == sample.n_samples
    assert said["certificate"]["at_most"] <= 0.4
    words = run("answer", fitted, over_confident)
    assert "rows answered." in words.stdout
    assert "are wrong (certified when it was fitted: at most" in words.stdout


def test_labels_are_not_needed(run, fitted, tmp_path):
    pc.write_predictions(
        tmp_path / "new.csv", None, [[0.02, 0.03, 0.95]], class_names=["cat", "dog", "<eel>"]
    )
    done = run("answer", fitted, tmp_path / "new.csv", "--out", tmp_path / "answers.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "wrong" not in done.stdout
    assert (tmp_path / "answers.csv").read_text().startswith("row,answer,probability\n0,<eel>,0.95")


def test_where_nothing_is_certified_it_says_so(run, over_confident):
    (over_confident.parent / "tree.yaml").write_text(TREE)
    model = over_confident.with_name("none.polycal")
    tree = over_confident.with_name("tree.yaml")
    done = run("answer", model, over_confident, "--taxonomy", tree, "--risk", "1e-6")
    assert "every answer is 'anything': give more rows" in done.stdout
    assert "100.0% with 'anything'" in run("answer", model, over_confident).stdout


def test_bad_input_is_one_line(run, fitted, over_confident, tmp_path):
    pc.TemperatureScaling().fit([[0.3, 0.7], [0.6, 0.4]], [1, 0]).save(tmp_path / "other.polycal")
    pc.write_predictions(tmp_path / "new.csv", None, [[0.2, 0.3, 0.5]], class_names=["dog", "cat", "<eel>"])
    (tmp_path / "short.yaml").write_text("animal: [cat, dog]\n")
    for arguments, message in (
        ((tmp_path / "other.polycal", over_confident), "not a model that answers; fit one with --taxonomy"),
        ((fitted, over_confident, over_confident), "2 files are given; answer one at a time"),
        ((fitted, tmp_path / "new.csv"), "classes of other names, or in another order"),
        ((fitted, over_confident, "--part", "calibration"), "--part is for fitting"),
        ((fitted, over_confident, "--risk", "0.1"), "--risk is for fitting: give --taxonomy too"),
        (
            (tmp_path / "m.polycal", over_confident, "--taxonomy", tmp_path / "short.yaml"),
            "'<eel>' is no leaf",
        ),
        ((fitted, over_confident, "--taxonomy", tmp_path / "short.yaml", "--risk", "2"), "risk"),
    ):
        done = run("answer", *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
