import json

import numpy as np
import pytest

import polycal as pc


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    pc.write_predictions(tmp_path / "p.npz", labels, proba, class_names=["cat", "dog", "car"])
    (tmp_path / "g.yaml").write_text("animal: [cat, dog]\n")
    return tmp_path


def test_audit_prints_a_table(run, files):
    done = run("audit", files / "p.npz", "--groups", files / "g.yaml")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "60 predictions over 3 classes" in done.stdout
    assert "animal" in done.stdout


def test_audit_prints_json(run, files):
    done = run("audit", files / "p.npz", "--groups", files / "g.yaml", "--json")
    sample = pc.read_predictions(files / "p.npz")
    result = json.loads(done.stdout)
    expected = pc.smooth_calibration_error(sample.labels, sample.proba, subset=[0, 1])
    assert result["groups"][0]["smooth_error"] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.npz"], "nowhere.npz"),
        (["p.npz", "--groups", "p.npz"], "p.npz"),
        (["p.npz", "--part", "evaluation"], "evaluation"),
        (["p.npz", "--part", "weekend"], "weekend"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(run, files, arguments, message):
    paths = [files / a if "." in a else a for a in arguments]
    done = run("audit", *paths)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_demo_explains_itself(run):
    done = run("demo")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "is it footwear?" in words
    assert "times as much" in words


def test_the_demo_speaks_json(run):
    assert json.loads(run("demo", "--json").stdout)["n_samples"] == 10_000


def test_version(run_process):
    assert run_process("--version").stdout.strip() == f"polycal {pc.__version__}"


def test_notions_can_be_chosen(run, files):
    done = run(
        "audit", files / "p.npz", "--notion", "decision", "--notion", "confidence:5", "--json", "--seed", "3"
    )
    result = json.loads(done.stdout)
    assert [e["notion"] for e in result["errors"]] == ["decision", "confidence"]
    assert {f["source"] for f in result["findings"]} == {"decision", "confidence", "kernel"}
    assert result["random_state"] == 3


def test_an_unknown_notion_is_one_line(run, files):
    done = run("audit", files / "p.npz", "--notion", "vibes")
    assert done.returncode == 2
    assert "'vibes' is not one of" in done.stderr
