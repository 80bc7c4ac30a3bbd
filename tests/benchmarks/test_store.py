import json

import pytest
from benchmarks.store import Store, keep_out_of_git, results_folder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "rows.jsonl"


def test_rows_are_there_when_a_run_goes_on(path):
    Store(path, ("a", "b")).add({"a": "x", "b": 1, "value": 0.5})
    later = Store(path, ("a", "b"))
    assert later.find(a="x", b=1) == {"a": "x", "b": 1, "value": 0.5}
    assert later.find(a="x", b=2) is None


def test_a_line_that_was_cut_short_does_not_take_the_next_one_with_it(path):
    Store(path, ("a",)).add({"a": 1})
    with path.open("a") as file:
        file.write('{"a": 2, "b')
    store = Store(path, ("a",))
    store.add({"a": 3})
    store.compact()
    assert [row["a"] for row in Store(path, ("a",)).rows] == [1, 3]


def test_two_runs_at_once_keep_the_rows_of_both(path):
    one, other = Store(path, ("a",)), Store(path, ("a",))
    one.add({"a": 1})
    other.add({"a": 2})
    one.compact()
    assert [row["a"] for row in Store(path, ("a",)).rows] == [1, 2]
    assert list(path.parent.iterdir()) == [path]


def test_the_last_row_of_a_key_counts_and_compacting_keeps_only_it(path):
    store = Store(path, ("a",))
    for value in (2, 1):
        store.add({"a": "y", "value": value})
    store.add({"a": "x", "value": 3})
    assert len(path.read_text().splitlines()) == 3
    store.compact()
    assert [json.loads(line) for line in path.read_text().splitlines()] == store.rows
    assert store.rows == [{"a": "x", "value": 3}, {"a": "y", "value": 1}]


def test_a_line_that_was_cut_short_is_left_out(path):
    Store(path, ("a",)).add({"a": 1})
    with path.open("a") as file:
        file.write('{"a":2,"val')
    assert [row["a"] for row in Store(path, ("a",)).rows] == [1]


def test_numbers_are_rounded_and_valid_json(path):
    store = Store(path, ("a",))
    store.add({"a": 1, "long": 1 / 3, "bad": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1, "long": 0.333333, "bad": None}


def test_clearing_forgets_everything(path):
    store = Store(path, ("a",))
    store.add({"a": 1})
    store.clear()
    assert store.rows == []
    assert Store(path, ("a",)).rows == []


def test_rows_of_numbers_and_words_are_sorted(path):
    store = Store(path, ("a",))
    for key in ("x", 10, 2):
        store.add({"a": key})
    assert [row["a"] for row in store.rows] == [2, 10, "x"]


def test_quick_results_are_kept_apart():
    assert results_folder(quick=True).parent == results_folder(quick=False)


def test_a_folder_is_kept_out_of_version_control(tmp_path):
    keep_out_of_git(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / ".gitignore").read_text() == "*\n"
