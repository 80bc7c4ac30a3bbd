"""Passes over chunks: threads share them, the first bad row is named, memory stays bounded."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import polycal as pc
from polycal.auditing.passes import ALL, JUDGING, SEARCHED, Pass, is_searched, show
from polycal.auditing.source import FileSource
from polycal.io.chunks import PredictionFiles, open_predictions
from polycal.states.base import State
from polycal.states.certificate import CertificateState
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import ScoreState


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


@dataclass(eq=False, kw_only=True)
class Three(Pass):
    """A state of each half."""

    scores: ScoreState = field(metadata=ALL)
    classes: ClassesState = field(metadata=JUDGING)
    sketch: SketchState = field(metadata=SEARCHED)


@dataclass(eq=False, kw_only=True)
class One(Pass):
    """Any state."""

    state: State = field(metadata=ALL)
    bytes_each: int = 0


def _measured(files, n_threads):
    task = Three(seed=0, scores=ScoreState(), classes=ClassesState(), sketch=SketchState(300))
    return show(task, files.unread_chunks(n_threads), n_threads)


def _numbers(task):
    sketch = task.sketch.finish()
    classes = [q.value for q in task.classes.finish()]
    return np.concatenate([list(task.scores.finish().values()), classes, sketch.proba.ravel(), sketch.labels])


def test_threads_share_the_chunks(folder, monkeypatch):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 977)
    files = open_predictions(folder)
    alone, together, again = (_measured(files, n_threads) for n_threads in (1, 3, 3))
    assert alone.scores.n_samples == together.scores.n_samples == 10_000
    assert (alone.n_searched, alone.n_judging) == (together.n_searched, together.n_judging)
    np.testing.assert_allclose(_numbers(together), _numbers(alone), rtol=1e-12)
    np.testing.assert_array_equal(_numbers(together), _numbers(again))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_threads_share_one_file_of_any_format(example, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 33)
    part = example.take(slice(0, 1000))
    pc.write_predictions(tmp_path / f"a{suffix}", part.labels, part.proba)
    alone, together = (_measured(open_predictions(tmp_path), n_threads) for n_threads in (1, 2))
    assert together.scores.n_samples == together.n_searched + together.n_judging == 1000
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
    task = One(seed=0, state=_Raising())
    with pytest.raises(RuntimeError, match="row 1000"):
        show(task, open_predictions(folder).unread_chunks(3), 3)
    # Of 3333.
    assert task.state.n_samples <= 500


def test_chunks_of_many_threads_take_no_more_memory_than_that_of_one(folder):
    files = open_predictions(folder, memory="512MiB")
    wide = PredictionFiles(files.paths, 10_000, None, files.memory)
    assert wide.thread_rows(4) * 4 <= wide.chunk_rows
    assert 1 <= wide.thread_rows(10**6) <= files.thread_rows(2) <= files.chunk_rows


def test_threads_are_as_many_as_the_memory_has_room_for(folder, monkeypatch):
    def counted(cores):
        monkeypatch.setattr("polycal.auditing.source.cpu_count", lambda: cores)
        return [
            FileSource(open_predictions(folder, memory=memory)).n_threads(size << 20, 64)
            for memory, size in (("512MiB", 64), ("1GiB", 64), ("32GiB", 64), ("1GiB", 999))
        ]

    counts = counted(cores=64)
    assert counts == [1, counts[1], 64, 1]
    assert 2 <= counts[1] < 8
    assert counted(cores=2) == [1, 2, 2, 1]


def test_beyond_the_rows_that_are_played_the_bets_are_fixed(example):
    witness = pc.estimate_error(example.labels, example.proba, pc.Confidence(smooth=True)).witness
    states = [CertificateState(witness, most_played=most) for most in (None, 10_000, 9_999, 10**9)]
    bounds = [s.update(example.labels, example.proba).finish().lower_bound for s in states]
    assert 0 < bounds[2] < bounds[0] == bounds[1] == bounds[3]
    assert states[2].copy().merge(states[0]).most_played == 9_999
    with pytest.raises(ValueError, match="most_played must be"):
        CertificateState(witness, most_played=0)


def test_what_a_thread_raises_is_raised(folder):
    task = One(seed=0, state=QuestionState(["no such class"]))
    with pytest.raises(ValueError, match="not one of the class names"):
        show(task, open_predictions(folder).unread_chunks(2), 2)


def test_halves_do_not_look_at_the_rows():
    # All rows alike: a coin that looked at them would put all that happened into one half.
    searched = is_searched(np.arange(10_000), 0)
    assert 4800 < searched.sum() < 5200
    assert not np.array_equal(searched, is_searched(np.arange(10_000), 1))


def test_rows_are_numbered_through_all_files(folder):
    rows = np.concatenate([chunk.rows for chunk in open_predictions(folder)])
    np.testing.assert_array_equal(rows, np.arange(10_000))


def _write_large(path, n_rows, n_classes):
    rng = np.random.default_rng(0)
    block = np.exp(3 * rng.standard_normal((20_000, n_classes), dtype=np.float32))
    block /= block.sum(axis=1, keepdims=True)
    proba = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_classes))
    for start in range(0, n_rows, len(block)):
        # The same rows in other classes: drawing millions takes longer than auditing them.
        proba[start : start + len(block)] = np.roll(block, start // len(block), axis=1)
    proba.flush()
    # Sharper than is right.
    likely = np.concatenate([chunk.argmax(axis=1) for chunk in np.array_split(proba, n_rows // len(block))])
    labels = np.where(rng.random(n_rows) < 0.7, likely, rng.integers(0, n_classes, n_rows))
    np.save(path.with_name(f"{path.stem}.labels.npy"), labels)


# What the process has allocated, which is looked at a hundred times a second. Pages of libraries come on top: how many
# of them the system maps differs from machine to machine, and it takes them back when memory is short.
_PEAK = """
import sys
import time
from pathlib import Path
from threading import Thread

from numba.core.event import install_recorder
from polycal import audit_stream

seen = [0]

def watch():
    while True:
        status = Path("/proc/self/status").read_text()
        seen[0] = max(seen[0], int(status.split("RssAnon:")[1].split()[0]))
        time.sleep(0.01)

Thread(target=watch, daemon=True).start()
with install_recorder("numba:compile") as compilations:
    audit = audit_stream(sys.argv[1], memory="512MiB", n_jobs=8)
print(audit.n_samples, seen[0], len(compilations.buffer))
"""


def _peak(path):
    """Rows, and KiB at the peak, of an audit that compiles nothing: that takes memory of its own, once on a machine.

    Tests that compile at the same time may lose what others have kept, so it is looked at, not believed.
    """
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, str(path)], check=True, capture_output=True, text=True
        )
        n_samples, peak, compilations = map(int, done.stdout.split())
        if compilations == 0:
            return n_samples, peak
    pytest.fail("every run compiled something: what is compiled is not kept")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
@pytest.mark.slow
def test_the_memory_bound_is_kept(tmp_path):
    # Also too large to be held, and soon compiled.
    _write_large(tmp_path / "first.npy", 60_000, 100)
    _peak(tmp_path / "first.npy")
    _write_large(tmp_path / "large.npy", 1_500_000, 100)
    assert (tmp_path / "large.npy").stat().st_size > 512 << 20
    n_samples, peak = _peak(tmp_path / "large.npy")
    assert n_samples == 1_500_000
    # With room for 100 MiB of libraries.
    assert peak * 1024 < 412 << 20
