"""The audit in chunks: the same object, the same numbers, bounded memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polycal as pc
from polycal._audit.bundle import Bundle, feed, in_fit_half
from polycal._audit.plan import make_plan, pass_threads
from polycal._audit.streamed import KERNEL, _judging, audit_stream
from polycal.io.chunks import PredictionFiles, open_predictions
from polycal.states.certificate import CertificateState
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import ScoreState

GROUPS = {
    "footwear": ["Sandal", "Sneaker", "Ankle_boot"],
    "tops": ["T-shirt/top", "Pullover", "Shirt", "Coat"],
}


@pytest.fixture(scope="module")
def example():
    return pc.datasets.load_fashion("evaluation")


@pytest.fixture(scope="module")
def folder(example, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    for i, (start, stop) in enumerate([(0, 4000), (4000, 4001), (4001, 10_000)]):
        part = example.take(slice(start, stop))
        pc.write_predictions(
            folder / f"{i}.parquet", part.labels, part.proba, class_names=example.class_names
        )
    return folder


@pytest.fixture(scope="module")
def streamed(folder):
    return audit_stream(folder, groups=GROUPS)


@pytest.fixture(scope="module")
def in_memory(example):
    return pc.audit(example.labels, example.proba, class_names=example.class_names, groups=GROUPS)


def test_everything_measured_is_that_of_the_audit_in_memory(streamed, in_memory):
    assert (streamed.n_samples, streamed.n_classes) == (in_memory.n_samples, in_memory.n_classes)
    assert streamed.n_fit + streamed.n_judge == 10_000
    assert streamed.scores == pytest.approx(in_memory.scores)
    ours = {q.name: q for q in streamed.classes}
    for theirs in in_memory.classes:
        found = ours[theirs.name]
        assert found.smooth_error == pytest.approx(theirs.smooth_error, abs=2.0**-11)
        assert (found.predicted, found.frequency) == pytest.approx((theirs.predicted, theirs.frequency))
        assert found.chance == pytest.approx(theirs.chance)
        assert found.classes == theirs.classes
    for found, theirs in zip(streamed.groups, in_memory.groups, strict=True):
        assert found.smooth_error == pytest.approx(theirs.smooth_error, abs=2.0**-17)
        assert found.noise_floor == pytest.approx(theirs.noise_floor, rel=0.3)
        assert found.name == theirs.name
    errors = {e.estimate.notion.name: e for e in in_memory.errors}
    for found in streamed.errors:
        theirs = errors[found.estimate.notion.name]
        assert found.estimate.value <= theirs.estimate.value + 1e-12
        assert found.estimate.kind == "lower bound"
        if theirs.estimate.notion.name == "confidence":
            assert found.estimate.value == pytest.approx(theirs.estimate.value, abs=2e-5)
            assert found.noise_floor == pytest.approx(theirs.noise_floor, rel=0.4)


def test_what_is_found_is_proven_on_all_judging_rows(streamed, example):
    assert {f.source for f in streamed.findings} == {"confidence", "classwise", "subset-smooth", "kernel"}
    judging = example.take(~in_fit_half(_places(), 0))
    assert judging.n_samples == streamed.n_judge
    for finding in streamed.findings:
        expected = pc.certify(finding.witness, judging.labels, judging.proba)
        assert finding.certificate.estimate == pytest.approx(expected.estimate, abs=1e-6)
        assert finding.certificate.lower_bound == pytest.approx(expected.lower_bound, abs=1e-4)
        assert finding.certificate.n_samples == judging.n_samples
        assert 0 < finding.reading.share <= 1
    assert streamed.worst.significant


def _places():
    """The places of the rows of the three files."""
    return np.concatenate([number * 2**40 + np.arange(n) for number, n in enumerate((4000, 1, 5999))])


def test_chunks_and_threads_do_not_matter(streamed, folder, monkeypatch):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 977)
    again = audit_stream(folder, groups=GROUPS, n_jobs=1)
    assert [f.source for f in again.findings] == [f.source for f in streamed.findings]
    for ours, theirs in zip(again.findings, streamed.findings, strict=True):
        assert ours.certificate.lower_bound == pytest.approx(theirs.certificate.lower_bound, abs=1e-4)
    assert [q.name for q in again.classes] == [q.name for q in streamed.classes]


def _measured(files, n_threads):
    bundle = Bundle(0)
    bundle.add("scores", ScoreState(), "all")
    bundle.add("classes", ClassesState(), "judge")
    bundle.add("sketch", SketchState(300), "fit")
    return feed(bundle, files, n_threads)


def _numbers(bundle):
    sketch = bundle.finish("sketch")
    classes = [q.value for q in bundle.finish("classes")]
    return np.concatenate(
        [list(bundle.finish("scores").values()), classes, sketch.proba.ravel(), sketch.labels]
    )


def test_threads_share_the_chunks(folder, monkeypatch):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 977)
    files = open_predictions(folder)
    alone, together, again = (_measured(files, n_threads) for n_threads in (1, 3, 3))
    assert alone.states["scores"].n_samples == together.states["scores"].n_samples == 10_000
    assert (alone.n_fit, alone.n_judge) == (together.n_fit, together.n_judge)
    np.testing.assert_allclose(_numbers(together), _numbers(alone), rtol=1e-12)
    np.testing.assert_array_equal(_numbers(together), _numbers(again))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_threads_share_one_file_of_any_format(example, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 33)
    part = example.take(slice(0, 1000))
    pc.write_predictions(tmp_path / f"a{suffix}", part.labels, part.proba)
    alone, together = (_measured(open_predictions(tmp_path), n_threads) for n_threads in (1, 2))
    assert together.states["scores"].n_samples == together.n_fit + together.n_judge == 1000
    np.testing.assert_allclose(_numbers(together), _numbers(alone), rtol=1e-12)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".npz"])
def test_the_first_bad_row_is_named_whatever_the_threads(suffix, n_threads, tmp_path, monkeypatch):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 10)
    proba = np.full((200, 3), 1 / 3)
    for name in ("a", "b", "c"):
        pc.write_predictions(tmp_path / f"{name}{suffix}", np.zeros(200, dtype=int), proba)
    proba[[57, 68, 72, 199]] = 0.4
    _overwrite(tmp_path / f"b{suffix}", proba)
    with pytest.raises(ValueError, match=rf"b{suffix}: rows from 50: y_proba\[7\] does not sum to 1"):
        _measured(open_predictions(tmp_path), n_threads)


def _overwrite(path, proba):
    """Write predictions that the writer would refuse."""
    labels = np.zeros(len(proba), dtype=int)
    if path.suffix == ".npy":
        np.save(path, proba)
    elif path.suffix == ".npz":
        np.savez(path, proba=proba, labels=labels)
    else:
        parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(pa.table({"label": labels} | {str(c): proba[:, c] for c in range(3)}), path)


class _Raising(ScoreState):
    """A state that fails on the rows of one chunk."""

    def _add(self, sample, weight, rows):
        if 1000 in rows:
            raise RuntimeError("row 1000")
        super()._add(sample, weight, rows)


def test_a_thread_that_raises_ends_the_others(folder, monkeypatch):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 97)
    bundle = Bundle(0)
    bundle.add("raising", _Raising(), "all")
    bundle.add("sketch", SketchState(300), "fit")
    with pytest.raises(RuntimeError, match="row 1000"):
        feed(bundle, open_predictions(folder), 3)
    # Of 3333.
    assert bundle.states["raising"].n_samples <= 500


def test_chunks_of_many_threads_take_no_more_memory_than_that_of_one(folder):
    files = open_predictions(folder, memory="512MiB")
    wide = PredictionFiles(files.paths, 10_000, None, files.memory)
    assert wide.thread_rows(4) * 4 <= wide.chunk_rows
    assert 1 <= wide.thread_rows(10**6) <= files.thread_rows(2) <= files.chunk_rows


def test_threads_are_as_many_as_the_memory_has_room_for(folder):
    counts = []
    many = {str(i): [0] for i in range(999)}
    for memory, groups in (("512MiB", None), ("1GiB", None), ("32GiB", None), ("1GiB", many)):
        files = open_predictions(folder, memory=memory)
        counts.append(pass_threads(make_plan(files, None, groups, KERNEL, 0.05, 0, 64), files))
    assert counts == [1, counts[1], 64, 1]
    assert 2 <= counts[1] < 8


def test_certificates_are_finished_in_the_memory_that_the_searches_had(folder):
    plan = make_plan(open_predictions(folder, memory="1GiB"), None, None, KERNEL, 0.05, 0, 64)
    assert plan.proof_threads(0) == plan.proof_threads(1_000) == 64
    assert 1 < plan.proof_threads(500_000) < 8
    assert plan.proof_threads(10**9) == 1


def test_rows_that_are_played_fit_into_the_memory(folder, example):
    witness = pc.estimate_error(example.labels, example.proba, pc.Confidence(smooth=True)).witness
    limits = {}
    for memory in ("512MiB", "1GiB", "32GiB"):
        files = open_predictions(folder, memory=memory)
        plan = make_plan(files, None, None, KERNEL, 0.05, 0, 64)
        limits[memory] = _judging(plan, {"a": witness}, example).states["certificate a"].most_played
        # What was measured: 83 bytes a row.
        assert limits[memory] * 83 < files.free_memory // 2
    assert 100_000 < limits["512MiB"] < limits["1GiB"] == limits["32GiB"] == 1 << 21


def test_beyond_them_the_bets_are_fixed(example):
    witness = pc.estimate_error(example.labels, example.proba, pc.Confidence(smooth=True)).witness
    states = [CertificateState(witness, most_played=most) for most in (None, 10_000, 9_999, 10**9)]
    bounds = [s.update(example.labels, example.proba).finish().lower_bound for s in states]
    assert 0 < bounds[2] < bounds[0] == bounds[1] == bounds[3]
    assert states[2].copy().merge(states[0]).most_played == 9_999
    with pytest.raises(ValueError, match="most_played must be"):
        CertificateState(witness, most_played=0)


def test_what_a_thread_raises_is_raised(folder):
    bundle = Bundle(0)
    bundle.add("question", QuestionState(["no such class"]), "all")
    with pytest.raises(ValueError, match="not one of the class names"):
        feed(bundle, open_predictions(folder), 2)


def test_one_wrong_group_among_fifty_is_significant(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(51), 4000)
    labels = (rng.random((4000, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(0, 50)
    # Class 0 takes half of what belongs to class 50, which is in no group.
    labels[(labels == 50) & (rng.random(4000) < 0.5)] = 0
    pc.write_predictions(tmp_path / "a.parquet", labels, proba)
    found = audit_stream(tmp_path, groups={f"g{c}": [c] for c in range(50)}).groups
    assert found[0].p_value < 0.05
    assert sum(g.p_value < 0.05 for g in found) == 1
    assert found[0].smallest_p_value < 0.05


def test_it_reports_like_any_audit(streamed):
    assert "10,000" in str(streamed) or "10000" in str(streamed)
    assert streamed.to_dict()["findings"][0]["source"] == streamed.findings[0].source
    assert "<html" in streamed.to_html()


def test_calibrated_predictions_are_left_alone(tmp_path):
    rng = np.random.default_rng(0)
    false_alarms = 0
    for seed in range(20):
        proba = rng.dirichlet(np.ones(4), 400)
        labels = (rng.random((400, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(0, 3)
        pc.write_predictions(tmp_path / "a.parquet", labels, proba)
        false_alarms += any(
            f.significant for f in audit_stream(tmp_path, random_state=seed, alpha=0.1).findings
        )
    assert false_alarms <= 5


def test_halves_do_not_look_at_the_rows():
    # All rows alike: a coin that looked at them would put all that happened into one half.
    fit = in_fit_half(np.arange(10_000), 0)
    assert 4800 < fit.sum() < 5200
    assert not np.array_equal(fit, in_fit_half(np.arange(10_000), 1))


def test_own_auditors_search_the_sketch(folder):
    found = audit_stream(folder, auditors={"mine": pc.SubsetAuditor(max_size=2)})
    assert [f.source for f in found.findings] == ["mine"]
    assert found.findings[0].witness.members.size <= 2


def test_few_rows_are_measured_but_not_searched(tmp_path):
    pc.write_predictions(tmp_path / "a.parquet", [0, 1], [[0.5, 0.5], [0.2, 0.8]])
    few = audit_stream(tmp_path)
    assert (few.n_samples, few.n_fit, few.findings) == (2, 0, ())
    assert few.worst is None


def test_weights_count(tmp_path, example):
    weight = np.random.default_rng(0).integers(0, 3, 2000).astype(float)
    part = example.take(slice(0, 2000))
    pc.write_predictions(tmp_path / "a.parquet", part.labels, part.proba, sample_weight=weight)
    found = audit_stream(tmp_path)
    assert found.weighted
    assert found.scores["brier_score"] == pytest.approx(
        pc.brier_score(part.labels, part.proba, sample_weight=weight)
    )
    assert found.n_fit + found.n_judge == np.count_nonzero(weight)


def test_files_that_were_opened_keep_what_was_chosen(folder):
    files = open_predictions(folder, memory="600MiB")
    for options in ({"part": "evaluation"}, {"memory": "512MiB"}):
        with pytest.raises(ValueError, match="the files were opened with"):
            audit_stream(files, **options)


def test_rows_must_count(tmp_path):
    np.savez(tmp_path / "a.npz", proba=[[0.5, 0.5]] * 3, labels=[0, 1, 0], weight=np.zeros(3))
    with pytest.raises(ValueError, match="the weights of all rows are 0"):
        audit_stream(tmp_path)


def test_options_are_checked(folder):
    with pytest.raises(ValueError, match="alpha"):
        audit_stream(folder, alpha=2)
    with pytest.raises(TypeError, match="kernel must be"):
        audit_stream(folder, kernel="gaussian")
    with pytest.raises(ValueError, match="not one of the class names"):
        audit_stream(folder, groups={"a": ["no such class"]})


def test_a_bundle_that_saw_no_row_has_no_result():
    bundle = Bundle(0)
    bundle.add("scores", ScoreState(), "all")
    with pytest.raises(ValueError, match="no row"):
        bundle.finish("scores")


def _write_large(path, n_rows, n_classes):
    rng = np.random.default_rng(0)
    proba = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_classes))
    labels = np.empty(n_rows, dtype=np.int64)
    for start in range(0, n_rows, 20_000):
        block = np.exp(3 * rng.standard_normal((min(20_000, n_rows - start), n_classes), dtype=np.float32))
        block /= block.sum(axis=1, keepdims=True)
        proba[start : start + len(block)] = block
        # Sharper than is right: the label is drawn from the square root of the probabilities, now and then.
        labels[start : start + len(block)] = np.where(
            rng.random(len(block)) < 0.7, block.argmax(axis=1), rng.integers(0, n_classes, len(block))
        )
    proba.flush()
    np.save(path.with_name(f"{path.stem}.labels.npy"), labels)


# Not getrusage: what it says of a new process includes the process that started it.
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
@pytest.mark.slow
def test_the_memory_bound_is_kept(tmp_path):
    _write_large(tmp_path / "large.npy", 1_500_000, 100)
    assert (tmp_path / "large.npy").stat().st_size > 512 << 20
    program = (
        "import sys; from pathlib import Path; from polycal._audit.streamed import audit_stream; "
        "audit = audit_stream(sys.argv[1], memory='512MiB', n_jobs=8); "
        "status = Path('/proc/self/status').read_text(); "
        "print(audit.n_samples, status.split('VmHWM:')[1].split()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "large.npy")],
        check=True,
        capture_output=True,
        text=True,
    )
    n_samples, peak = map(int, done.stdout.split())
    assert n_samples == 1_500_000
    assert peak * 1024 < 512 << 20
