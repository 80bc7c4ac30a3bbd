"""Short questions: the path of an audit, the one that is shown first, and sets in words."""

import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.auditing.findings import corrected, find_all, half_rows, shortened
from polycal.auditing.naming import Part, describe_set, set_words
from polycal.auditing.nodes import asked_nodes
from polycal.report.words import shown_of

NAMES = tuple("abcdefghijklmnopqrstuvwxyz")
QUICK = (pc.Confidence(smooth=True),)


@pytest.fixture(scope="module")
def audit():
    """Of 20 classes, the first two are confused with each other's company, and all are over-confident."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(20, 0.3), 4000)
    labels = (truth.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    proba = truth.copy()
    proba[:, :2] *= 0.4
    proba /= proba.sum(axis=1, keepdims=True)
    auditors = {"subset-smooth": pc.SubsetAuditor(), "top": pc.NotionAuditor(pc.Confidence(smooth=True))}
    return pc.audit(labels, proba, class_names=NAMES[:20], auditors=auditors, notions=QUICK)


def test_the_worst_is_the_shortest_that_shows_most_of_the_error(audit):
    sizes = [len(finding.witness.subset) for finding in audit.path]
    bounds = [finding.certificate.lower_bound for finding in audit.path]
    assert sizes == sorted(set(sizes))
    shortest = next(f for f, bound in zip(audit.path, bounds, strict=True) if bound >= 0.8 * max(bounds))
    assert audit.worst is shortest
    assert audit.worst.witness.subset == ["a", "b"]
    assert audit.worst.question == "is it a or b?"
    assert sum(f.source == "subset-smooth" for f in audit.findings) == 1
    assert audit.worst.significant


def test_plain_data_and_reports_tell_the_path(audit):
    plain = audit.to_dict()
    assert [len(one["subset"]) for one in plain["path"]] == [len(f.witness.subset) for f in audit.path]
    assert "2 classes show" in " ".join(str(audit).split())
    assert "Fewer or more classes" in audit.to_markdown()
    shown = plain["path"][1]
    assert shown_of(plain) == shown
    assert shown_of(plain | {"findings": [shown | {"source": "classwise"}]}) is None
    page = audit.to_html()
    assert "The few classes that are the trouble" in page
    assert " more?" not in page


def test_the_path_is_told_of_one_search_only():
    made = pc.datasets.make_calibrated(600, 8, random_state=0)
    auditors = {"few": pc.SubsetAuditor(2), "any": pc.SubsetAuditor(), "all": pc.KernelAuditor()}
    audit = pc.audit(made.labels, made.proba, auditors=auditors, notions=QUICK)
    assert {finding.source for finding in audit.path} == {"few"}
    assert max(len(finding.witness.subset) for finding in audit.path) <= 2
    assert sorted(finding.source for finding in audit.findings) == ["all", "any", "few"]
    none = pc.audit(made.labels, made.proba, auditors={"all": pc.KernelAuditor()}, notions=QUICK)
    assert none.path == ()


def test_calibrated_predictions_are_not_called_wrong_for_the_length_of_the_path():
    found = 0
    for seed in range(30):
        made = pc.datasets.make_calibrated(300, 20, random_state=seed)
        sample = check_sample(made.labels, made.proba)
        findings = find_all({"sets": pc.SubsetAuditor()}, sample, half_rows(sample, 0), 0.2, 0, 1)
        found += any(finding.significant for finding in corrected(findings, (), 0.2)[0])
    assert found <= 11


def test_where_nothing_is_proven_the_largest_is_shown():
    made = pc.datasets.make_calibrated(400, 20, random_state=1)
    audit = pc.audit(made.labels, made.proba, auditors={"sets": pc.SubsetAuditor()}, notions=QUICK)
    assert not any(finding.significant for finding in audit.path)
    findings, path = shortened(audit.path[::-1], "sets")
    assert findings == (audit.path[-1],)
    assert path == audit.path


@pytest.mark.parametrize(
    ("members", "parts"),
    [
        ("abc", [Part("first three")]),
        ("abcde", [Part("first three"), Part("d"), Part("e")]),
        ("abd", [Part("a"), Part("b"), Part("d")]),
        ("klmnopqr", [Part("k to t", ("s and t",))]),
        ("klmnopqrt", [Part("k to t", ("s",))]),
        ("abcklmnopqrst", [Part("k to t"), Part("first three")]),
        ("bcdefghijklmnopqrstuvwxyz", [Part("anything", ("a",))]),
        ("defghijklmnopqrstuvwxyz", [Part("anything", ("first three",))]),
        ("xyz", [Part("x"), Part("y"), Part("z")]),
    ],
)
def test_sets_by_named_sets(members, parts):
    named = {
        "first three": np.arange(3),
        "k to t": np.arange(10, 20),
        "s and t": np.array([18, 19]),
        "a and z": np.array([0, 25]),
    }
    chosen = np.array([NAMES.index(c) for c in members])
    assert describe_set(chosen, NAMES, named) == parts


def test_descriptions_mean_the_set():
    rng = np.random.default_rng(0)
    for _ in range(60):
        named = {f"set {i}": np.flatnonzero(rng.random(26) < rng.random()) for i in range(6)}
        named = {name: some for name, some in named.items() if some.size}
        members = np.flatnonzero(rng.random(26) < 0.6)
        sets = {"anything": np.arange(26)} | named | {name: np.array([c]) for c, name in enumerate(NAMES)}
        meant = set()
        for part in describe_set(members, NAMES, named):
            left_out = set().union(*(sets[name].tolist() for name in part.exceptions))
            meant |= set(sets[part.name].tolist()) - left_out
        assert meant == set(members.tolist())


def test_words_say_how_many():
    named = {"k to t": np.arange(10, 20), "a to f": np.arange(6)}
    members = np.array([*range(6), *range(10, 19)])
    assert set_words(members, NAMES, named) == "is it k to t (but not t) or a to f (15 classes in all)?"
    assert set_words(np.arange(0, 26, 2), NAMES, {}) is not None
    many = tuple(str(c) for c in range(100))
    assert set_words(np.arange(0, 100, 2), many, named) is None


def test_long_sets_are_told_by_groups():
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.full(60, 0.2), 3000)
    labels = (truth.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    proba = truth.copy()
    proba[:, :20] *= 0.25
    groups = {"low": list(range(20)), "rest": list(range(20, 60))}
    proba /= proba.sum(axis=1, keepdims=True)
    audit = pc.audit(labels, proba, groups=groups, auditors={"sets": pc.SubsetAuditor()}, notions=QUICK)
    last = audit.path[-1]
    assert len(last.witness.subset) > 13
    assert last.question.startswith("is it low")
    assert last.reading.question == last.question
    assert last.to_dict()["question"] == last.question


def test_long_sets_are_told_by_nodes_of_large_trees():
    names = [f"c{c}" for c in range(600)]
    tree = {
        f"kind {a}": {f"part {a}": {f"twin {c}": [c] for c in names[a * 60 : a * 60 + 60]}} for a in range(10)
    }
    nodes = asked_nodes(pc.make_taxonomy(tree), 600, tuple(names))
    said = set_words(np.array([*range(179), 300]), tuple(names), nodes.named)
    assert said == "is it kind 0, kind 1, kind 2 (but not c179) or c300 (180 classes in all)?"
    same = asked_nodes(pc.make_taxonomy({"a": {"x": ["0"], "y": ["1"]}, "b": {"x": ["2"]}}), 3, None)
    assert sorted(same.named) == ["0", "1", "2", "a", "a/x", "b", "b/x", "y"]


def test_streams_tell_the_same_path(tmp_path):
    made = pc.datasets.make_shifted_subset(3000, 8, error=0.2, random_state=0)
    pc.write_predictions(tmp_path / "rows.npz", made.labels, made.proba)
    held, streamed = pc.audit(made.labels, made.proba), pc.audit_stream(tmp_path / "rows.npz")
    assert [f.to_dict() for f in streamed.path] == [f.to_dict() for f in held.path]
