"""Files behind URLs: in fsspec's memory, in a local folder, and on a real web server that counts what it sends."""

import http.server
import pickle
import re
import sys
import threading
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array

import polycal as pc
from polycal.cli.inputs import shown
from polycal.io.chunks import open_predictions
from polycal.io.lists import open_lists, read_lists, write_lists
from polycal.io.parquet_batches import open_parquet
from polycal.io.remote import RemoteFile, hide_secrets, is_url, url_of
from polycal.sparse import sparse_sample

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
fsspec = pytest.importorskip("fsspec")


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves parts of files, which the standard library's handler does not, to those who give the password."""

    sent: ClassVar[list] = []
    token = ""

    def send_head(self):
        if self.token not in self.path:
            self.send_error(403)
            return None
        wanted = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if wanted is None or not path.is_file():
            return super().send_head()
        size = path.stat().st_size
        start, stop = (int(n) for n in re.fullmatch(r"bytes=(\d+)-(\d+)", wanted).groups())
        stop = min(stop, size - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{stop}/{size}")
        self.send_header("Content-Length", str(stop - start + 1))
        self.end_headers()
        if self.command == "GET":
            self.sent.append(stop - start + 1)
            with path.open("rb") as file:
                file.seek(start)
                self.wfile.write(file.read(stop - start + 1))
        return None

    def log_message(self, *args):
        pass


@pytest.fixture
def serve(tmp_path):
    """A web server for the test's folder: its address, and the sizes of the parts it sent."""
    pytest.importorskip("aiohttp")
    servers = []

    def start(token=""):
        sent = []
        handler = type("Handler", (Ranges,), {"sent": sent, "token": token})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path)))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}", sent

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def memory():
    files = fsspec.filesystem("memory")
    yield files
    if files.exists("/logs"):
        files.rm("/logs", recursive=True)


@pytest.fixture
def folder(tmp_path, make_predictions):
    """Three files in a folder: (the folder, all probabilities)."""
    parts = [make_predictions(n_samples=200, seed=seed) for seed in range(3)]
    for number, part in enumerate(parts):
        pc.write_predictions(tmp_path / f"{number}.parquet", part.labels, part.proba, class_names=part.names)
    return tmp_path, np.concatenate([part.proba for part in parts])


def upload(memory, folder):
    for file in sorted(folder.iterdir()):
        memory.pipe(f"/logs/{file.name}", file.read_bytes())


def rows(files):
    return np.concatenate([chunk.sample.proba for chunk in files])


def test_folders_patterns_and_files(folder, memory, serve):
    path, proba = folder
    upload(memory, path)
    (path / "notes.txt").write_text("no predictions")
    for root in ("memory://logs", f"file://{path}", serve()[0]):
        for url in (root, f"{root}/", f"{root}/*.parquet", [f"{root}/{i}.parquet" for i in range(3)]):
            files = open_predictions(url)
            np.testing.assert_array_equal(rows(files), proba)
            assert [str(file) for file in files.paths] == [f"{root}/{i}.parquet" for i in range(3)]
    everything = open_predictions(f"file://{path}/[0-1].parquet")
    assert len(pickle.loads(pickle.dumps(everything)).paths) == 2
    np.testing.assert_array_equal(pc.read_predictions("memory://logs/1.parquet").proba, proba[200:400])


def test_urls_whose_paths_are_not_their_ends(folder, monkeypatch):
    path, proba = folder
    archive = path / "all.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(path.glob("*.parquet")):
            packed.write(file, f"preds/{file.name}")
    monkeypatch.chdir(path.parent)
    here, inside, behind = f"file://{path.name}", "zip://preds", f"::file://{archive}"
    cases = {
        here: f"file://{path}/1.parquet",
        f"{here}/*.parquet": f"file://{path}/1.parquet",
        f"{inside}{behind}": f"{inside}/1.parquet{behind}",
        f"{inside}/*.parquet{behind}": f"{inside}/1.parquet{behind}",
        f"zip://{behind}": f"{inside}/1.parquet{behind}",
        f"zip://**/*.parquet::file://{path.name}/all.zip": f"{inside}/1.parquet::file://{path.name}/all.zip",
        f"simplecache::{inside}{behind}": f"simplecache::{inside}/1.parquet{behind}",
    }
    for url, second in cases.items():
        files = pickle.loads(pickle.dumps(open_predictions(url)))
        np.testing.assert_array_equal(rows(files), proba)
        assert str(files.paths[1]) == second
        assert (files.paths[1].name, files.paths[1].suffix) == ("1.parquet", ".parquet")
    for url in (f"{here}/1.parquet", f"{inside}/1.parquet{behind}", f"simplecache::{here}/1.parquet"):
        np.testing.assert_array_equal(pc.read_predictions(url).proba, proba[200:400])
        np.testing.assert_array_equal(rows(open_predictions(url)), proba[200:400])


def test_accounts_are_no_part_of_paths(folder, memory, monkeypatch):
    class Accounts(type(memory)):
        protocol = "abfs"

        @classmethod
        def _strip_protocol(cls, path):
            return super()._strip_protocol(re.sub("abfs://(.*)@account", r"\1", path))

    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "abfs", Accounts)
    path, proba = folder
    upload(memory, path)
    for url in ("abfs://logs@account", "abfs://logs@account/*.parquet"):
        np.testing.assert_array_equal(rows(open_predictions(url)), proba)


def test_paths_are_shown_as_urls():
    cases = {
        ("s3://bucket/*/x.csv", "bucket/a/x.csv"): "s3://bucket/a/x.csv",
        ("memory://logs", "/logs/x.csv"): "memory://logs/x.csv",
        ("memory://*", "/logs/x.csv"): "memory:///logs/x.csv",
        ("hdfs://host:8020/logs", "/logs/x.csv"): "hdfs://host:8020/logs/x.csv",
        ("ftp://me:secret@host", "/logs/x.csv"): "ftp://***@host/logs/x.csv",
        ("simplecache::https://host/?sig=1", "https://host/x.csv"): "simplecache::https://host/x.csv",
        ("abfs://box@account/logs", "box/logs/x.csv"): "abfs://box@account/logs (box/logs/x.csv)",
    }
    assert {(url, path): str(RemoteFile(url, path)) for url, path in cases} == cases
    assert {RemoteFile(url, path).name for url, path in cases} == {"x.csv"}
    assert url_of("/a@b/x.csv", "file://a@b") == "file://a@b/x.csv"


def test_links_are_followed(folder):
    path, proba = folder
    links = path / "links"
    (links / "folder.parquet").mkdir(parents=True)
    for name, to in (("a", "0.parquet"), ("b", "1.parquet"), ("back", "links")):
        (links / f"{name}.parquet").symlink_to(path / to)
    for given in (links, f"{links}/*.parquet"):
        here, there = open_predictions(given), open_predictions(f"file://{given}")
        assert [file.name for file in there.paths] == [file.name for file in here.paths]
        np.testing.assert_array_equal(rows(there), proba[:400])


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".feather"])
def test_other_formats_are_copied(suffix, tmp_path, predictions):
    path = tmp_path / f"all{suffix}"
    pc.write_predictions(path, predictions.labels, predictions.proba, class_names=predictions.names)
    for proba in (pc.read_predictions(f"file://{path}").proba, rows(open_predictions(f"file://{path}"))):
        np.testing.assert_allclose(proba, predictions.proba, atol=1e-15)
    with pytest.raises(ValueError, match=rf"all\{suffix}: the file claims to unpack to"):
        pc.read_predictions(f"file://{path}", max_bytes=10)


def test_lists_behind_urls(tmp_path):
    sample = sparse_sample([1, 2], csr_array([[0.0, 0.9, 0.0, 0.05], [0.6, 0.0, 0.3, 0.0]]))
    write_lists(tmp_path / "top.parquet", sample)
    again = read_lists(f"file://{tmp_path}/*.parquet")
    np.testing.assert_array_equal(again.values, sample.values)
    assert repr(open_lists(f"file://{tmp_path}")) == "ListFiles(1 files, n_classes=4)"


def test_only_what_is_needed_travels(tmp_path, serve):
    rng = np.random.default_rng(0)
    columns = {str(i): rng.random(4000) for i in range(50)}
    total = sum(columns.values())
    table = pa.table({"label": rng.integers(0, 50, 4000)} | {n: c / total for n, c in columns.items()})
    path = tmp_path / "wide.parquet"
    pq.write_table(table, path, row_group_size=1000, compression="none", use_dictionary=False)
    size = path.stat().st_size
    root, sent = serve()
    files = open_predictions(f"{root}/wide.parquet")
    # Opening takes the footer, whose length PyArrow guesses.
    assert sum(sent) < size / 10
    sent.clear()
    np.testing.assert_array_equal(rows(files), pc.read_predictions(path).proba)
    # All at once, since it fits: the labels, and everything.
    assert len(sent) < 10
    assert sum(sent) < 1.2 * size
    for room, most in ((size // 3, size // 3), (size // 8, 1 << 17)):
        sent.clear()
        with open_parquet(RemoteFile(f"{root}/wide.parquet"), room) as parquet:
            assert sum(batch.num_rows for batch in parquet.batches(300)) == 4000
        # Several runs of groups; or, where not even one fits, the columns piece by piece.
        assert max(sent) <= most
        sent.clear()


def test_what_is_read_is_held_once(memory):
    memory.pipe("/logs/x", bytes(1 << 20))
    with RemoteFile("memory://logs/x").open() as file:
        tracemalloc.start()
        try:
            assert len(file.read(1 << 20)) == 1 << 20
            assert tracemalloc.get_traced_memory()[1] < 3 << 19
        finally:
            tracemalloc.stop()


def test_runs_of_groups_fill_the_room(tmp_path):
    table = pa.table({"a.b": np.arange(100.0), "l": [[1.0, 2.0]] * 100})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10, compression="none", use_dictionary=False)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    # A number, and its position in a dictionary.
    size = 10 * (8 + 4)
    assert metadata.row_group(0).column(0).total_uncompressed_size <= 2 * size
    with open_parquet(tmp_path / "a.parquet", 3 * size) as parquet:
        runs = list(parquet.runs(["a.b"], range(10)))
        assert runs == [([0, 1, 2], 3 * size), ([3, 4, 5], 3 * size), ([6, 7, 8], 3 * size), ([9], size)]
    with open_parquet(tmp_path / "a.parquet", 1) as parquet:
        both, lists = (list(parquet.runs(columns, range(10))) for columns in (None, ["l"]))
        assert [groups for groups, _ in both] == [[i] for i in range(10)]
        # Lists may have all bytes of their group.
        assert both == lists == [([i], metadata.row_group(i).total_byte_size) for i in range(10)]


def test_a_corrupt_file_is_named_by_its_url(folder, memory):
    path, _ = folder
    upload(memory, path)
    whole = memory.cat("/logs/1.parquet")
    memory.pipe("/logs/1.parquet", whole[:-20])
    with pytest.raises(ValueError, match=r"memory://logs/1\.parquet: cannot be read as Parquet"):
        open_predictions("memory://logs")
    middle = len(whole) // 2
    memory.pipe("/logs/1.parquet", whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :])
    with pytest.raises(ValueError, match=r"memory://logs/1\.parquet"):
        list(open_predictions("memory://logs"))
    with pytest.raises(ValueError, match=r"memory://logs/1\.parquet"):
        pc.read_predictions("memory://logs/1.parquet")


def test_what_is_missing_is_said(tmp_path, memory, serve):
    root, _ = serve()
    memory.pipe("/logs/notes.txt", b"no predictions")
    for url in ("memory://logs/0.parquet", f"file://{tmp_path}/0.parquet", f"{root}/0.parquet"):
        for read in (open_predictions, pc.read_predictions):
            with pytest.raises(FileNotFoundError, match=rf"{re.escape(url)}: there is no such file"):
                read(url)
    with pytest.raises(FileNotFoundError, match=r"memory://logs/\*\.parquet: no file has such a name"):
        open_predictions("memory://logs/*.parquet")
    with pytest.raises(FileNotFoundError, match="no file of predictions"):
        open_predictions("memory://logs")
    with pytest.raises(IsADirectoryError, match="memory://logs is a folder"):
        pc.read_predictions("memory://logs")
    with pytest.raises(OSError, match=r"what://x\.parquet: cannot be reached .*Protocol not known: what"):
        open_predictions("what://x.parquet")
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"a\.npy.* must be on this machine.*write Parquet"):
        open_predictions(f"file://{tmp_path}/a.npy")


def test_what_is_not_installed_is_said(monkeypatch):
    known = sys.modules["fsspec.registry"].known_implementations
    monkeypatch.setitem(known, "odd", {"class": "odd.Odd", "err": "Install odd"})
    with pytest.raises(ImportError, match=r"odd://bucket/x\.parquet: needs a package .* Install odd"):
        open_predictions("odd://bucket/x.parquet")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"pip install 'polycal\[remote\]'"):
        open_predictions("memory://logs")


def test_urls_are_told_from_paths():
    urls = ("s3://b/x", "simplecache::s3://b/x", "zip://a.csv::file:///x.zip")
    paths = ("a/b", "c:/x", "C:\\x", "day::1.parquet", "/a://b", "a b://c")
    assert all(map(is_url, urls))
    assert not any(map(is_url, paths))


def test_a_url_that_became_a_path_is_said():
    for url in (
        "https://me:secret@host/x.parquet?sig=secret",
        "simplecache::https://me:secret@host/x.parquet",
    ):
        with pytest.raises(ValueError, match=r"https:/\.\.\.: give a URL as text") as caught:
            open_predictions(Path(url))
        assert "secret" not in str(caught.value)


def test_urls_are_not_written_to(tmp_path, predictions):
    url = "https://me:secret@host/x.npy?sig=secret"
    message = r"='https://\*\*\*@host/x\.npy\?\*\*\*' must be a file on this machine, not a URL"
    np.save(tmp_path / "a.npy", predictions.proba)
    sparse = sparse_sample([1], csr_array([[0.0, 0.9]]))
    with pytest.raises(ValueError, match=f"path{message}"):
        pc.write_predictions(url, predictions.labels, predictions.proba)
    with pytest.raises(ValueError, match=f"path{message}"):
        write_lists(url, sparse)
    with pytest.raises(ValueError, match=f"labels{message}"):
        pc.read_predictions(tmp_path / "a.npy", labels=url)


def test_errors_of_storage_do_not_tell_secrets():
    said = {
        "403, url='https://other/x?sig=secret'": r"403, url='https://other/x\?\*\*\*",
        "to ftp://me:secret@host/x and on": r"to ftp://\*\*\*@host/x and on",
        "exceeded with url: /x?op=get&key=secret now": r"exceeded with url: /x\?\*\*\* now",
        "no day-?.parquet": r"no day-\?\.parquet",
    }
    for text, message in said.items():
        with (
            pytest.raises(OSError, match=rf"^https://h/x: .*\(ConnectionError: {message}\)$"),
            RemoteFile("https://h/x").reaching(),
        ):
            raise ConnectionError(text)
    for file in (
        RemoteFile("https://h/?sig=secret", "https://h/x"),
        RemoteFile("https://h", "https://h/x?a=1"),
    ):
        with pytest.raises(OSError, match=r"cannot be reached \(ConnectionError\)$"), file.reaching():
            raise ConnectionError("secret")


def test_names_hold_no_hosts():
    hosts = ("ftp://me:secret@host", "https://me:secret@host.com", "zip::https://host/x.zip", "zip://::a.zip")
    assert {(RemoteFile(url).name, RemoteFile(url).suffix) for url in hosts} == {("", "")}
    assert shown(["ftp://me:secret@host", "a"]) == "ftp://***@host and 1 more"
    assert shown(["ftp://me:secret@host/x.csv"]) == "x.csv"
    for url in ("zip://a/x.csv::https://me@host/y.zip?sig=1", "file://x.csv", "cached::sftp://me@host/x.csv"):
        assert (RemoteFile(url).name, RemoteFile(url).suffix) == ("x.csv", ".csv")


def test_secrets_are_not_shown(folder, serve):
    hidden = {
        "s3://bucket/a@b/day-?.parquet": "s3://bucket/a@b/day-?.parquet",
        "ftp://me:pass@word@host/x.csv": "ftp://***@host/x.csv",
        "https://key@host/a b.parquet?sig=1&x=2": "https://***@host/a b.parquet?***",
        "simplecache::https://host/x.parquet?sig=1": "simplecache::https://host/x.parquet?***",
        "abfs://container@account/x.parquet": "abfs://container@account/x.parquet",
        "/home/a@b?c": "/home/a@b?c",
    }
    assert {url: hide_secrets(url) for url in hidden} == hidden
    assert "me" not in repr(RemoteFile("ftp://me:pass@host/x.csv"))
    for url in ("https://h/x.parquet?a.b", "simplecache::https://h/x.parquet?a.b", "s3://b/x.parquet"):
        assert (RemoteFile(url).name, RemoteFile(url).suffix) == ("x.parquet", ".parquet")
    path, proba = folder
    root, _ = serve(token="?sig=secret")
    np.testing.assert_array_equal(pc.read_predictions(f"{root}/0.parquet?sig=secret").proba, proba[:200])
    with pytest.raises(PermissionError, match=r"0\.parquet\?\*\*\*: may not be read") as caught:
        pc.read_predictions(f"{root}/0.parquet?sig=wrong")
    assert "wrong" not in str(caught.value)
    (path / "0.parquet").write_bytes(b"PAR1 rubbish, and not even long enough PAR1")
    with pytest.raises(ValueError, match=r"0\.parquet\?\*\*\*: cannot be read as Parquet") as caught:
        pc.read_predictions(f"{root}/0.parquet?sig=secret")
    assert "secret" not in str(caught.value)


def test_storage_that_stops_answering_is_no_corrupt_file(folder, serve, monkeypatch):
    root, _ = serve()
    files = open_predictions(f"{root}/*.parquet")
    failures = {
        ConnectionError("the line is dead"): r"cannot be reached \(ConnectionError: the line is dead\)",
        PermissionError("the token is old"): "may not be read",
    }
    for failure, message in failures.items():

        def fail(self, size, failure=failure):
            raise failure

        with monkeypatch.context() as patch:
            patch.setattr("fsspec.implementations.http.HTTPFile.read", fail)
            with pytest.raises(OSError, match=rf"0\.parquet: {message}"):
                list(files)
    with pytest.raises(OSError, match="cannot be reached"):
        pc.read_predictions("http://127.0.0.1:1/x.parquet")
