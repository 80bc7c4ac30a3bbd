import json

import pytest

import polycal as pc

TRIAGE = {"treat": {"sick": 0, "default": 1}, "wait": {"sick": 20, "default": 0}, "ask": 2}


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_one_loss_is_named_after_its_file(tmp_path):
    as_json = written(tmp_path, "triage.json", json.dumps(TRIAGE))
    assert pc.read_losses(as_json) == {"triage": TRIAGE}
    as_csv = written(tmp_path, "triage.csv", "action,sick,well\ntreat,0,1\nwait,20,0\n")
    expected = {"treat": {"sick": 0.0, "well": 1.0}, "wait": {"sick": 20.0, "well": 0.0}}
    assert pc.read_losses(as_csv) == {"triage": expected}


def test_several_losses_have_names(tmp_path):
    two = {"triage": TRIAGE, "stock": {"buy": [1, 0], "sell": [0, 1]}}
    assert pc.read_losses(written(tmp_path, "two.json", json.dumps(two))) == two


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", "[]", "must map each action to its costs"),
        ("a.yaml", "treat: {sick: .nan}", "the cost of 'sick' is the float nan, not a finite number"),
        ("a.yaml", "treat: {sick: much}", "is the str 'much', not a finite number"),
        ("a.yaml", "treat: {}", "holds no cost"),
        ("a.yaml", "treat: [1, true]", "the cost of 1 is the bool True"),
        ("a.yaml", "3: 1", "not text; put quotes"),
        ("a.yaml", "a: {x: {y: 1}}\nb: {y: 1}", "mixes losses and actions"),
        ("a.yaml", "a: 1\na: 2", "given twice"),
        ("a.json", "{", "cannot be read as JSON"),
        ("a.txt", "", "is not one of .yaml, .yml, .json"),
        ("a.csv", "action\n", "first line that names the classes"),
        ("a.csv", "action,x,x\na,1,2\n", "two columns for class 'x'"),
        ("a.csv", "action,x\na,1\na,2\n", "line 3: action 'a' is given twice"),
        ("a.csv", "action,x,y\na,1\n", "line 2 has 1 costs for 2 classes"),
        ("a.csv", "action,x\na,\n", "line 2: the cost of class 'x' is '', not a number"),
        ("a.csv", "action,x\na,nan\n", "not a finite number"),
    ],
)
def test_a_bad_file_gets_one_clear_line(tmp_path, name, text, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        pc.read_losses(written(tmp_path, name, text))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
