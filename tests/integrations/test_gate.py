import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import polycal as pc
from polycal.integrations import NotEnoughRows, assert_calibrated, github, judge


@pytest.fixture(scope="module")
def example():
    return pc.datasets.load_fashion("evaluation").take(slice(3000))


@pytest.fixture(scope="module")
def found(example):
    return pc.audit(example.labels, example.proba, groups={"shoes": [5, 7, 9]})


def test_what_is_proven_right_passes(found):
    assert judge(found, at_most=0.2).outcome == "pass"
    assert judge(found, at_most=0.2).reasons == ()


def test_what_is_proven_wrong_fails_by_name(found):
    judged = judge(found, at_most=0.0)
    assert judged.outcome == "fail"
    assert all("is at least" in reason for reason in judged.reasons)


def test_every_set_of_the_path_and_every_named_question_counts(found):
    above = dict(found.proven_above(0.0))
    assert list(above.values()) == sorted(above.values(), reverse=True)
    shown = [(f.question, f.at_least) for f in (*found.findings, *found.path) if f.is_question]
    shown += [(q.name, q.at_least) for q in (found.confidence, *found.ranks, *found.groups, *found.classes)]
    assert all(above[question] >= bound for question, bound in shown if bound > 0)
    largest = max(above.values())
    assert judge(found, at_most=largest - 1e-9).outcome == "fail"
    assert not found.proven_above(largest)


def test_between_them_rows_are_too_few(found):
    largest = found.proven_above(0.0)[0][1]
    judged = judge(found, at_most=(largest + found.confidence.at_most) / 2)
    assert judged.outcome == "not enough rows"
    assert "rows would show" in judged.reasons[0]


def test_the_outcome_after_a_calibrator_counts(example):
    half, other = example.take(slice(1500)), example.take(slice(1500, 3000))
    wrong = pc.TemperatureScaling().fit(half.proba**4 / (half.proba**4).sum(1, keepdims=True), half.labels)
    result = pc.audit(other.labels, other.proba, calibrator=wrong, auditors={})
    assert judge(result, at_most=0.05) == judge(result.after, at_most=0.05)


def test_assertions_have_three_outcomes():
    made = pc.datasets.make_calibrated(2000, 3, random_state=0)
    assert assert_calibrated(made.labels, made.proba, at_most=0.1).outcome == "pass"
    with pytest.raises(NotEnoughRows, match=r"not enough rows.* about"):
        assert_calibrated(made.labels[:100], made.proba[:100], at_most=0.02)
    with pytest.raises(pytest.skip.Exception, match="not enough rows"):
        assert_calibrated(made.labels[:100], made.proba[:100], at_most=0.02, if_unsure="skip")
    unsure = assert_calibrated(made.labels[:100], made.proba[:100], at_most=0.02, if_unsure="pass")
    assert unsure.outcome == "not enough rows"
    with pytest.raises(AssertionError, match=r"not calibrated to within 0\.02"):
        assert_calibrated((made.labels + 1) % 3, made.proba)


@pytest.mark.parametrize("bad", [{"at_most": "a"}, {"at_most": -1}, {"if_unsure": "maybe"}])
def test_bad_options_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        assert_calibrated([0, 1], [0.5, 0.5], **bad)


def test_names_cannot_be_commands_of_github():
    line = github.annotation("error", "a\n::set-output name=x::100%\x1b[31m")
    assert line.count("\n") == 1
    assert "%0A::set-output" in line
    assert "100%25" in line
    assert "\x1b" not in line


def run_step(folder, **inputs):
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    given = {f"INPUT_{name}": value for name, value in inputs.items()}
    command = [sys.executable, "-m", "polycal.integrations.github"]
    made = subprocess.run(
        command, env=os.environ | files | given, capture_output=True, text=True, check=False
    )
    return made.returncode, made.stdout


def test_a_step_writes_what_github_reads(tmp_path, example):
    file = tmp_path / "preds.npz"
    np.savez(file, proba=example.proba, labels=example.labels)
    code, said = run_step(tmp_path, FILES=str(file), AT_MOST="0.2")
    assert (code, said) == (0, "::notice title=polycal::pass\n")
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "outcome=pass\n"
    assert "Not calibrated" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text() or (
        "not calibrated" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    )


def test_a_step_takes_the_words_of_the_command(tmp_path):
    rows = "".join(f"{i},0.7,0.301,{'ab'[i % 3 > 0]}\n" for i in range(60))
    (tmp_path / "preds.csv").write_text(f"id,a,b,truth\n{rows}")
    inputs = {"files": str(tmp_path / "preds.csv"), "label": "truth", "drop": "id, ", "normalize": "true"}
    judged, report = github.run(inputs)
    assert judged.outcome in {"fail", "not enough rows"}
    assert "60 predictions over 2 classes" in report


def test_every_input_of_the_action_reaches_the_step():
    action = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text())
    step = next(step for step in action["runs"]["steps"] if step.get("id") == "audit")
    told = {name.removeprefix("INPUT_").lower().replace("_", "-") for name in step["env"]}
    assert told == set(action["inputs"]) - {"python-version"}


@pytest.mark.parametrize(
    ("threshold", "unsure", "outcome", "code"),
    [
        ("0", "fail", "fail", 1),
        ("0.05", "fail", "not enough rows", 1),
        ("0.05", "pass", "not enough rows", 0),
    ],
)
def test_a_step_fails_as_it_was_told(monkeypatch, capsys, tmp_path, threshold, unsure, outcome, code):
    judged = github.Judgement(outcome, ("because",))
    monkeypatch.setattr(github, "run", lambda inputs: (judged, "report"))
    for name, value in {"FILES": "x.npz", "AT_MOST": threshold, "IF_UNSURE": unsure}.items():
        monkeypatch.setenv(f"INPUT_{name}", value)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    assert github.main() == code
    assert "because" in capsys.readouterr().out
    assert (tmp_path / "output").read_text() == f"outcome={outcome}\n"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("FILES", "", "files is empty"),
        ("AT_MOST", "little", "at-most must be a number"),
        ("IF_UNSURE", "shrug", "if-unsure must be one of"),
        ("NORMALIZE", "perhaps", "normalize must be one of"),
    ],
)
def test_a_step_says_what_is_wrong(monkeypatch, capsys, name, value, said):
    monkeypatch.setattr(github, "audit_stream", lambda *a, **k: None)
    monkeypatch.setenv("INPUT_FILES", "x.npz")
    monkeypatch.setenv(f"INPUT_{name}", value)
    assert github.main() == 2
    assert said in capsys.readouterr().out
