"""Sphinx configuration. Builds offline: `make docs`."""

import re
import shutil
from dataclasses import is_dataclass
from pathlib import Path

import polycal

project = "polycal"
author = "The polycal developers"
copyright = "The polycal developers"
version = release = polycal.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]

# Single backquotes in docstrings name objects.
default_role = "py:obj"
add_module_names = False

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3

autosummary_generate = True
# Pages of names that are gone would stay otherwise, and be warned of.
shutil.rmtree(Path(__file__).parent / "api" / "generated", ignore_errors=True)
# polycal.audit and polycal.Audit would be the same file where case does not count.
autosummary_filename_map = {"polycal.audit": "polycal.audit-function"}
autodoc_typehints = "none"

# Attributes are described in the class docstring, methods by the template.
numpydoc_show_class_members = False
# Parameters that no docstring describes, or that do not exist, stop the build.
numpydoc_validation_checks = {"GL01", "GL03", "GL06", "GL07", "GL08", "PR01", "PR02", "PR10", "SS01", "SS04"}
# Not checked: methods, where one line may say all; and results, which callers read but never make.
results = [
    f"{module.__name__}.{name}"
    for module in (polycal, polycal.hardness, polycal.sparse)
    for name in module.__all__
    if is_dataclass(getattr(module, name)) and not issubclass(getattr(module, name), polycal.Notion)
]
numpydoc_validation_exclude = {r"\.[A-Z]\w*\."} | {rf"^{re.escape(name)}$" for name in results}

html_theme = "pydata_sphinx_theme"
html_title = "polycal"
html_show_sourcelink = False
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"**": ["sidebar-nav-bs"], "index": []}


def skip_routing(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn adds for metadata routing: they link to its own pages."""
    return True if re.fullmatch(r"(get_metadata_routing|set_\w+_request)", name) else None


def setup(app):
    app.connect("autodoc-skip-member", skip_routing)
