"""The documentation keeps up with the code: names, words, links, examples."""

import doctest
import inspect
import json
import re
import runpy
import tomllib
from operator import attrgetter
from pathlib import Path

import pytest
import yaml

import polycal as pc

ROOT = Path(__file__).parents[1]
SOURCE = Path(pc.__file__).parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "migrating").glob("*.md")])
TEXTS = [*sorted(ROOT.glob("*.md")), *PAGES]
FILES = [*TEXTS, ROOT / "NOTICE", ROOT / "CITATION.cff", *sorted((ROOT / "examples").glob("*.py"))]
# The ideas that have a word of their own.
VOCABULARY = (
    "sample",
    "group",
    "notion",
    "error",
    "auditor",
    "witness",
    "certificate",
    "audit",
    "calibrator",
)


def by_name(path):
    return path.relative_to(ROOT).as_posix()


def api_entries():
    """What the API page lists, and the modules it mentions as `polycal.module`."""
    text = (ROOT / "docs" / "api.md").read_text()
    return re.findall(r"^ {3}([\w.]+)$", text, flags=re.MULTILINE), re.findall(r"`polycal\.(\w+)`", text)


@pytest.mark.parametrize("name", pc.__all__)
def test_every_public_name_is_in_the_api_page(name):
    listed, mentioned = api_entries()
    assert name in {*listed, *mentioned}


@pytest.mark.parametrize("package", sorted(path.parent.name for path in SOURCE.glob("[!_]*/__init__.pyi")))
def test_every_public_name_of_a_package_is_in_the_api_page(package):
    listed = {entry.rpartition(".")[2] for entry in api_entries()[0]}
    assert sorted(set(getattr(pc, package).__all__) - listed) == []


def test_the_api_page_lists_only_what_exists():
    for entry in api_entries()[0]:
        module, _, name = entry.rpartition(".")
        assert hasattr(getattr(pc, module) if module else pc, name), entry


def test_every_name_of_the_api_page_has_an_example():
    # Former names are kept for files and programs that have them: their pages name what replaces them.
    former = ("sparse.", "states.Truncated")
    listed = [entry for entry in api_entries()[0] if not entry.startswith(former)]
    assert [entry for entry in listed if ">>>" not in inspect.getdoc(attrgetter(entry)(pc))] == []


def public_classes(base):
    """The names of the public classes derived from one of them."""
    classes = {name: value for name in pc.__all__ if isinstance(value := getattr(pc, name), type)}
    return [name for name, value in classes.items() if issubclass(value, base) and value is not base]


@pytest.mark.parametrize("page", ["how-to-choose.md", "theory.md"])
def test_every_notion_is_in_the_guides(page):
    rows = re.findall(r"^\| `(\w+)", (ROOT / "docs" / page).read_text(), flags=re.MULTILINE)
    assert sorted(set(public_classes(pc.Notion)) - set(rows)) == []


def test_every_auditor_is_in_the_guide():
    rows = re.findall(r"^\| `(\w+)", (ROOT / "docs" / "how-to-choose.md").read_text(), flags=re.MULTILINE)
    assert sorted(set(public_classes(pc.Auditor)) - set(rows)) == []


def test_every_calibrator_is_in_the_guide():
    rows = re.findall(r"^\| `(\w+)", (ROOT / "docs" / "how-to-choose.md").read_text(), flags=re.MULTILINE)
    assert sorted(set(public_classes(pc.Calibrator)) - set(rows)) == []


def test_the_guide_names_every_test_and_interval():
    text = (ROOT / "docs" / "how-to-choose.md").read_text()
    names = ("certify", "calibration_test", "kernel_test", "bootstrap_interval")
    names += tuple(name for name in pc.__all__ if name.startswith("mean_"))
    assert [name for name in names if f"pc.{name}" not in text] == []


def test_the_glossary_has_every_word():
    text = (ROOT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^(\w[\w ]*)\n {4}\w", text, flags=re.MULTILINE)
    assert sorted(set(VOCABULARY) - set(terms)) == []


def test_every_layer_is_explained():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    modules = {module for layer in layers for module in layer.split(" : ")}
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "how-it-works.md").read_text(), flags=re.MULTILINE)
    explained = {module for row in rows for module in re.findall(r"`(\w+)`", row)}
    assert explained == modules


def anchors(path):
    """What links into a page may name: its headings, as GitHub and Sphinx write them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", TEXTS, ids=by_name)
def test_relative_links_exist(path):
    text = path.read_text()
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
        r"^```\{(?:image|include)\} (\S+)", text, re.MULTILINE
    )
    for link in links:
        file, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("path", [path for path in TEXTS if ">>>" in path.read_text()], ids=by_name)
def test_examples_run(path):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(path), module_relative=False, optionflags=flags, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("script", "figure"),
    [
        ("plot_first_look.py", "cumulative.png"),
        ("plot_find_worst_subset.py", "worst_subset.png"),
        *(
            pytest.param(f"plot_{name}.py", f"{name}.png", marks=pytest.mark.slow)
            for name in (
                "blind_until_repeats",
                "hidden_from_auditors",
                "theory_and_practice",
                "what_it_costs",
                "what_single_classes_hide",
            )
        ),
    ],
)
def test_every_figure_is_made_by_its_script(tmp_path, script, figure):
    output = tmp_path / figure
    made = runpy.run_path(str(ROOT / "examples" / script))
    # One repetition of each experiment: the figure of the documentation has more, and takes minutes.
    made["main"].__globals__.update(
        {name: 1 for name in ("N_SEEDS", "N_TRIALS", "N_FULL_TRIALS") if name in made}
    )
    made["main"](output)
    signature = b"\x89PNG\r\n\x1a\n"
    assert output.read_bytes().startswith(signature)
    assert (ROOT / "docs" / "images" / figure).read_bytes().startswith(signature)


def test_the_figures_of_the_readme_are_those_of_the_benchmarks():
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/benchmarks-sets.md"))
    said = re.findall(r"log loss to (0\.\d+) of.*?brought it to (0\.\d+)", readme, flags=re.DOTALL)
    ranked = [line.split(" | ") for line in page.splitlines() if line.count(" | ") == 13]
    ours = next(line for line in ranked if line[0] == "| polycal KernelCalibrator")
    peers = [line for line in ranked if not line[0].startswith(("| polycal", "| method"))]
    ratios = [line[8].split(" / ")[0] for line in peers]
    assert said == [(ours[8].split(" / ")[0], min(ratio for ratio in ratios if ratio != "–"))]


def test_the_rows_from_which_on_hardly_anything_is_harmed_are_those_of_the_benchmarks():
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/benchmarks.md"))
    pattern = r"From (\d+) rows on .*? on (\d+) tasks .*? on (\d+), by less than 1 %.*? on (\d+) of (\d+)"
    first, tasks, raised, harmed, few = map(int, re.search(pattern, readme, re.DOTALL).groups())
    header = next(line for line in page.splitlines() if f"| below {first} rows ({few}) |" in line)
    sizes = [int(size) for size in re.findall(r"\((\d+)\)", header)]
    ours = next(line for line in page.splitlines() if line.startswith("| polycal Kernel") and "%" in line)
    parts = [int(part) for part in re.findall(r"(\d+)%", ours)]
    assert parts[0] == round(100 * harmed / few)
    assert sum(round(part * size / 100) for part, size in zip(parts[1:4], sizes[1:4], strict=True)) == raised
    assert sum(sizes[1:4]) == tasks
    assert worst_ratio(first) < 1.01


def worst_ratio(first):
    """The largest log loss of the kernel calibrator, to the input's, on a small task of so many rows or more."""
    lines = (ROOT / "benchmarks/results/small.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["n_calibration"] >= first]
    ours, given = (
        {row["set"]: row["log_loss"] for row in rows if row["method"] == method}
        for method in ("polycal KernelCalibrator", "none")
    )
    return max(ours[name] / given[name] for name in ours)


def test_the_citation_is_complete():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["authors"] == [{"name": "The polycal developers"}]
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)


def test_the_shipped_data_is_credited():
    notice = (ROOT / "NOTICE").read_text()
    assert "Copyright © 2017 Zalando SE" in notice
    assert [file.name for file in (SOURCE / "data").glob("*.npz") if file.name not in notice] == []


@pytest.mark.parametrize("path", FILES, ids=by_name)
def test_nothing_is_left_to_do(path):
    assert re.search(r"TODO|FIXME|XXX", path.read_text()) is None
