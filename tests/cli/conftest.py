import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import numpy as np
import pytest

import polycal as pc
from polycal.cli import main


@pytest.fixture
def run(monkeypatch):
    """Run the command as a user does, but in this process: a new one takes seconds to start."""

    def command(*args, cwd=None, stdin=None):
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["polycal", *map(str, args)])
            if cwd is not None:
                patch.chdir(cwd)
            if stdin is not None:
                patch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin, isatty=lambda: False))
            with pytest.raises(SystemExit) as ended:
                main()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=out.getvalue(), stderr=err.getvalue())

    return command


@pytest.fixture
def run_process():
    """Run the command in a process of its own."""

    def command(*args, **options):
        arguments = [sys.executable, "-m", "polycal", *map(str, args)]
        return subprocess.run(arguments, capture_output=True, text=True, check=False, **options)

    return command


@pytest.fixture
def over_confident(tmp_path):
    """A file of predictions that are too sharp, with parts, weights and names."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 400)
    labels = (truth.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    proba = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    pc.write_predictions(
        tmp_path / "p.npz",
        labels,
        proba,
        sample_weight=rng.integers(1, 3, 400),
        class_names=["cat", "dog", "<eel>"],
        evaluation=np.arange(400) >= 200,
    )
    return tmp_path / "p.npz"
