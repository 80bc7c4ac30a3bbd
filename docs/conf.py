"""Sphinx configuration. Builds offline: `make docs`."""

import os
import re
import shutil
from dataclasses import is_dataclass
from operator import attrgetter
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
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]

ICON = Path(polycal.__file__).parent / "explorer" / "static" / "icon.svg"

# Tutorials are run when the documentation is built; recipes are shown only, since they need large packages (tests run
# them); the scripts of the documentation's figures take minutes, and are neither.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/tutorial_",
    "ignore_pattern": r"(^|/)plot_",
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "ignore_repr_types": r"matplotlib",
    "min_reported_time": 600,
    "remove_config_comments": True,
    "download_all_examples": False,
    "default_thumb_file": str(ICON),
    "plot_gallery": os.environ.get("POLYCAL_RUN_GALLERY", "1") == "1",
}

# Links into the documentation of others need their inventories, which are downloaded: where pages are published only.
intersphinx_mapping = (
    {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
    }
    if {"CI", "READTHEDOCS"} & os.environ.keys()
    else {}
)

# Buttons copy what is typed, without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

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
# Not checked: methods, where one line may say all; results, which callers read but never make; and former names.
listed = re.findall(r"^ {3}([\w.]+)$", (Path(__file__).parent / "api.md").read_text(), flags=re.MULTILINE)
results = [
    f"polycal.{name}"
    for name in listed
    if is_dataclass(made := attrgetter(name)(polycal))
    and not issubclass(made, polycal.Notion | polycal.Auditor)
]
former = {r"^polycal\.sparse\.", r"^polycal\.states\.Truncated"}
numpydoc_validation_exclude = {r"\.[A-Z]\w*\."} | former | {rf"^{re.escape(name)}$" for name in results}

html_theme = "pydata_sphinx_theme"
html_title = "polycal"
html_favicon = html_logo = str(ICON)
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "polycal"},
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    # More of them break the line on a laptop.
    "header_links_before_dropdown": 3,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages of a folder have a column that leads to the others; single pages need none.
html_sidebars = {"*": [], "*/**": ["sidebar-nav-bs"]}


def skip_routing(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn adds for metadata routing: they link to its own pages."""
    return True if re.fullmatch(r"(get_metadata_routing|set_\w+_request)", name) else None


def setup(app):
    app.connect("autodoc-skip-member", skip_routing)
