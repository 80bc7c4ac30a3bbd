"""The map from the paper to the code stays complete: every statement, every object, every test."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import coverage
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
OBJECTS = sorted(set(re.findall(r"`(polycal(?:\.\w+)+)`", PAGE)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGE)))
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
    assert len(SLIPS) >= 7
    assert {row[0].strip("`") for row in SLIPS} <= set(LABELS)
    assert all(re.search(r"`tests/", row[-1]) for row in SLIPS)


def classes_of(found):
    """A class with those it takes its methods from, and those that inherit its own."""
    inherited = [c for c in found.__mro__ if c.__module__.startswith("polycal")]
    heirs = [found]
    for heir in heirs:
        heirs += heir.__subclasses__()
    return {*inherited, *heirs}


def lines_of(name):
    """{file: numbers of its lines} of an object."""
    found = resolve(name)
    parts = classes_of(found) if inspect.isclass(found) else {inspect.unwrap(found)}
    lines = {}
    for part in parts:
        source, start = inspect.getsourcelines(part)
        lines.setdefault(inspect.getsourcefile(part), set()).update(range(start, start + len(source)))
    return lines


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The lines that each test named here runs, as {test: {file: numbers}}; all in one process of their own."""
    file = tmp_path_factory.mktemp("coverage") / "data"
    command = ["-m", "pytest", "-q", "-p", "no:randomly", "-o", "addopts=", "-m", "", "--cov=polycal"]
    command += ["--cov-context=test", "--cov-report=", *TESTS]
    run = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "COVERAGE_FILE": str(file), "COVERAGE_CORE": "ctrace"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    data = coverage.CoverageData(str(file))
    data.read()
    found = {}
    for source in data.measured_files():
        for line, contexts in data.contexts_by_lineno(source).items():
            for context in contexts:
                test = context.partition("|")[0].partition("[")[0]
                found.setdefault(test, {}).setdefault(source, set()).add(line)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("row", STATEMENTS, ids=lambda row: row[0].strip("`"))
def test_every_statement_is_checked_by_running_its_code(row, executed):
    tests = re.findall(r"`(tests/[\w/]+\.py::\w+)`", row[3])
    for name in re.findall(r"`(polycal(?:\.\w+)+)`", row[2]):
        lines = lines_of(name)
        ran = [
            test for test in tests for file in lines if lines[file] & executed.get(test, {}).get(file, set())
        ]
        assert ran, f"no test of this row runs {name}"
