import sys
import time

import numpy as np
import pytest
from benchmarks.peers.processes import Limits, Worker, run_job

TINY = {"proba": np.full((30, 3), 1 / 3), "labels": np.arange(30) % 3, "new_proba": np.full((2, 3), 1 / 3)}
MINUTE = Limits(60)
METHODS = """
import numpy as np

class Uniform:
    def fit(self, proba, labels):
        return self
    def predict_proba(self, proba):
        return np.full(proba.shape, 1 / proba.shape[1])

class Partial(Uniform):
    def fit(self, proba, labels):
        self.classes_ = np.array([0, 2])
    def predict_proba(self, proba):
        return np.tile([0.25, 0.75], (len(proba), 1))

class Broken(Uniform):
    def fit(self, proba, labels):
        raise RuntimeError("did not\\nconverge")

class Greedy(Uniform):
    def fit(self, proba, labels):
        if len(proba) != 40:
            self.array = np.ones(1 << 29)

class Large(Uniform):
    def fit(self, proba, labels):
        self.array = np.ones(1 << 23)
"""

COUNTING = """
import json, os, pathlib, sys, time

for count, line in enumerate(sys.stdin, 1):
    job = json.loads(pathlib.Path(line.strip()).read_text())
    if job["do"] == "warm up":
        time.sleep(60)
    pathlib.Path(job["result"]).with_suffix(".warm").touch()
    if job["do"] == "die":
        sys.exit(3)
    if job["do"] == "sleep":
        time.sleep(60)
    result = {"status": "ok", "jobs": count, "process": os.getpid()}
    pathlib.Path(job["result"] + ".part").write_text(json.dumps(result))
    os.rename(job["result"] + ".part", job["result"])
"""


@pytest.fixture
def method(tmp_path, monkeypatch):
    (tmp_path / "stand_ins.py").write_text(METHODS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def run(name, limits=MINUTE, **options):
        job = {"task": "recalibrate", "method": f"stand_ins:{name}", "package": "numpy", **options}
        return run_job(sys.executable, job, TINY, limits)

    return run


def test_a_method_is_fitted_in_a_process_of_its_own(method):
    result = method("Uniform")
    assert result["status"] == "ok"
    assert result["version"] == np.__version__
    assert min(result["fit_seconds"], result["predict_seconds"]) >= 0
    np.testing.assert_allclose(result["output"], 1 / 3)


def test_classes_that_a_method_has_not_seen_get_nothing(method):
    np.testing.assert_array_equal(method("Partial")["output"], [[0.25, 0, 0.75]] * 2)


def test_an_error_is_the_result_in_one_line(method):
    result = method("Broken")
    assert result["status"] == "failed"
    assert result["error"].startswith("RuntimeError: did not converge (stand_ins.py:")


def test_a_method_that_is_not_there_is_an_error(method):
    assert "AttributeError" in method("Absent")["error"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory limits of Linux")
def test_memory_beyond_the_limit_is_an_error(method):
    result = method("Greedy", Limits(60, memory=1 << 30))
    assert result["status"] == "failed"
    assert "MemoryError" in result["error"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a mark that can be reset")
def test_memory_is_what_the_method_took(method):
    # 64 MiB, of which the warm-up's copy may have been kept for reuse.
    assert 0.9 * 2**26 < method("Large", warm_up=False)["peak_bytes"] < 1.5 * 2**26
    assert method("Uniform")["peak_bytes"] < 2**24


def test_one_process_does_job_after_job_and_another_takes_over(tmp_path):
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    with Worker(sys.executable, script=script) as worker:
        first, second = worker.run({"do": "count"}, {}), worker.run({"do": "count"}, {})
        assert second == {**first, "jobs": 2}
        assert "exit code 3" in worker.run({"do": "die"}, {})["error"]
        third = worker.run({"do": "count"}, {})
        late = worker.run({"do": "sleep"}, {}, Limits(0.2))
        assert (late["status"], late["error"]) == ("time limit", "not finished after 0.2 s")
        cold = worker.run({"do": "warm up"}, {}, Limits(60, warm_up=0.2))
        assert (cold["status"], cold["error"]) == ("failed", "imports and a first call took more than 0.2 s")
        fourth = worker.run({"do": "count"}, {})
    assert third["jobs"] == fourth["jobs"] == 1
    assert len({first["process"], third["process"], fourth["process"]}) == 3


def test_a_slow_process_is_stopped_and_reported(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text("import time\ntime.sleep(60)")
    start = time.monotonic()
    result = run_job(sys.executable, {}, {}, Limits(0.5, warm_up=0.5), worker=script)
    assert result == {"status": "failed", "error": "imports and a first call took more than 0.5 s"}
    assert time.monotonic() - start < 20


def test_a_process_that_dies_is_reported_with_its_last_words(tmp_path):
    script = tmp_path / "dying.py"
    script.write_text("import sys\nsys.exit('no such library')")
    result = run_job(sys.executable, {}, {}, Limits(20), worker=script)
    assert result["status"] == "failed"
    assert "exit code 1" in result["error"]
    assert "no such library" in result["error"]


def test_a_process_that_is_killed_is_reported_with_the_signal(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert "SIGKILL" in run_job(sys.executable, {}, {}, Limits(20), worker=script)["error"]


def test_measures_are_timed():
    rng = np.random.default_rng(0)
    arrays = {"proba": rng.random(500), "labels": rng.integers(0, 2, 500)}
    job = {"task": "measure", "method": "numpy argsort (floor)", "package": "numpy", "repeats": 2}
    result = run_job(sys.executable, job, arrays, MINUTE)
    assert result["status"] == "ok"
    assert result["value"] == np.argmin(arrays["proba"])
    assert result["seconds"] > 0


def test_tests_are_given_every_sample():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), (4, 200))
    labels = (proba.cumsum(axis=2) > rng.random((4, 200, 1))).argmax(axis=2)
    labels[3] = 0
    job = {"task": "test", "method": "SKCE block", "package": "numpy", "seconds": 60}
    result = run_job(sys.executable, job, {"proba": proba, "labels": labels}, MINUTE)
    assert len(result["p_values"]) == 4
    stopped = run_job(sys.executable, {**job, "seconds": 0}, {"proba": proba, "labels": labels}, MINUTE)
    assert stopped["p_values"] == result["p_values"][:1]
    assert result["p_values"][3] < 1e-3 < min(result["p_values"][:3])
