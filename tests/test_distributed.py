"""Audits and recalibration on Dask: local threads, and a real cluster of two processes."""

import os
import signal
from concurrent.futures import CancelledError
from itertools import pairwise
from time import monotonic, sleep
from types import SimpleNamespace

import numpy as np
import pytest

import polycal as pc
from polycal import distributed
from polycal.auditing.audit import audit_stream
from polycal.io.chunks import PredictionFiles, open_predictions

pa = pytest.importorskip("pyarrow")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask_distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

GROUPS = {"footwear": ["Sandal", "Sneaker", "Ankle_boot"]}
SIZES = (1500, 0, 1, 2499)


@pytest.fixture(scope="module")
def example():
    return pc.datasets.load_fashion("evaluation").take(slice(0, sum(SIZES)))


@pytest.fixture(scope="module")
def frame(example):
    frame = pd.DataFrame(example.proba, columns=list(example.class_names))
    return frame.assign(label=np.array(example.class_names)[example.labels])


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """Uneven files, one of them without rows."""
    folder = tmp_path_factory.mktemp("files")
    for number, (start, size) in enumerate(zip(np.cumsum([0, *SIZES]), SIZES, strict=False)):
        frame.iloc[start : start + size].to_parquet(folder / f"{number}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def client():
    with (
        dask_distributed.LocalCluster(
            # Any free port: another process of tests may have a cluster at the same time.
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        dask_distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module", autouse=True)
def gone_by():
    """Rows are not held, so that there are passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polycal.auditing.source.HELD_CELLS", 20_000)
        yield


@pytest.fixture(scope="module")
def expected(folder):
    return audit_stream(folder, groups=GROUPS)


def assert_same(found, expected):
    """The same audit to rounding."""
    assert found.n_samples == expected.n_samples
    assert found.scores == pytest.approx(expected.scores)
    for ours, theirs in zip(found.classes + found.groups, expected.classes + expected.groups, strict=True):
        assert ours.name == theirs.name
        assert (ours.smooth_error, ours.predicted, ours.chance) == pytest.approx(
            (theirs.smooth_error, theirs.predicted, theirs.chance)
        )
    assert {f.source for f in found.findings} == {f.source for f in expected.findings}
    assert (found.n_fit, found.n_judge) == (expected.n_fit, expected.n_judge)
    for ours, theirs in zip(found.findings, expected.findings, strict=True):
        assert ours.certificate.estimate == pytest.approx(theirs.certificate.estimate, abs=1e-9)
        assert ours.certificate.lower_bound == pytest.approx(theirs.certificate.lower_bound, abs=1e-9)


def test_files_on_a_cluster_give_the_numbers_of_the_stream(client, folder, expected):
    assert_same(distributed.audit(folder, client=client, groups=GROUPS), expected)


def test_files_on_threads_and_at_an_address(client, folder, expected):
    assert_same(distributed.audit(str(folder / "*.parquet"), groups=GROUPS), expected)
    address = client.scheduler.address
    # Workers get a URL, and connect by themselves.
    assert_same(distributed.audit(f"file://{folder}/*.parquet", client=address, groups=GROUPS), expected)


def test_frames_and_arrays_give_the_same_numbers(client, frame, example, expected):
    # Uneven partitions, the second of them empty.
    pieces = dd.from_pandas(frame, npartitions=3)
    none = pieces.partitions[1].map_partitions(lambda part: part.iloc[:0], meta=frame)
    uneven = dd.concat([pieces.partitions[0], none, pieces.partitions[1], pieces.partitions[2]])
    found = distributed.audit(uneven, client=client, groups=GROUPS)
    assert_same(found, expected)
    arrays = (
        da.from_array(example.labels, chunks=900),
        da.from_array(example.proba, chunks=(1700, 4)),
    )
    found = distributed.audit(arrays, client=client, groups=GROUPS, class_names=example.class_names)
    assert_same(found, expected)
    weighted = (example.labels, arrays[1], np.full(example.n_samples, 2.0))
    found = distributed.audit(weighted, groups=GROUPS, class_names=example.class_names)
    assert found.weighted
    assert_same(found, expected)


def test_a_worker_that_dies_loses_nothing(client, frame, expected, tmp_path):
    flag = tmp_path / "died"

    def deadly(part, flag=flag, end=signal.SIGKILL):
        if not flag.exists() and len(part):
            flag.touch()
            os.kill(os.getpid(), end)
        return part

    pieces = dd.from_pandas(frame, npartitions=5).map_partitions(deadly, meta=frame)
    found = distributed.audit(pieces, client=client, groups=GROUPS)
    assert flag.exists()
    assert_same(found, expected)


def test_a_corrupt_file_is_named(client, folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = (tmp_path / "3.parquet").read_bytes()
    (tmp_path / "3.parquet").write_bytes(whole[:-9])
    with pytest.raises(ValueError, match=r"3\.parquet: cannot be read as Parquet"):
        distributed.audit(tmp_path, client=client)
    # Damage that only a worker will see.
    (tmp_path / "3.parquet").write_bytes(whole)
    opened = open_predictions(f"file://{tmp_path}")
    middle = len(whole) // 2
    (tmp_path / "3.parquet").write_bytes(whole[:middle] + b"\xff" * 64 + whole[middle + 64 :])
    with pytest.raises(ValueError, match=rf"file://{tmp_path}/3\.parquet"):
        distributed.audit(opened, client=client)


def test_workers_that_run_elsewhere_find_relative_paths(client, folder, example, tmp_path, monkeypatch):
    calibrator = pc.TemperatureScaling().fit(example.proba, example.labels)
    monkeypatch.chdir(folder.parent)
    for data in (folder.name, open_predictions(folder.name), f"file://{folder.name}/0.parquet"):
        fitted = distributed.fit_calibrator(pc.TemperatureScaling(), data, client=client, n_rows=100)
        assert fitted.n_classes_ == 10
    monkeypatch.chdir(tmp_path)
    pairs = {
        "files": folder / "0.parquet",
        "arrays": (example.labels, da.from_array(example.proba, chunks=(4000, 10))),
    }
    for out, data in pairs.items():
        files = distributed.apply_calibrator(calibrator, data, out, client=client)
        assert [file.name for file in (tmp_path / out).iterdir()] == ["part-00000.parquet"]
        assert files[0].exists()


def test_bad_rows_of_files_are_named_by_their_chunk(frame, example, tmp_path, monkeypatch):
    bad = frame.iloc[:20].copy()
    bad.iloc[13, 0] += 0.5
    bad.to_parquet(tmp_path / "bad.parquet", index=False)
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 10)
    message = r"bad\.parquet: rows from 10: y_proba\[3\] does not sum to 1"
    with pytest.raises(ValueError, match=message):
        distributed.audit(tmp_path)
    calibrator = pc.TemperatureScaling().fit(example.proba, example.labels)
    with pytest.raises(ValueError, match=message):
        distributed.apply_calibrator(calibrator, tmp_path / "bad.parquet", tmp_path / "out")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            dask_distributed.KilledWorker("task", SimpleNamespace(address="tcp://far:1"), 3),
            r"^4 workers died one after the other .* log of tcp://far:1 may say more\.$",
        ),
        (CancelledError("scheduler-lost\nand more"), r"^the cluster gave the work up \(scheduler-lost\)$"),
    ],
)
def test_what_a_cluster_says_of_itself_is_one_line(folder, failure, message):
    def fail():
        raise failure

    client = SimpleNamespace(compute=lambda value: SimpleNamespace(result=fail))
    with pytest.raises(OSError, match=message):
        distributed.fit_calibrator(pc.TemperatureScaling(), folder, client=client)


def test_bad_rows_are_named_by_partition(client, frame):
    bad = frame.copy()
    bad.iloc[-1, 0] += 0.5
    with pytest.raises(ValueError, match=r"partition 1: y_proba\[1999\] does not sum to 1"):
        distributed.audit(dd.from_pandas(bad, npartitions=2), client=client)


@pytest.mark.parametrize("source", ["files", "frame", "arrays"])
def test_recalibration(client, folder, frame, example, source, tmp_path):
    data = {
        "files": folder,
        "frame": dd.from_pandas(frame, npartitions=3),
        "arrays": (example.labels, da.from_array(example.proba, chunks=(1500, 4))),
    }[source]
    names = example.class_names if source == "arrays" else None
    options = {"client": client, "class_names": names}
    calibrator = distributed.fit_calibrator(pc.TemperatureScaling(), data, n_rows=1000, **options)
    everything = distributed.fit_calibrator(pc.TemperatureScaling(), data, **options)
    alone = pc.TemperatureScaling().fit(example.proba, example.labels)
    at = example.proba[:50]
    np.testing.assert_allclose(everything.predict_proba(at), alone.predict_proba(at), atol=1e-4)
    files = distributed.apply_calibrator(calibrator, data, tmp_path / "out", **options)
    assert all(file.parent == tmp_path / "out" for file in files)
    written = [pc.read_predictions(file) for file in files]
    assert written[0].class_names == example.class_names
    np.testing.assert_array_equal(np.concatenate([part.labels for part in written]), example.labels)
    np.testing.assert_allclose(
        np.concatenate([part.proba for part in written]), calibrator.predict_proba(example.proba), atol=1e-6
    )
    # Three of the four files have rows.
    assert len(files) == 3


def test_recalibration_keeps_other_columns(client, frame, tmp_path):
    names = [name for name in frame.columns if name != "label"]
    wide = frame.assign(id=np.arange(len(frame)), weight=2.0, note="a")[
        ["id", *frame.columns[::-1], "weight", "note"]
    ]
    wide.index = pd.date_range("2026-01-01", periods=len(frame), freq="s", name="when")
    pieces = dd.from_pandas(wide, npartitions=2)
    none = pieces.partitions[0].map_partitions(lambda part: part.iloc[:0], meta=wide)
    data = dd.concat([none, pieces], interleave_partitions=False)
    options = {"client": client, "class_names": names}
    calibrator = distributed.fit_calibrator(pc.TemperatureScaling(), data, n_rows=1000, **options)
    files = distributed.apply_calibrator(calibrator, data, tmp_path, client=client)
    assert [file.name for file in files] == ["part-00001.parquet", "part-00002.parquet"]
    assert sorted(tmp_path.iterdir()) == files
    written = pd.concat([pd.read_parquet(file) for file in files])
    others = ["id", "label", "weight", "note"]
    pd.testing.assert_frame_equal(written[others], wide[others], check_dtype=False, check_freq=False)
    assert list(written.columns) == list(wide.columns)
    np.testing.assert_allclose(written[names], calibrator.predict_proba(frame[names].to_numpy()), atol=1e-6)
    # The files say which columns are classes.
    assert pc.read_predictions(files[0]).class_names == tuple(names)
    opened = open_predictions(tmp_path)
    assert (opened.class_names, sum(chunk.sample.n_samples for chunk in opened)) == (tuple(names), len(frame))


@pytest.fixture(scope="module")
def logits(example):
    """Single precision, and so far apart that their softmax in single precision has zeros."""
    rng = np.random.default_rng(0)
    logits = (20 * np.log(np.maximum(example.proba, 1e-6))).astype(np.float32)
    return logits + rng.normal(size=(example.n_samples, 1)).astype(np.float32)


@pytest.mark.parametrize("source", ["logits", "probabilities", "frame", "arrays"])
def test_a_calibrator_of_logits_gives_what_it_gives_here(example, logits, source, tmp_path):
    alone = pc.TemperatureScaling(from_logits=True).fit(logits, example.labels)
    direct = alone.predict_proba(logits)
    proba = pc.IdentityCalibrator(from_logits=True).fit(logits, example.labels).predict_proba(logits)
    classes = list(map(str, range(proba.shape[1])))
    data = {
        "logits": tmp_path / "given.npz",
        "probabilities": tmp_path / "given.npz",
        "frame": dd.from_pandas(
            pd.DataFrame(proba, columns=classes).assign(label=example.labels), npartitions=2
        ),
        "arrays": (example.labels, da.from_array(proba, chunks=(2500, 10))),
    }[source]
    given = {"logits": logits} if source == "logits" else {"proba": proba}
    np.savez(tmp_path / "given.npz", labels=example.labels, **given)
    fitted = distributed.fit_calibrator(pc.TemperatureScaling(from_logits=True), data)
    assert fitted.from_logits
    assert fitted.temperature_ == pytest.approx(alone.temperature_, rel=1e-3)
    files = distributed.apply_calibrator(alone, data, tmp_path / "out")
    found = np.concatenate([pc.read_predictions(file).proba for file in files])
    # What is left of probabilities in single precision is less than what there is of logits.
    np.testing.assert_allclose(found, direct, atol=1e-6 if source == "logits" else 1e-3)
    assert alone.from_logits


def test_frames_and_arrays_do_not_hold_logits(example, logits):
    calibrator = pc.TemperatureScaling(from_logits=True)
    arrays = (example.labels, da.from_array(logits, chunks=(2500, 10)))
    with pytest.raises(ValueError, match=r"partition \d: y_proba\[0\] holds a negative probability"):
        distributed.fit_calibrator(calibrator, arrays)
    marked = dd.from_pandas(pd.DataFrame(logits).assign(label=example.labels), npartitions=1)
    with pytest.raises(ValueError, match=r"partition \d: y_proba\[0\] holds a negative probability"):
        distributed.fit_calibrator(calibrator, marked)


@pytest.mark.parametrize(
    ("yes", "no"), [(True, False), (1, 0), ("true", "false"), ("1", "0"), (" TRUE", "False ")]
)
def test_parts_of_a_frame(frame, yes, no):
    flags = np.arange(len(frame)) % 4 == 0
    marked = frame.assign(evaluation=np.where(flags, yes, no))
    fitted = distributed.fit_calibrator(
        pc.TemperatureScaling(), dd.from_pandas(marked, npartitions=2), part="evaluation"
    )
    names = [name for name in frame.columns if name != "label"]
    alone = pc.TemperatureScaling().fit(frame.loc[flags, names], frame.label[flags])
    assert fitted.temperature_ == pytest.approx(alone.temperature_, rel=1e-4)


@pytest.mark.parametrize("bad", [None, np.nan, "maybe", 2, 0.5])
def test_what_is_no_flag_is_refused(frame, bad):
    flags = [True, False, bad] + [True] * (len(frame) - 3)
    marked = frame.assign(evaluation=pd.Series(flags, dtype=object))
    with pytest.raises(ValueError, match=r"partition 0: evaluation\[2\] is .*; use true or false"):
        distributed.audit(dd.from_pandas(marked, npartitions=2), part="evaluation")


def test_recalibration_leaves_nothing_of_an_earlier_run(frame, example, tmp_path):
    names = list(example.class_names)
    calibrator = pc.TemperatureScaling().fit(example.proba, example.labels, class_names=names)
    (tmp_path / "part-a.parquet").touch()
    (tmp_path / "part-00009.parquet").mkdir()
    others = {"part-a.parquet", "part-00009.parquet"}
    rows = frame.iloc[:200]
    three = distributed.apply_calibrator(calibrator, dd.from_pandas(rows, npartitions=3), tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in three} | others
    first, second, _ = dd.from_pandas(rows, npartitions=3).partitions
    none = first.map_partitions(lambda part: part.iloc[:0], meta=rows)
    # Columns may be named by an array, too.
    uneven = dd.concat([none, second], interleave_partitions=False)
    files = distributed.apply_calibrator(calibrator, uneven, tmp_path, class_names=np.array(names))
    assert [file.name for file in files] == ["part-00001.parquet"]
    assert {file.name for file in tmp_path.iterdir()} == {"part-00001.parquet"} | others
    with pytest.raises(ValueError, match=r"part-00001\.parquet is to be read, and to be replaced"):
        distributed.apply_calibrator(calibrator, files[0], tmp_path)
    assert files[0].exists()


def test_recalibration_refuses_what_does_not_fit(frame, example, tmp_path):
    names = list(example.class_names)
    calibrator = pc.TemperatureScaling().fit(example.proba, example.labels, class_names=names)
    proba = da.from_array(example.proba, chunks=(2000, 10))
    with pytest.raises(ValueError, match="where the calibrator was fitted on"):
        distributed.apply_calibrator(calibrator, (example.labels, proba), tmp_path, class_names=names[::-1])
    with pytest.raises(ValueError, match="not a URL") as caught:
        distributed.apply_calibrator(calibrator, dd.from_pandas(frame), "s3://me:secret@bucket")
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="there is no column 'emu', which is said to be a class"):
        distributed.audit(dd.from_pandas(frame), class_names=["emu"])
    bad = frame.copy()
    bad.iloc[-1, 0] += 0.5
    with pytest.raises(ValueError, match=r"partition 1: y_proba\[1999\] does not sum to 1"):
        distributed.apply_calibrator(calibrator, dd.from_pandas(bad, npartitions=2), tmp_path)
    # The other partition may be being written still.
    end = monotonic() + 60
    names = [".tmp"]
    while any(name.endswith(".tmp") for name in names) and monotonic() < end:
        sleep(0.05)
        names = [file.name for file in tmp_path.iterdir()]
    assert names in (["part-00000.parquet"], [])


def test_what_cannot_be_distributed_is_refused(example):
    with pytest.raises(TypeError, match="data must be files"):
        distributed.audit((example.labels, example.proba))
    labels, proba = da.from_array(example.labels), da.from_array(example.proba)
    with pytest.raises(TypeError, match="client must be"):
        distributed.audit((labels, proba), client=3)
    with pytest.raises(ValueError, match="one entry per row"):
        distributed.audit((labels[:-1], proba))
    with pytest.raises(ValueError, match="do not mark their parts"):
        distributed.audit((labels, proba), part="evaluation")
    with pytest.raises(ValueError, match="class_names has 1 names"):
        distributed.audit((labels, proba), class_names=["a"])


def test_arrays_of_unknown_size(frame, example, expected, tmp_path):
    pieces = dd.from_pandas(frame, npartitions=3)
    names = [name for name in frame.columns if name != "label"]
    codes = pieces.label.map(names.index, meta=("label", int))
    arrays = (codes.values, pieces[names].values)
    found = distributed.audit(arrays, class_names=names, groups=GROUPS)
    assert_same(found, expected)
    calibrator = pc.TemperatureScaling().fit(example.proba, example.labels)
    files = distributed.apply_calibrator(calibrator, arrays, tmp_path, class_names=names)
    written = np.concatenate([pc.read_predictions(file).labels for file in files])
    np.testing.assert_array_equal(written, example.labels)


@pytest.mark.parametrize("form", ["files", "arrays"])
def test_a_monitor_has_a_shard_for_each_partition(example, folder, form):
    if form == "files":
        data, cuts = str(folder), np.cumsum([0, *SIZES])
    else:
        labels, proba = (
            da.from_array(a, chunks=(2000, *a.shape[1:])) for a in (example.labels, example.proba)
        )
        data, cuts = (labels, proba), [0, 2000, 4000]
    fresh = pc.Monitor(tolerance=0.005)
    merged = distributed.update_monitor(fresh, data)
    shards = [
        pc.Monitor(tolerance=0.005).update(example.labels[a:b], example.proba[a:b]) for a, b in pairwise(cuts)
    ]
    assert merged.n_rows == 4000
    assert merged.evidence == pytest.approx(sum(shard.evidence for shard in shards))
    assert fresh.n_rows == 0


def test_a_monitor_on_dask_watches_values_of_columns(example, frame):
    side = np.where(np.arange(len(frame)) % 2, "left", "right")
    wrong = np.where(side == "left", frame.label.to_numpy()[::-1], frame.label)
    pieces = dd.from_pandas(frame.assign(side=side, label=wrong), npartitions=2)
    merged = distributed.update_monitor(
        pc.Monitor(tolerance=0.005), pieces, class_names=example.class_names, slice_by=["side"]
    )
    assert merged.findings[0].question == "is the most likely class right, where side is left?"


def test_named_slices_are_states_on_the_workers():
    data = pc.datasets.make_slices(1500, random_state=0)
    column, codes = data.features.column("device")
    frame = pd.DataFrame(data.proba, columns=[f"c{c}" for c in range(10)]).assign(
        label=[f"c{c}" for c in data.labels], device=np.array(column.categories)[codes.astype(int)]
    )
    parts = dd.from_pandas(frame, npartitions=3)
    found = distributed.audit(parts, slice_by=["device"], notions=[], auditors={})
    assert {one.rows["device"] for one in found.named_slices} == set(column.categories)
    for one in found.named_slices:
        inside = (frame["device"] == one.rows["device"]).to_numpy()
        assert one.rows.n_rows == inside.sum()
        direct = pc.smooth_calibration_error(data.labels[inside], data.proba[inside], subset=[3])
        error = next(q.smooth_error for q in one.classes if q.name == "c3")
        assert error == pytest.approx(direct, abs=1e-3)
