"""The background search: found on one half, judged on the other, and ended at once."""

import multiprocessing
import time

import numpy as np
import pytest

import polycal as pc
from polycal.auditing.nodes import asked_nodes, node_errors
from polycal.explorer.search import Search, node_marks, worst_found
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
    path = SubsetAuditor().find_path(sample.take(halves[0])).witnesses
    first, *others = found
    by_size = sorted(found, key=lambda one: len(one["classes"]))
    assert [one["classes"] for one in by_size] == [witness.members.tolist() for witness in path]
    assert others == [one for one in by_size if one is not first]
    for one, witness in zip(by_size, path, strict=True):
        assert one["estimate"] == pytest.approx(witness.correlations(sample.take(halves[1])).mean())
    assert first["significant"]
    assert first["lower_bound"] >= 0.8 * max(one["lower_bound"] for one in found)
    assert set(by_size[-1]["classes"]) in ({*made.subset}, set(range(10)) - {*made.subset})


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


def test_nodes_of_a_tree_are_judged_in_the_background(client_of, shifted, wait):
    names = [str(c) for c in range(10)]
    tree = pc.make_taxonomy({"low": names[:5], "high": {"even": names[6::2], "odd": names[5::2]}})
    explorer = make_explorer(shifted[1], title="", taxonomy=tree)
    client = client_of(explorer)
    nodes = client.get("/api/sample").json()["nodes"]
    assert [(node["name"], node["parent"]) for node in nodes if len(node["classes"]) > 1] == [
        ("low", -1), ("high", -1), ("even", 6), ("odd", 6),
    ]  # fmt: skip
    assert nodes[7]["classes"] == [6, 8]
    assert client.get("/api/nodes").json() == {"nodes": []}
    explorer.search.start()
    wait(lambda: client.get("/api/worst").json()["state"] == "done")
    explorer.search.stop()
    marks = client.get("/api/nodes").json()["nodes"]
    assert marks == node_marks(explorer.nodes, shifted[1])
    errors = node_errors(asked_nodes(tree, 10, None), shifted[1], 0.05, 1)
    assert [one["mark"] == "worse" for one in marks] == [error.discovered for error in errors]
    assert any(one["mark"] == "worse" for one in marks)


def test_without_a_tree_there_are_no_nodes(client_of, shifted):
    assert client_of(make_explorer(shifted[1], title="")).get("/api/sample").json()["nodes"] == []
