"""What the command does with pipes, signals, and a standard input that is not there."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and signals of POSIX")


@pytest.mark.parametrize("command", ["audit --html", "audit --markdown", "recalibrate --out", "apply --out"])
def test_pipes_are_not_replaced_and_folders_are_looked_at_first(
    run, over_confident, tmp_path, command, monkeypatch
):
    name, option = command.split()
    pipe = tmp_path / ("pipe.npz" if name == "apply" else "pipe")
    os.mkfifo(pipe)
    model = tmp_path / "m.polycal"
    run("recalibrate", over_confident, "--method", "temperature", "--out", model)
    inputs = [model, over_confident] if name == "apply" else [over_confident]
    # The work is not begun.
    monkeypatch.setattr("polycal.cli.audit._audit", None)
    monkeypatch.setattr("polycal.cli.recalibrate.read_sample", None)
    monkeypatch.setattr("polycal.io.predictions._read", None)
    for target, said in (
        (pipe, "is a pipe or a device"),
        (tmp_path / "no" / pipe.name, "there is no folder"),
    ):
        done = run(name, *inputs, option, target)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_closed_standard_input_is_one_line(tmp_path):
    command = f"{sys.executable} -m polycal audit - <&-"
    done = subprocess.run(["sh", "-c", command], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("polycal: nothing is piped to standard input")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_no_copy_of_standard_input(tmp_path, number):
    command = [sys.executable, "-m", "polycal", "audit", "-"]
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}
    )
    started.stdin.write(b"cat,dog,label\n" + b"0.5,0.5,cat\n" * 100_000)
    started.stdin.flush()
    for _ in range(600):
        if list(tmp_path.glob("*/stdin.csv")):
            break
        time.sleep(0.1)
    assert list(tmp_path.glob("*/stdin.csv"))
    started.send_signal(number)
    _, said = started.communicate(timeout=60)
    assert started.returncode == -number
    assert said == b""
    assert not list(tmp_path.iterdir())


INTERRUPTED = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "polycal.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from polycal.cli import main
main()
"""


def test_ctrl_c_during_imports_is_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")
