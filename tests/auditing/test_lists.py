"""Audits of lists of classes: intervals hold for every completion, and all sources agree."""

import json
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner

import polycal as pc
from polycal._validation import check_sample
from polycal.auditing import source
from polycal.cli.app import app
from polycal.io.lists import write_lists
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset, ask_top_set

pytest.importorskip("pyarrow")

GROUPS = {"first": [0, 1, 2], "odd": [1, 3, 5, 7]}


def made(n=1500, k=9, listed=3, seed=0):
    """Full predictions that are too sure of themselves, their labels, and lists of the most likely classes."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, 0.4), n)
    labels = np.array([rng.choice(k, p=row) for row in truth])
    proba = truth**1.6 + 1e-6
    proba /= proba.sum(axis=1, keepdims=True)
    smallest = np.argsort(proba, axis=1)[:, : k - listed]
    top = proba.copy()
    np.put_along_axis(top, smallest, 0.0, axis=1)
    return labels, proba, csr_array(top)


def completion(lists, rng):
    """Full predictions that have these lists of most likely classes."""
    sample = check_sample(np.zeros(lists.shape[0], dtype=int), lists, remainder="unknown")
    full, most = lists.toarray(), sample.most
    for i in range(lists.shape[0]):
        free = np.flatnonzero(full[i] == 0)
        share = rng.dirichlet(np.full(free.size, rng.choice([0.2, 1.0, 20.0]))) * sample.rest[i]
        # What is above the most moves to the mean, which is below; of equals those that are listed come first.
        mean = sample.rest[i] / free.size
        over = max(1.0, ((share - mean) / max(most[i] - mean, 1e-300)).max(initial=0.0)) * (1 + 1e-9)
        full[i, free] = mean + (share - mean) / over
    return full


def numbers(audit):
    """What an audit says, without what lists have not: noise floors, pictures, and how things were computed."""
    told = audit.to_dict()
    errors = [(e["notion"], e["value"]) for e in told["errors"]]
    findings = [(f["source"], f["estimate"], f["lower_bound"], f["p_value"]) for f in told["findings"]]
    return told["scores"], errors, findings, told["classes"], told["ranks"], told["groups"]


def flat(value):
    """All numbers in a structure, in order."""
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in flat(value[key])]
    if isinstance(value, list | tuple):
        return [x for item in value for x in flat(item)]
    return [float(value)] if isinstance(value, int | float) else []


@pytest.mark.parametrize("seed", range(3))
def test_intervals_and_certificates_hold_for_every_completion(seed):
    labels, proba, lists = made(n=400, seed=seed)
    audit = pc.audit(labels, lists, groups=GROUPS)
    rng = np.random.default_rng(seed)
    for full in [proba, *(completion(lists, rng) for _ in range(5))]:
        sample = check_sample(labels, full)
        for question in (*audit.classes, *audit.groups):
            error = smooth_error(ask_subset(sample, np.array([int(c) for c in question.classes])))
            high = question.smooth_error if question.smooth_error_high is None else question.smooth_error_high
            assert question.smooth_error - 1e-9 <= error <= high + 1e-9
        for question in audit.ranks:
            error = smooth_error(ask_top_set(sample, int(question.name.removeprefix("top "))))
            high = question.smooth_error if question.smooth_error_high is None else question.smooth_error_high
            assert question.smooth_error - 1e-9 <= error <= high + 1e-9
        scores = pc.brier_score(labels, full)
        assert audit.scores["brier_score"] - 1e-9 <= scores <= audit.scores["brier_score_high"] + 1e-9
        for finding in audit.findings:
            if finding.is_question:
                whole = finding.witness.correlations(sample)
                least = finding.witness.correlations(check_sample(labels, lists, remainder="unknown"))
                assert (least <= whole + 1e-9).all()


def test_groups_that_lists_hide_have_no_test():
    labels, _, lists = made()
    hidden = pc.audit(labels, lists, groups=GROUPS)
    assert all(g.p_value is None and g.smooth_error < g.smooth_error_high for g in hidden.groups)
    assert [picture.name for picture in hidden.pictures] == ["confidence", "top 2", "top 3"]
    assert any("leave out" in sentence for sentence in hidden.approximations)
    for text in (str(hidden), hidden.to_markdown(), hidden.to_html()):
        assert f"{hidden.groups[0].smooth_error:.4f} to {hidden.groups[0].smooth_error_high:.4f}" in text


def test_ranks_are_exact_as_far_as_lists_go():
    labels, proba, lists = made()
    full, listed = (pc.audit(labels, p, notions=[], auditors={}) for p in (proba, lists))
    known, other = listed.ranks[:2], listed.ranks[2]
    assert [q.name for q in listed.ranks] == ["top 2", "top 3", "top 5"]
    for one, same in zip(known, full.ranks, strict=False):
        assert one.smooth_error_high is None
        assert one.smooth_error == pytest.approx(same.smooth_error, abs=1e-9)
    assert known[0].at_least > 0
    assert other.smooth_error <= full.ranks[2].smooth_error <= other.smooth_error_high < 0.3
    assert abs(other.frequency - full.ranks[2].frequency) < 0.1
    assert other.at_least is None


def test_complete_lists_give_the_audit_of_full_predictions():
    labels, proba, _ = made()
    full = pc.audit(labels, proba, groups=GROUPS, auditors={"subset": pc.SubsetAuditor()})
    lists = pc.audit(labels, csr_array(proba), groups=GROUPS, auditors={"subset": pc.SubsetAuditor()})
    plain = [numbers(lists), numbers(full)]
    # Of lists, sets of classes are not tested by all rows, and groups are not corrected for that.
    tested = [[(g.pop("p_value"), g.pop("smallest_p_value")) for g in one[-1]] for one in plain]
    assert (np.array(tested[0]) <= np.array(tested[1])).all()
    np.testing.assert_allclose(flat(plain[0]), flat(plain[1]), atol=1e-9)


@pytest.mark.parametrize("held", [1 << 22, 12_000])
def test_memory_and_files_and_dask_agree(held, tmp_path, monkeypatch):
    pytest.importorskip("dask")
    monkeypatch.setattr(source, "HELD_CELLS", held)
    labels, _, lists = made()
    sample = check_sample(labels, lists, remainder="unknown")
    write_lists(tmp_path / "a.parquet", sample.take(slice(0, 700)))
    write_lists(tmp_path / "b.parquet", sample.take(slice(700, None)))
    here = pc.audit(labels, lists, groups=GROUPS)
    files = pc.audit_stream(tmp_path, groups=GROUPS)
    dask = pc.distributed.audit(str(tmp_path), groups=GROUPS)
    for other in (files, dask):
        np.testing.assert_allclose(flat(numbers(other)), flat(numbers(here)), atol=1e-9)
    exact = held > 12_000
    assert exact == (len(here.approximations) == 1)


def test_calibrators_are_refused_in_one_line():
    labels, proba, lists = made(n=100)
    calibrator = pc.TemperatureScaling().fit(proba, labels)
    with pytest.raises(ValueError, match="full predictions"):
        pc.audit(labels, lists, calibrator=calibrator)


@pytest.mark.parametrize("remainder", ["unknown", "spread", "class"])
def test_the_command_reads_lists(remainder, tmp_path):
    labels, _, lists = made(n=300)
    write_lists(tmp_path / "top.parquet", check_sample(labels, lists, remainder="unknown"))
    told = CliRunner().invoke(
        app, ["audit", str(tmp_path / "top.parquet"), "--remainder", remainder, "--json"]
    )
    assert told.exit_code == 0, told.output
    audit = json.loads(told.stdout)
    assert audit["n_classes"] == 9 + (remainder == "class")
    assert ("brier_score_high" in audit["scores"]) == (remainder == "unknown")


def test_many_classes_take_memory_of_the_entries():
    rng = np.random.default_rng(0)
    n, k, m = 2_000, 100_000, 20
    ids = np.sort(rng.integers(0, k // m, (n, m)) * m + np.arange(m), axis=1)
    values = rng.dirichlet(np.full(m, 5.0), n) * 0.9
    lists = csr_array((values.ravel(), ids.ravel(), np.arange(0, n * m + 1, m)), shape=(n, k))
    tracemalloc.start()
    labels = ids[np.arange(n), rng.integers(0, m, n)]
    audit = pc.audit(
        labels, lists, notions=[pc.Confidence(smooth=True)], auditors={"kernel": pc.KernelAuditor()}
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(audit.classes) == 1000
    assert peak < n * k
