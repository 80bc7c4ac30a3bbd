"""The command: files counted once, whatever stops it; pages, numbers for Prometheus, and following a folder."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from tests.cli.conftest import run  # noqa: F401 - a fixture
from tests.monitoring.test_monitor import stream

import polycal as pc
from polycal.monitoring.ledger import Ledger

NAMES = ["cat", "dog", "bus", "car"]


def write(path, seed, n=60, sharpness=0.5, **options):
    y, p = stream(n, seed=seed, sharpness=sharpness)
    pc.write_predictions(path, y, p, class_names=NAMES, **options)
    return y, p


@pytest.fixture
def days(tmp_path):
    """Three files, and what they hold."""
    return [write(tmp_path / f"day{i}.npz", seed=40 + i) for i in range(3)]


def test_files_are_counted_once_in_order(run, days, tmp_path):  # noqa: F811
    done = run("monitor", "s.polycal", "day0.npz", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["files"] == ["day0.npz"]
    (tmp_path / "copy.npz").write_bytes((tmp_path / "day0.npz").read_bytes())
    done = run("monitor", "s.polycal", "day*.npz", "copy.npz", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert said["files"] == ["day1.npz", "day2.npz"]
    whole = pc.Monitor()
    for y, p in days:
        whole.update(y, p)
    assert said["evidence"] == pytest.approx(whole.evidence)
    assert done.returncode == int(whole.alarm) == 1
    assert pc.load(tmp_path / "s.polycal").n_rows == 180


def test_what_was_counted_must_not_change(run, days, tmp_path):  # noqa: F811
    assert run("monitor", "s.polycal", "day0.npz", "-q", "--tolerance", "0.5", cwd=tmp_path).returncode == 0
    write(tmp_path / "day0.npz", seed=99)
    done = run("monitor", "s.polycal", "day0.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert "day0.npz: has changed since it was counted" in done.stderr
    for option in (("--alpha", "0.2"), ("--groups", "g.yaml"), ("--tolerance", "0")):
        done = run("monitor", "s.polycal", "day1.npz", *option, cwd=tmp_path)
        assert done.returncode == 2
        assert re.search(rf"was begun .*leave {option[0]} out, or begin a new file", done.stderr)


def test_a_bad_file_leaves_what_was_before(run, days, tmp_path):  # noqa: F811
    (tmp_path / "bad.csv").write_text("cat,dog,bus,car,label\n.25,.25,.25,.25,cat\n.9,.9,0,0,dog\n")
    done = run("monitor", "s.polycal", "day0.npz", "bad.csv", "day1.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("polycal: bad.csv: y_proba[1] does not sum to 1")
    (tmp_path / "three.csv").write_text("cat,dog,bus,label\n.25,.25,.5,cat\n")
    done = run("monitor", "s.polycal", "three.csv", cwd=tmp_path)
    assert done.stderr.startswith("polycal: three.csv: y_proba has 3 classes but the monitor watches 4")
    assert pc.load(tmp_path / "s.polycal").n_rows == 60
    assert run("monitor", "s.polycal", "day1.npz", "-q", cwd=tmp_path).returncode in {0, 1}
    assert pc.load(tmp_path / "s.polycal").n_rows == 120
    done = run("monitor", "s.polycal", "-", cwd=tmp_path)
    assert "standard input has no contents to be known by" in done.stderr
    pc.TemperatureScaling().fit(np.eye(3), [0, 1, 2]).save(tmp_path / "model.polycal")
    assert "not a monitor" in run("monitor", "model.polycal", "day0.npz", cwd=tmp_path).stderr


def test_a_failure_half_way_through_a_file_takes_nothing_in(days, tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "s.polycal", pc.Monitor(tolerance=0.1), "1GiB", "all", pc.io.layout.Layout())
    ledger.count(tmp_path / "day0.npz")
    update = pc.Monitor.update

    def failing(self, *args, **options):
        update(self, *args, **options)
        raise MemoryError

    monkeypatch.setattr(pc.Monitor, "update", failing)
    with pytest.raises(MemoryError):
        ledger.count(tmp_path / "day1.npz")
    monkeypatch.undo()
    assert ledger.monitor.n_rows == 60
    assert ledger.count(tmp_path / "day1.npz") == "counted"
    assert ledger.count(tmp_path / "day1.npz") == "known"
    assert ledger.monitor.n_rows == pc.load(tmp_path / "s.polycal").n_rows == 120


# Kills itself instead of the n-th replacement of the monitor's file, or right after it.
_KILLED = """
import os, signal, sys
from pathlib import Path
from polycal.cli import main
left, after = int(sys.argv.pop(1)), sys.argv.pop(1) == "after"
replace = Path.replace
def counting(self, target):
    global left
    left -= 1
    if left == 0 and not after:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(self, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
Path.replace = counting
main()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_a_killed_process_loses_nothing_and_counts_nothing_twice(days, tmp_path):
    command = ["monitor", "s.polycal", "day0.npz", "day1.npz", "day2.npz", "-q", "--tolerance", "0.9"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    def killed(steps, when):
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, str(steps), when, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=False,
        )
        return done.returncode

    assert killed(1, "before") == -signal.SIGKILL
    assert not (tmp_path / "s.polycal").exists()
    assert killed(2, "after") == -signal.SIGKILL
    assert pc.load(tmp_path / "s.polycal").n_rows == 120
    assert killed(9, "after") == 0
    again = pc.load(tmp_path / "s.polycal")
    whole = pc.Monitor(tolerance=0.9)
    for y, p in days:
        whole.update(y, p)
    assert again.evidence == whole.evidence
    assert list(again.counted.values()) == ["day0.npz", "day1.npz", "day2.npz"]


def test_pages_and_numbers(run, tmp_path):  # noqa: F811
    pc.write_predictions(
        tmp_path / "p.npz", *stream(300, sharpness=0.2), class_names=['"a\\', "<b>", "c", "d"]
    )
    done = run(
        "monitor",
        "s.polycal",
        "p.npz",
        "--tolerance",
        "0.01",
        "--html",
        "m.html",
        "--prometheus",
        "m.prom",
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "Files counted: 1, known already: 0." in done.stdout
    page = (tmp_path / "m.html").read_text()
    assert "The probabilities are not right" in page
    assert "<b>" not in page.replace("<body>", "").replace("<button", "")
    text = (tmp_path / "m.prom").read_text()
    assert "\npolycal_monitor_alarm 1\n" in text
    for line in text.splitlines():
        assert re.fullmatch(
            r'# (HELP|TYPE) .*|polycal_monitor_\w+(\{\w+="([^"\\]|\\.)*"\})? -?[\d.e+-]+', line
        ), line


def test_values_of_columns_are_slices(run, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    y, p = stream(400, seed=3)
    side = rng.integers(0, 2, 400)
    wrong = np.where(side == 1, rng.integers(0, 4, 400), y)
    rows = "\n".join(
        ",".join(map(repr, row.tolist())) + f",{NAMES[c]},{'left' if s else 'right'}"
        for row, c, s in zip(p, wrong, side, strict=True)
    )
    (tmp_path / "p.csv").write_text("cat,dog,bus,car,label,side\n" + rows)
    done = run(
        "monitor", "s.polycal", "p.csv", "--slice-by", "side", "--tolerance", "0.02", "--json", cwd=tmp_path
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)["findings"]
    assert found[0]["question"] == "is the most likely class right, where side is left?"


def test_a_folder_is_followed_until_there_is_an_alarm(run, tmp_path):  # noqa: F811
    folder = tmp_path / "days"
    folder.mkdir()

    def later():
        # A folder without files, and one that loses them, is waited for.
        time.sleep(0.1)
        write(tmp_path / "a.npz", seed=50, sharpness=1.0)
        (tmp_path / "a.npz").rename(folder / "a.npz")
        while not (tmp_path / "s.polycal").exists():
            time.sleep(0.02)
        (folder / "a.npz").unlink()
        time.sleep(0.2)
        (folder / "bad.csv").write_text("nothing")
        write(tmp_path / "b.npz", seed=51, n=500, sharpness=0.1)
        (tmp_path / "b.npz").rename(folder / "b.npz")

    thread = threading.Thread(target=later, daemon=True)
    thread.start()
    done = run(
        "monitor", "s.polycal", "days", "--follow", "--every", "0.1", "--tolerance", "0.01", cwd=tmp_path
    )
    thread.join(60)
    assert done.returncode == 1
    assert done.stderr.count("days: the folder has no file of predictions") == 1
    assert done.stderr.count("bad.csv") == 1
    assert pc.load(tmp_path / "s.polycal").n_rows == 560


def test_two_at_once_are_refused(run, days, tmp_path):  # noqa: F811
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / ".s.polycal.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = run("monitor", "s.polycal", "day0.npz", cwd=tmp_path)
    assert "another polycal monitor is at work on it" in done.stderr
