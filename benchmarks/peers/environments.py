"""Virtual environments of the peers, made on demand from the requirement lists beside this file.

The library never depends on a peer, and the peers never share an environment with it. What cannot be installed is
remembered with the reason, so that the report can list it as missing.
"""

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.store import keep_out_of_git

ROOT = Path(__file__).parents[2]
HOME = Path(os.environ.get("POLYCAL_PEERS", ROOT / ".venv-peers"))
REQUIREMENTS = Path(__file__).parent / "requirements"
INSTALL_LIMIT = 3600


@dataclass(frozen=True)
class Recipe:
    """How to make an environment.

    Attributes
    ----------
    name : str
        Its folder, and its requirement list.
    min_python : tuple of int
        The oldest interpreter its packages accept.
    first : str
        The package to install before the others, or an empty string.
    """

    name: str
    min_python: tuple[int, int] = (3, 11)
    first: str = ""


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("main", first="torch"),
        Recipe("torch-uncertainty", first="torch"),
        Recipe("dirichlet", min_python=(3, 12)),
        Recipe("monitors"),
        Recipe("multicalibration"),
    )
}


@dataclass(frozen=True)
class Environment:
    """An environment that may lack some of its packages, or all of them.

    Attributes
    ----------
    python : str or None
        Its interpreter; None if it could not be made.
    versions : dict of str to str
        The packages asked for that it has.
    missing : dict of str to str
        Those it lacks, each with the reason. The key ``"*"`` stands for all of them.
    """

    python: str | None
    versions: dict
    missing: dict

    def reason(self, package):
        """Why a package is missing; None if it is not."""
        return self.missing.get("*") or self.missing.get(normalise(package))


@cache
def own_environment():
    """The environment this process runs in: that of polycal and of scikit-learn."""
    names = ("polycal", "scikit-learn", "numpy", "scipy", "numba")
    return Environment(sys.executable, {name: importlib.metadata.version(name) for name in names}, {})


@cache
def environment(name, *, home=HOME, create=True):
    """The environment of this name, made now if it is not there or its list has changed.

    With ``create=False`` an environment that is not there is reported as missing.
    """
    if name == "polycal":
        return own_environment()
    recipe = RECIPES[name]
    folder, lines = home / name, requirement_lines(name)
    state = folder / "state.json"
    fingerprint = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    if state.exists():
        known = json.loads(state.read_text())
        if known["fingerprint"] == fingerprint:
            return Environment(known["python"], known["versions"], known["missing"])
    if not create:
        return Environment(None, {}, {"*": "not installed; run `python -m benchmarks install`"})
    made = make(recipe, folder, lines)
    # What failed as a whole (no interpreter, no network) is tried again next time.
    if made.python is not None:
        state.write_text(json.dumps({"fingerprint": fingerprint, **vars(made)}, indent=1))
    return made


def make(recipe, folder, lines):
    """Make the environment from nothing; never raises, but says what is missing and why."""
    base = find_python(recipe.min_python)
    if base is None:
        version = ".".join(map(str, recipe.min_python))
        return Environment(None, {}, {"*": f"needs Python {version} or newer, and none was found"})
    print(f"making the environment of the peers {folder.name!r} (minutes) ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    keep_out_of_git(folder.parent)
    created = _run([base, "-m", "venv", str(folder)])
    python = str(folder / "bin" / "python")
    if created is not None:
        return Environment(None, {}, {"*": f"no virtual environment: {created}"})
    _run([python, "-m", "pip", "install", "--quiet", "--upgrade", "pip", "setuptools", "wheel"])
    failed = install(python, lines, recipe.first)
    return Environment(python, installed_versions(python, lines), failed)


def install(python, lines, first=""):
    """Install the lines together, or one by one if that fails; the failures with their reasons."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    ahead = [line for line in lines if first and normalise(line) == first]
    if ahead:
        _run([*pip, *ahead])
    if _run([*pip, *lines]) is None:
        return {}
    reasons = {normalise(line): _run([*pip, *ahead, line]) for line in lines}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def installed_versions(python, lines):
    """The versions of the listed packages that the interpreter finds."""
    script = "import json, importlib.metadata as m; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    known = {normalise(name): version for name, version in found.items()}
    return {name: known[name] for name in map(normalise, lines) if name in known}


def requirement_lines(name):
    """The packages of a requirement list."""
    lines = (REQUIREMENTS / f"{name}.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def normalise(requirement):
    """The package's name as the index spells it, without version and extras."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement).group()
    return re.sub(r"[-_.]+", "-", name).lower()


def find_python(minimum):
    """The path of an interpreter at least this new: this one, one on the path, or one of pyenv's."""
    named = [shutil.which(f"python3.{minor}") for minor in range(minimum[1], minimum[1] + 5)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, *filter(None, named), *map(str, sorted(pyenv.glob("3.*/bin/python")))]
    return next((path for path in candidates if _python_version(path) >= minimum), None)


def _python_version(path):
    """(major, minor) of an interpreter; (0, 0) if it does not run."""
    script = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0, 0)


def _run(command):
    """Run a command; None if it went well, else the last line of what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return f"installation took more than {INSTALL_LIMIT} s"
    if done.returncode == 0:
        return None
    said = (
        [line for line in done.stderr.splitlines() if "ERROR" in line]
        or done.stderr.splitlines()
        or ["failed"]
    )
    return said[-1].strip()
