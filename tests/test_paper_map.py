"""The map from the paper to the code stays complete: every statement, every object, every test."""

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
# In the order of the paper. Brackets: statements that have no label there.
LABELS = [
    "[p-smooth-informal]",
    "[property-1]",
    "thm:projected-smooth-intro",
    "[hard-psmooth-informal]",
    "[property-3]",
    "[full-informal]",
    "thm:intro-distance",
    "[equivalence-informal]",
    "[canonical]",
    "def:weighted",
    "[class-wise]",
    "[confidence]",
    "[top-label]",
    "def:dec",
    "def:sm-subset",
    "def:p-smooth",
    "[full-smooth]",
    "lm:smooth",
    "[distance]",
    "thm:canonical",
    "lm:full-dce",
    "thm:full",
    "lm:packing",
    "lm:miscalibrated",
    "lm:indistinguishable",
    "def:audit-guarantee",
    "lem:audit",
    "[weak-learner]",
    "thm:red",
    "thm:product-hardness",
    "thm:hardness",
    "thm:hardness-dec",
    "thm:halfspace-auditing",
    "assumption-1",
    "thm:halfspace-learning",
    "claim:closed",
    "alg:kernel-weak",
    "thm:kernel-weak",
    "thm:kernel-audit",
    "alg:kernel-audit",
    "def:mm-kernel",
    "lem:poly-weak",
    "[low-degree]",
    "cor:low-deg",
    "thm:p-smooth",
    "lem:kernel-bound",
    "lem:gkkt",
    "lem:sherstov",
    "lem:lip-approx",
    "cor:kernel",
    "[sigmoid]",
    "lem:sig-approx",
    "lem:sigmoid",
    "thm:hard-psmooth",
    "lm:smooth-sigmoid",
    "thm:hard-sigmoid",
    "lm:sigmoid-reduction",
    "assumption:2",
    "thm:sigmoid-hard",
    "[q-small]",
    "lem:sdp",
    "[pseudorandom]",
    "[interpolation]",
    "lem:corr1",
    "lm:hilbert-concentration",
    "lm:inner-lower",
    "lm:concentration-audit",
]


def rows(start, end=None):
    """The cells of the tables between two headings."""
    part = PAGE[PAGE.index(start) : None if end is None else PAGE.index(end)]
    lines = re.findall(r"^\| (`.*) \|$", part, flags=re.MULTILINE)
    return [[cell.strip() for cell in re.split(r" \| ", line)] for line in lines]


STATEMENTS = rows("## Notions", "The example of cats and dogs")
SLIPS = rows("## Slips in the paper")
OBJECT, TEST = r"`(polycal(?:\.\w+)+)`", r"`(tests/[\w/]+\.py::\w+)`"
OBJECTS = sorted(set(re.findall(OBJECT, PAGE)))
TESTS = sorted(set(re.findall(TEST, PAGE)))
SCRIPTS = sorted(set(re.findall(r"`(examples/\w+\.py)`", PAGE)))


@cache
def functions(path):
    """The names of the functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def resolve(name):
    """The object of a dotted name: the longest module, then attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def test_every_statement_is_there_once():
    assert sorted(row[0].strip("`") for row in STATEMENTS) == sorted(LABELS)


@pytest.mark.parametrize("row", STATEMENTS, ids=lambda row: row[0].strip("`"))
def test_every_statement_has_code_and_a_test(row):
    assert len(row) == 4
    _, said, code, checked = row
    assert said
    assert re.search(r"`polycal\.", code)
    assert re.search(r"`tests/", checked)


@pytest.mark.parametrize("name", OBJECTS)
def test_every_object_exists(name):
    assert resolve(name).__doc__


@pytest.mark.parametrize("name", TESTS)
def test_every_test_exists(name):
    path, _, function = name.partition("::")
    assert function.startswith("test_")
    assert function in functions(path)


@pytest.mark.parametrize("path", SCRIPTS)
def test_every_experiment_exists_with_its_figure(path):
    assert (ROOT / path).is_file()
    figure = Path(path).stem.removeprefix("plot_") + ".png"
    assert f"images/{figure}" in PAGE
    assert (ROOT / "docs" / "images" / figure).is_file()


def test_slips_are_of_known_statements_and_have_a_test():
    labels = {row[0].strip("`") for row in SLIPS}
    assert {"lem:sdp", "lm:full-dce", "lm:miscalibrated", "[pseudorandom]", "thm:sigmoid-hard"} <= labels
    assert labels <= set(LABELS)
    assert all(re.search(r"`tests/", row[-1]) for row in SLIPS)


def functions_of(name):
    """Where the functions of an object start, {(file, line)}: those of a class are its methods, and its heirs'."""
    found = [resolve(name)]
    for part in found:
        if inspect.isclass(part):
            found += part.__subclasses__()
            found += [value for key, value in vars(part).items() if key == "__call__" or key[:2] != "__"]
    functions = {
        inspect.unwrap(_inner(part)) for part in found if not inspect.isclass(part) and callable(_inner(part))
    }
    return {
        (function.__code__.co_filename, function.__code__.co_firstlineno)
        for function in functions
        if hasattr(function, "__code__")
    }


def _inner(part):
    """The function of a property or a method of a class."""
    for name in ("fget", "func", "__func__"):
        part = getattr(part, name, part)
    return part


def recorded_calls(file, tests):
    """{test: {(file, line)}}, from a process of their own that no tracer of this one reaches."""
    own = ("PYTEST_", "COV_", "COVERAGE_")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
        + ["-p", "tests.recording", f"--recorded={file}", *tests],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith(own)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return {test: {tuple(call) for call in calls} for test, calls in json.loads(file.read_text()).items()}


def test_statements_are_checked_by_running_their_code(tmp_path):
    # One test, so that workers in parallel run all this once.
    named = [(row[0], re.findall(OBJECT, row[2]), re.findall(TEST, row[3])) for row in STATEMENTS]
    calls = recorded_calls(tmp_path / "calls.json", sorted({test for _, _, tests in named for test in tests}))
    for name in OBJECTS:
        resolve(name)  # A class knows of those heirs whose modules were imported.
    wrong = []
    for label, objects, tests in named:
        where = {name: functions_of(name) for name in objects}
        wrong += [
            f"{label}: no test runs {name}"
            for name in objects
            if not any(where[name] & calls[t] for t in tests)
        ]
        wrong += [
            f"{label}: {t} runs no object"
            for t in tests
            if not any(found & calls[t] for found in where.values())
        ]
    assert not wrong, "\n".join(wrong)
