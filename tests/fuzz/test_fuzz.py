"""A fixed sample of damaged files of every format; ``make fuzz`` goes on with others."""

import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("resource")


@pytest.mark.parametrize("kind", ["npz", "npy", "csv", "parquet", "feather", "yaml", "json"])
def test_damaged_files_are_refused_in_one_line(kind):
    command = [sys.executable, "-m", "tests.fuzz", kind, "0", "150"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    last = (done.stdout.splitlines() or ["none"])[-1]
    assert done.returncode == 0, f"exit {done.returncode} at case {last}: {done.stderr[-3000:]}"
