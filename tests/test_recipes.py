"""The recipes run, on the small models that they make themselves; those of missing packages are skipped."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "examples" / "recipes").glob("recipe_*.py"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # of other packages
def test_recipes_run(recipe, monkeypatch, tmp_path):
    # Keras imports its backend with itself.
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    for package in re.findall(r"^(?:import|from) (\w+)", recipe.read_text(), flags=re.MULTILINE):
        pytest.importorskip(package, reason=f"{recipe.name} needs {package}: make test-integrations")
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path(str(recipe), run_name="__main__")
    assert made["after"] <= made["before"] + 0.01
