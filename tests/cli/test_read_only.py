"""A read-only installation without a cache works, and says why it is slow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import polycal as pc

PYTHON = "import polycal as pc; print(pc.smooth_calibration_error([0, 1, 1], [[.5, .5], [.4, .6], [.2, .8]]))"


@pytest.fixture
def environment(tmp_path):
    """A copy of the package in which nothing can be written, and no home."""
    ignored = shutil.ignore_patterns("__pycache__")
    copy = Path(shutil.copytree(Path(pc.__file__).parent, tmp_path / "lib" / "polycal", ignore=ignored))
    # Rights do not hold back root; a file in the place of the folder does.
    (copy / "_compiled" / "__pycache__").write_text("")
    (copy / "_compiled").chmod(0o555)
    blocked = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA")
    kept = {name: value for name, value in os.environ.items() if name not in blocked}
    yield kept | {"HOME": os.devnull, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    (copy / "_compiled").chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
@pytest.mark.parametrize("arguments", [["-c", PYTHON], ["-m", "polycal", "audit", "p.csv"]])
def test_it_works_and_says_why_it_is_slow(environment, tmp_path, arguments):
    (tmp_path / "p.csv").write_text("cat,dog,label\n" + "0.25,0.75,dog\n0.5,0.5,cat\n" * 20)
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.count("compiled functions cannot be kept") == 1
    if "-m" in arguments:
        assert done.stderr.startswith("polycal: compiled functions")
        assert len(done.stderr.splitlines()) == 1
