import json
import subprocess
import sys

import pytest
import yaml

from polycal.io import mappings as mappings_module
from polycal.io import read_groups

GROUPS = {"animal": ["cat", "dog"], "first": [0, 1], "été": ["no"]}


def write(tmp_path, text, suffix=".yaml"):
    path = tmp_path / f"groups{suffix}"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml", ".YAML"])
def test_groups_in_file_order(tmp_path, suffix):
    dump = json.dumps if suffix == ".json" else lambda groups: yaml.safe_dump(groups, sort_keys=False)
    found = read_groups(write(tmp_path, dump(GROUPS), suffix))
    assert found == GROUPS
    assert list(found) == list(GROUPS)


def test_a_byte_order_mark(tmp_path):
    assert read_groups(write(tmp_path, "\ufeff" + json.dumps(GROUPS), ".json")) == GROUPS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must map each group's name to its classes.*it holds nothing"),
        ("[cat, dog]", "it holds a list"),
        ("{}", "it holds an empty mapping"),
        ("cat", "it holds the str 'cat'"),
        ("animal: []", "group 'animal' must be a list of at least one class.*it is an empty list"),
        ("animal: cat", "group 'animal' .* it is the str 'cat'"),
        ("animal: {cat: 1}", "group 'animal' .* it is a mapping"),
        ("animal:", "group 'animal' .* it is nothing"),
        ("animal: [cat, no]", "group 'animal' holds the bool False, not a class; put quotes around"),
        ("animal: [1.5]", "group 'animal' holds the float 1.5"),
        ("animal: [2020-01-01]", "group 'animal' holds the date"),
        ("animal: [[cat]]", "group 'animal' holds a list"),
        ("animal: [null]", "group 'animal' holds nothing"),
        ("1: [cat]", "a group's name is the int 1, not text; put quotes around it"),
        ("a: [cat]\na: [dog]", "'a' is given twice"),
        ("a: [cat", "cannot be read as YAML"),
        ("a: [cat]\n---\nb: [dog]", "cannot be read as YAML"),
        ("? [a]\n: [cat]", "cannot be read as YAML"),
        ("a: !!python/object/apply:os.getcwd []", "cannot be read as YAML"),
        ("a: &a [cat]\n<<: {b: [dog]}", "cannot be read as YAML"),
        ("a: &a [*a]", "group 'a' holds a list"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("a: !!bool foo", "cannot be read as YAML"),
        ("a: !!int ''", "cannot be read as YAML"),
        ("a: !!float ''", "cannot be read as YAML"),
        ("a: !!timestamp foo", "cannot be read as YAML"),
        ("a: !!binary é", "cannot be read as YAML"),
        ("? !!set {a}\n: [cat]", "cannot be read as YAML"),
        ("a: [2020-13-45]", "cannot be read as YAML: month must be in 1..12"),
        ("a: [cat\nb: dog", r"cannot be read as YAML: .*\(line 2, column 2\)"),
        ("a: ['\0']", "cannot be read as YAML: .*not allowed"),
        ("a: [1" + ":1" * 1_000_000 + "]", "holds a text of 2,000,001 characters"),
    ],
)
def test_bad_yaml(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        read_groups(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@pytest.mark.parametrize("text", ["[", '{"a":', "- ", "? "])
def test_deep_nesting_does_not_end_the_process(tmp_path, text, suffix):
    path = write(tmp_path, text * 50_000, suffix)
    code = "import sys, polycal; polycal.read_groups(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "ValueError" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": ["cat"], "a": ["dog"]}', "'a' is given twice"),
        ('{"a": ["cat"]', "cannot be read as JSON"),
        ('{"a": [NaN]}', "group 'a' holds the float nan"),
        ('{"a": [true]}', "group 'a' holds the bool True"),
        ('{"\\ud800": ["cat"]}', "the group name .* holds a code point that is no character"),
        ("null", "it holds nothing"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": [' + "1" * 5000 + "]}", "cannot be read as JSON"),
    ],
)
def test_bad_json(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_groups(write(tmp_path, text, ".json"))


def test_a_billion_laughs_are_neither_expanded_nor_printed(tmp_path):
    lines = ["a0: &a0 [lol]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]
    with pytest.raises(ValueError, match="group 'a1' holds a list") as caught:
        read_groups(write(tmp_path, "\n".join(lines)))
    assert len(str(caught.value)) < 400


def test_size_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(mappings_module, "MAX_BYTES", 10)
    with pytest.raises(ValueError, match="has 18 bytes; it may have up to 10"):
        read_groups(write(tmp_path, "animal: [cat, dog]"))


def test_wrong_files(tmp_path):
    with pytest.raises(ValueError, match=r"'.txt' is not one of .yaml, .yml, .json"):
        read_groups(write(tmp_path, "a: [b]", ".txt"))
    with pytest.raises(
        FileNotFoundError, match=r"group\.txt: there is no such file; did you mean groups\.txt\?"
    ):
        read_groups(tmp_path / "group.txt")
    (tmp_path / "latin.json").write_bytes('{"é": ["a"]}'.encode("latin-1"))
    with pytest.raises(ValueError, match="cannot be read as text in UTF-8"):
        read_groups(tmp_path / "latin.json")
