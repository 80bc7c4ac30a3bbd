"""The background search: found on one half, judged on the other, and ended at once."""

import multiprocessing
import time

import numpy as np
import pytest

import polycal as pc
from polycal.explorer.search import Search, worst_found
from polycal.explorer.state import make_explorer
from polycal.families.subset import SubsetAuditor


@pytest.fixture(scope="module")
def shifted():
    made = pc.datasets.make_shifted_subset(4000, 10, error=0.2, random_state=0)
    return made, pc.Sample(made.proba, made.labels)


def test_what_is_found_is_judged_on_other_rows(shifted):
    made, sample = shifted
    halves = np.arange(0, 4000, 2), np.arange(1, 4000, 2)
    found = worst_found("as given", sample, halves, seed=0)
    witness = SubsetAuditor().find(sample.take(halves[0]))
    largest = next(one for one in found if one["source"] == "any number of classes")
    assert largest["classes"] == witness.members.tolist()
    assert largest["estimate"] == pytest.approx(witness.correlations(sample.take(halves[1])).mean())
    assert largest["significant"]
    assert set(largest["classes"]) in ({*made.subset}, set(range(10)) - {*made.subset})
    assert all(len(one["classes"]) <= 3 for one in found if one["source"] == "at most 3 classes")


def test_it_runs_in_the_background(client_of, shifted, wait):
    explorer = make_explorer(shifted[1], title="")
    client = client_of(explorer)
    assert client.get("/api/worst").json()["state"] == "waiting"
    explorer.search.start()
    wait(lambda: client.get("/api/worst").json()["state"] == "done")
    explorer.search.stop()
    found = client.get("/api/worst").json()["found"]
    assert [one["series"] for one in found] == ["as given"] * len(found)
    assert found[0]["lower_bound"] > 0.05
    halves = np.setdiff1d(np.arange(4000), explorer.unseen), explorer.unseen
    assert found == worst_found("as given", shifted[1], halves, seed=0)


@pytest.mark.parametrize("after", [0.0, 1.0])
def test_it_can_be_stopped(after):
    made = pc.datasets.make_calibrated(4000, 300, random_state=0)
    halves = np.arange(0, 4000, 2), np.arange(1, 4000, 2)
    search = Search({"as given": pc.Sample(made.proba, made.labels)}, halves, seed=0)
    search.start()
    time.sleep(after)
    search.stop()
    assert search.state != "done"
    assert search.found == []
    assert multiprocessing.active_children() == []
