import sys

import pytest
from benchmarks.peers import environments
from benchmarks.peers.environments import Environment, Recipe
from benchmarks.peers.hypothesis_tests import TESTS
from benchmarks.peers.measures import MEASURES
from benchmarks.peers.recalibrators import RECALIBRATORS


@pytest.fixture(autouse=True)
def forget():
    environments.environment.cache_clear()
    yield
    environments.environment.cache_clear()


def test_every_recipe_has_a_list_and_its_first_package_is_in_it():
    for recipe in environments.RECIPES.values():
        names = [environments.normalise(line) for line in environments.requirement_lines(recipe.name)]
        assert recipe.first in {*names, ""}


def test_every_peer_is_in_the_list_of_its_environment():
    for entry in (*RECALIBRATORS.values(), *MEASURES.values(), *TESTS.values()):
        if entry.environment != "polycal" and entry.package != "numpy":
            names = map(environments.normalise, environments.requirement_lines(entry.environment))
            assert environments.normalise(entry.package) in set(names)


@pytest.mark.parametrize(
    ("line", "name"),
    [("MAPIE==1.6.0", "mapie"), ("torch-uncertainty[cpu]==0.1", "torch-uncertainty"), ("A_b.c", "a-b-c")],
)
def test_names_are_spelt_as_the_index_does(line, name):
    assert environments.normalise(line) == name


def test_an_environment_that_is_not_there_is_missing_with_the_command(tmp_path):
    place = environments.environment("main", home=tmp_path, create=False)
    assert place.python is None
    assert "python -m benchmarks install" in place.reason("netcal")


def test_without_a_new_enough_interpreter_everything_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "find_python", lambda minimum: None)
    place = environments.make(Recipe("dirichlet", (3, 12)), tmp_path / "dirichlet", [])
    assert place.reason("dirichletcal") == "needs Python 3.12 or newer, and none was found"
    assert not (tmp_path / "dirichlet").exists()


def test_an_interpreter_is_found_or_not():
    assert environments.find_python((3, 11)) == sys.executable
    assert environments.find_python((9, 0)) is None
    assert environments._python_version(sys.executable) == sys.version_info[:2]


def test_when_one_package_fails_the_others_are_installed(monkeypatch):
    commands = []

    def run(command):
        commands.append(command)
        return "ERROR: no match" if "bad==1" in command else None

    monkeypatch.setattr(environments, "_run", run)
    assert environments.install("python", ["torch==1", "good", "bad==1"], "torch") == {
        "bad": "ERROR: no match"
    }
    assert commands[0][-1] == "torch==1"
    assert commands[-1][-1] == "bad==1"


def test_what_was_made_is_remembered_until_the_list_changes(tmp_path, monkeypatch):
    made = []

    def make(recipe, folder, lines):
        made.append(list(lines))
        folder.mkdir(parents=True, exist_ok=True)
        return Environment("python", {"a": "1"}, {"b": "why"})

    monkeypatch.setattr(environments, "make", make)
    monkeypatch.setattr(environments, "requirement_lines", lambda name: ["a", "b"])
    for _ in range(2):
        environments.environment.cache_clear()
        place = environments.environment("main", home=tmp_path)
    assert made == [["a", "b"]]
    assert place.reason("b") == "why"
    assert place.reason("a") is None
    monkeypatch.setattr(environments, "requirement_lines", lambda name: ["a"])
    environments.environment.cache_clear()
    environments.environment("main", home=tmp_path)
    assert made[1:] == [["a"]]


def test_the_own_environment_has_polycal():
    place = environments.environment("polycal")
    assert place.python == sys.executable
    assert "polycal" in place.versions


def test_a_command_that_fails_gives_its_last_words():
    assert environments._run([sys.executable, "-c", "pass"]) is None
    assert environments._run([sys.executable, "-c", "raise SystemExit('no disk')"]) == "no disk"
