from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.data import Split, prediction_sets
from benchmarks.methods import Method
from benchmarks.peers.processes import Limits
from benchmarks.store import Store

from benchmarks import recalibration
from polycal.sample import Sample


class FakeSet:
    def __init__(self, name="fake", n=60):
        self.name, self.n = name, n
        self.n_cells = 3 * n
        self.fingerprint = "abc"

    def split(self, seed):
        rng = np.random.default_rng(seed)
        parts = [Sample(rng.dirichlet(np.ones(3), self.n), rng.integers(0, 3, self.n)) for _ in range(2)]
        return Split(*parts)


ONE_SET = (FakeSet(),)


class Attempts:
    """Stands for the processes: answers by the method's name, and counts."""

    def __init__(self):
        self.made = []

    def __call__(self, method):
        return nullcontext(SimpleNamespace(run=partial(self.run, method)))

    def run(self, method, given, limits):
        self.made.append(method.name)
        if method.name == "slow":
            return {"status": "time limit", "error": f"not finished after {limits.seconds:g} s"}
        if method.name == "broken":
            return {"status": "failed", "error": "RuntimeError: no"}
        with np.load(given) as arrays:
            out = arrays["new_proba"] * (2 if method.name == "unnormalised" else 1)
        if method.name == "wrong":
            out = out[:, :2]
        return {"status": "ok", "fit_seconds": 0.1, "predict_seconds": 0.2, "peak_bytes": 0, "output": out}


@pytest.fixture
def attempts():
    return Attempts()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "rows.jsonl", recalibration.KEY)


def run(names, store, attempts, *, sets=ONE_SET, seeds=(0,), seconds=5.0, force=False):
    methods = [Method(name, name, "numpy", "main") for name in names]
    recalibration.run(sets, methods, seeds, store, limits=Limits(seconds), force=force, start=attempts)


def test_rows_hold_all_columns(store, attempts):
    run(["good"], store, attempts)
    (row,) = store.rows
    assert (row["set"], row["seed"], row["method"], row["k"], row["status"]) == ("fake", 0, "good", 3, "ok")
    assert {"brier", "log_loss", "canonical", "worst_subset", "fit_seconds", "peak_bytes"} <= set(row)
    assert "output" not in row


def test_what_is_there_is_not_made_again_unless_forced(store, attempts, tmp_path):
    run(["good", "broken"], store, attempts)
    run(["good", "broken", "new"], Store(tmp_path / "rows.jsonl", recalibration.KEY), attempts)
    assert attempts.made == ["good", "broken", "new"]
    run(["good"], store, attempts, force=True)
    assert attempts.made[-1] == "good"
    assert len(attempts.made) == 4


def test_failures_are_rows(store, attempts):
    run(["broken", "wrong"], store, attempts)
    broken, wrong = store.rows
    assert (broken["status"], broken["error"]) == ("failed", "RuntimeError: no")
    assert wrong["status"] == "failed"
    assert "shape (60, 2)" in wrong["error"]


def test_answers_that_were_mended_are_noted(store, attempts):
    run(["unnormalised"], store, attempts)
    assert "summed to 1 only within 1" in store.rows[0]["note"]


def test_a_method_that_was_too_slow_is_not_tried_on_other_splits(store, attempts):
    run(["slow"], store, attempts, seeds=(0, 1))
    assert attempts.made == ["slow"]
    first, second = store.rows
    assert first["error"] == "not finished after 5 s"
    assert (second["status"], second["error"]) == ("skipped", "not finished after 5 s on another split")


def test_a_method_that_was_too_slow_is_not_tried_on_larger_sets(store, attempts):
    run(["slow"], store, attempts, sets=[FakeSet("large", 90), FakeSet("small", 50)])
    assert attempts.made == ["slow"]
    large, small = store.rows
    assert small["error"] == "not finished after 5 s"
    assert large["error"] == "not finished after 5 s on small, which is not larger"
    run(["slow"], store, attempts, sets=[FakeSet("tiny", 40)])
    assert attempts.made == ["slow", "slow"]


def test_more_time_is_a_reason_to_try_again(store, attempts):
    run(["slow"], store, attempts)
    run(["slow"], store, attempts)
    assert len(attempts.made) == 1
    run(["slow"], store, attempts, seconds=10.0)
    assert len(attempts.made) == 2


def test_what_was_skipped_is_no_evidence_and_what_is_forced_is_tried(store, attempts):
    sets = [FakeSet("small", 50), FakeSet("large", 90), FakeSet("huge", 120)]
    run(["slow"], store, attempts, sets=sets)
    assert [row["error"] for row in store.rows if row["status"] == "skipped"] == [
        "not finished after 5 s on small, which is not larger"
    ] * 2
    run(["slow"], store, attempts, sets=sets[1:2], force=True)
    assert attempts.made == ["slow"] * 2
    assert store.find(set="large", seed=0, method="slow")["status"] == "time limit"


def test_rows_of_other_predictions_of_the_same_name_are_made_again(store, attempts, capsys):
    run(["good", "new"], store, attempts)
    changed = FakeSet()
    changed.fingerprint = "other"
    run(["good"], store, attempts, sets=[changed])
    assert attempts.made == ["good", "new", "good"]
    assert [(row["method"], row["data"]) for row in store.rows] == [("good", "other")]
    assert "fake has changed since 2 rows were made of it" in capsys.readouterr().out


def test_sets_that_cannot_be_read_are_named_and_left_out(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    proba = np.full((4, 2), 0.5)
    np.savez(tmp_path / "good.npz", proba=proba, labels=[0, 1, 0, 1], evaluation=np.arange(4) > 1)
    good, bad = recalibration.readable(prediction_sets(folder=tmp_path))
    assert [s.name for s in good] == ["good"]
    assert "bad.npz" in bad["the predictions bad"]


def test_too_few_rows_to_judge_are_a_failure(store, attempts, monkeypatch):
    def judge(*_):
        raise ValueError("one row is too few")

    monkeypatch.setattr(recalibration.judging, "judge", judge)
    run(["good"], store, attempts)
    assert (store.rows[0]["status"], store.rows[0]["error"]) == ("failed", "one row is too few")


def test_rows_of_other_sources_are_pointed_out(capsys):
    ours = [Method("polycal X", "x:X", "polycal", "polycal")]
    recalibration.warn_of_stale([{"method": "polycal X", "version": "0.1+abc"}], ours)
    assert "1 rows" in capsys.readouterr().out
    recalibration.warn_of_stale([{"method": "other", "version": "0.1+abc"}], ours)
    assert capsys.readouterr().out == ""
