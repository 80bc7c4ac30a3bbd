"""What a release consists of agrees with itself."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import polycal as pc

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
YAML = sorted([*ROOT.glob(".*.yaml"), *ROOT.glob("*.yml"), *(ROOT / ".github").rglob("*.yml")])


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_every_settings_file_can_be_read(path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert pc.__version__ == citation["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", pc.__version__)


def test_placeholders_are_marked_and_stop_a_release():
    urls = PROJECT["project"]["urls"].values()
    held = [url for url in urls if "placeholder" in url]
    assert all(url.startswith("https://placeholder.invalid/") for url in held)
    assert "placeholder.invalid" in (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert not held or "PLACEHOLDERS" in (ROOT / "pyproject.toml").read_text()


def test_hooks_and_checks_have_one_version_of_ruff():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    rev = next(hook["rev"] for hook in hooks if "ruff" in hook["repo"])
    assert f"ruff=={rev.removeprefix('v')}" in PROJECT["dependency-groups"]["check"]


def test_every_dependency_is_reviewed():
    said = (ROOT / "CONTRIBUTING.md").read_text().partition("## Dependencies")[2]
    names = [re.match(r"[\w-]+", line)[0] for line in PROJECT["project"]["dependencies"]]
    assert [name for name in names if name not in said] == []
    extras = set(PROJECT["project"]["optional-dependencies"]) - {"all"}
    assert extras == set(re.findall(r"^\| `(\w+)` \|", said, flags=re.MULTILINE))


def test_the_paper_cites_what_it_lists():
    cited = set(re.findall(r"@([\w-]+)", (ROOT / "paper" / "paper.md").read_text()))
    listed = re.findall(r"^@\w+\{([\w-]+),", (ROOT / "paper" / "paper.bib").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(cited)


def test_the_archive_has_a_creator_and_a_licence():
    archive = json.loads((ROOT / ".zenodo.json").read_text())
    assert archive["license"] == PROJECT["project"]["license"]
    assert archive["creators"]
