"""Groups of rows with too many columns to be read at once: through a temporary file, and the same rows."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import polycal as pc
from polycal.io.chunks import open_predictions
from polycal.io.parquet_batches import open_parquet
from polycal.io.remote import RemoteFile
from polycal.storage.damage import UnreachableError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROOM = 1 << 20


@pytest.fixture
def opened(monkeypatch):
    """The temporary files, as they are opened; numba tries its cache with one of its own, in a folder."""
    files, make = [], tempfile.TemporaryFile

    def remembered(**options):
        file = make(**options)
        return file if options else files.append(file) or file

    monkeypatch.setattr(tempfile, "TemporaryFile", remembered)
    return files


def _mixed(n_rows, n_classes=40):
    """All kinds of columns, one of them with a dot in its name."""
    rng = np.random.default_rng(0)
    words = rng.choice(["cat", "dog", "a rather long name"], n_rows)
    columns = {
        "label": pa.array(words).dictionary_encode(),
        "lists": [[float(i)] * (i % 3) for i in range(n_rows)],
    }
    columns |= {f"c.{i}": rng.random(n_rows, dtype=np.float32) for i in range(n_classes)}
    columns["gaps"] = pa.array([None if i % 7 == 0 else i for i in range(n_rows)])
    return pa.table(columns).replace_schema_metadata({"class_names": "[]"})


def _rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("group_rows", [5000, 1700])
@pytest.mark.parametrize(
    "columns", [None, ["gaps", "c.7", "c.3", "lists", "label", *(f"c.{i}" for i in range(20, 40))]]
)
def test_the_rows_are_the_same(tmp_path, opened, group_rows, columns):
    path = tmp_path / "a.parquet"
    table = _mixed(5000)
    # A small dictionary is given up in the middle of a group, where batches with dictionaries are cut.
    pq.write_table(table, path, row_group_size=group_rows, dictionary_pagesize_limit=16, data_page_size=1000)
    with open_parquet(path) as parquet:
        expected = _rows(parquet.batches(300, columns))
    assert not opened
    with open_parquet(path, ROOM) as parquet:
        batches = list(parquet.batches(300, columns))
    assert len(opened) == -(-5000 // group_rows)
    assert all(file.closed for file in opened)
    assert _rows(batches) == expected
    assert max(batch.num_rows for batch in batches) == 300
    assert batches[0].schema.names == [n for n in table.schema.names if columns is None or n in columns]
    assert batches[0].schema.metadata[b"class_names"] == b"[]"


def test_few_columns_need_no_file(tmp_path, opened):
    path = tmp_path / "a.parquet"
    pq.write_table(_mixed(5000), path)
    with open_parquet(path, ROOM) as parquet:
        assert sum(batch.num_rows for batch in parquet.batches(300, ["label", "c.1"])) == 5000
    # One column cannot be parted.
    with open_parquet(path, 1) as parquet:
        assert sum(batch.num_rows for batch in parquet.batches(300, ["label"])) == 5000
    assert not opened


PEAKS = """
import sys
from pathlib import Path
from polycal.io.parquet_batches import open_parquet

for n_columns, room in ((1, None), (600, 8 << 20), (600, None)):
    with open_parquet(Path(sys.argv[1]), room) as parquet:
        columns = parquet.schema.names[:n_columns]
        assert sum(batch.num_rows for batch in parquet.batches(500, columns)) == 10_000
    print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


# A process of its own: the peak is that of its whole life.
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
def test_little_is_held(tmp_path):
    path = tmp_path / "wide.parquet"
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({str(i): rng.random(10_000, dtype=np.float32) for i in range(600)}), path)
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, str(path)], check=True, capture_output=True, text=True
    )
    start, bounded, unbounded = (int(peak) << 10 for peak in done.stdout.split())
    assert bounded - start < 40 << 20 < 80 << 20 < unbounded - start


def test_also_from_elsewhere(tmp_path, opened):
    pytest.importorskip("fsspec")
    pq.write_table(_mixed(2000), tmp_path / "a.parquet")
    with open_parquet(tmp_path / "a.parquet") as parquet:
        expected = _rows(parquet.batches(300))
    with open_parquet(RemoteFile(f"file://{tmp_path}/a.parquet"), ROOM) as parquet:
        assert _rows(parquet.batches(300)) == expected
    assert len(opened) == 1


def test_predictions_of_many_classes_are_read_in_chunks(tmp_path, opened):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(300), 2000).astype(np.float32)
    labels = rng.integers(0, 300, 2000)
    table = pa.table({f"c{i}": proba[:, i] for i in range(300)} | {"label": [f"c{i}" for i in labels]})
    pq.write_table(table, tmp_path / "a.parquet")
    chunks = [chunk.sample for chunk in open_predictions(tmp_path, memory="512MiB")]
    assert len(opened) == 1
    np.testing.assert_array_equal(np.concatenate([c.proba for c in chunks]), proba)
    np.testing.assert_array_equal(np.concatenate([c.labels for c in chunks]), labels)
    # All of it is to be in memory anyway.
    np.testing.assert_array_equal(pc.read_predictions(tmp_path / "a.parquet").proba, proba)
    assert len(opened) == 1


def test_the_file_goes_with_who_stops_reading(tmp_path, opened):
    pq.write_table(_mixed(2000), tmp_path / "a.parquet")
    with open_parquet(tmp_path / "a.parquet", ROOM) as parquet:
        batches = parquet.batches(300)
        next(batches)
        assert not opened[0].closed
        batches.close()
    assert opened[0].closed


def test_a_full_disk_is_no_damaged_file(tmp_path, monkeypatch):
    class Full(tempfile.SpooledTemporaryFile):
        def write(self, data):
            raise OSError("no space left")

    pq.write_table(_mixed(2000), tmp_path / "a.parquet")
    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    with (
        open_parquet(tmp_path / "a.parquet", ROOM) as parquet,
        pytest.raises(UnreachableError, match=r"cannot be written \(no space left\).*row_group_size"),
    ):
        list(parquet.batches(300))


def test_short_cells_of_csv_are_counted(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("a,b,label\n" + "0,1,b\n" * 3000)
    assert sum(chunk.sample.n_samples for chunk in open_predictions(path)) == 3000
    # As many bytes for a cell as let the file just fit, or just not.
    most = (512 << 20) // 2 // 9003
    for cell, fits in ((most, True), (most + 1, False)):
        monkeypatch.setattr("polycal.io.csv_table._CELL", cell)
        for place in (path, f"file://{path}"):
            if fits:
                assert open_predictions(place, memory="512MiB").n_classes == 2
                continue
            with pytest.raises(
                ValueError, match=r"a\.csv: \.csv files are read whole, and 9,003 cells .* \.npy instead"
            ):
                open_predictions(place, memory="512MiB")
