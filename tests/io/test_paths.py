"""What folders, patterns and lists of files stand for: each file once, and none passed over in silence."""

import os
from pathlib import Path

import pytest

import polycal as pc
from polycal.io.chunks import parse_memory
from polycal.io.paths import find_files
from polycal.io.remote import RemoteFile
from polycal.storage.damage import check_file, named

fsspec = pytest.importorskip("fsspec")

SUFFIXES = (".parquet", ".csv")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("a.parquet", "b.csv", "deep/c.parquet"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.fixture
def memory(folder):
    """The folder in fsspec's memory."""
    files = fsspec.filesystem("memory")
    for file in folder.rglob("*.*"):
        files.pipe(f"/places/{file.relative_to(folder).as_posix()}", b"")
    yield files
    files.rm("/places", recursive=True)


def names(path):
    return [place.name for place in find_files(path, SUFFIXES)]


def test_links_do_not_make_rows_count_twice(folder):
    (folder / "latest.parquet").symlink_to(folder / "a.parquet")
    (folder / "again").symlink_to(folder / "deep")
    everything = ["a.parquet", "b.csv", "c.parquet"]
    assert names(folder) == everything
    for given in (
        [folder, folder / "a.parquet"],
        [folder, folder / "deep" / ".." / "b.csv"],
        [folder, folder / "again"],
        [folder, f"{folder}/**/*.parquet"],
        [folder, os.path.relpath(folder)],
    ):
        assert names(given) == everything
    assert names([folder / "latest.parquet", folder]) == ["latest.parquet", "b.csv", "c.parquet"]
    # A link into another folder is one more file.
    (folder / "deep" / "other.csv").symlink_to(folder / "b.csv")
    assert names(folder / "deep") == ["c.parquet", "other.csv"]


def test_urls_of_one_file_count_once(folder, memory):
    everything = ["a.parquet", "b.csv", "c.parquet"]
    for given in (
        ["memory://places", "memory://places/b.csv"],
        ["memory://places", "memory:///places/*.parquet"],
        [f"file://{folder}", folder, f"file://{folder}/*.csv"],
    ):
        assert names(given) == everything
    assert len(names(["memory://places", folder])) == 6


def test_hidden_folders_are_left_out(folder, memory):
    for name in ("_temporary", ".ipynb_checkpoints"):
        (folder / "deep" / name / "0").mkdir(parents=True)
        (folder / "deep" / name / "0" / "x.parquet").touch()
        memory.pipe(f"/places/deep/{name}/0/x.parquet", b"")
    for place in (folder, f"file://{folder}", "memory://places"):
        assert names(place) == ["a.parquet", "b.csv", "c.parquet"]
    # Whoever names such a folder means it.
    for place in (folder / "deep" / "_temporary", "memory://places/deep/_temporary"):
        assert names(place) == ["x.parquet"]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_without_permission_is_named(folder, scheme, monkeypatch):
    scan = os.scandir

    def denied(path):
        if Path(path).name == "deep":
            # What a user without rights gets; tests may run as one who has all.
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(PermissionError, match=r"deep: the folder cannot be read \(Permission denied\)"):
        find_files(f"{scheme}{folder}", SUFFIXES)


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("end", ["", "/*.csv"])
def test_links_that_lead_nowhere_are_named(folder, scheme, end):
    (folder / "notes.txt").symlink_to("nowhere.txt")
    assert "b.csv" in names(f"{scheme}{folder}{end}")
    (folder / "gone.csv").symlink_to("nowhere.csv")
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: is a link to nowhere\.csv, which is not there"):
        find_files(f"{scheme}{folder}{end}", SUFFIXES)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_are_refused_before_they_are_opened(folder):
    os.mkfifo(folder / "pipe.csv")
    for given in (folder, folder / "pipe.csv", f"{folder}/*.csv", f"file://{folder}/pipe.csv"):
        with pytest.raises(ValueError, match=r"pipe\.csv: is a pipe or a device, not a regular file"):
            find_files(given, SUFFIXES)
    with pytest.raises(ValueError, match="is a pipe"):
        pc.read_predictions(folder / "pipe.csv")
    with pytest.raises(ValueError, match="is a pipe"):
        check_file(Path(os.devnull))


def test_urls_of_this_machine_are_made_absolute():
    here = Path.cwd().as_posix()
    cases = {
        "file://a/*.csv": f"file://{here}/a/*.csv",
        "zip://x.csv::file://a.zip": f"zip://x.csv::file://{here}/a.zip",
        "simplecache::local://a.csv": f"simplecache::local://{here}/a.csv",
        "file:///a.csv": "file:///a.csv",
        "file://~/a.csv": "file://~/a.csv",
        "s3://bucket/a.csv": "s3://bucket/a.csv",
    }
    assert {url: RemoteFile(url).absolute().url for url in cases} == cases


@pytest.mark.parametrize("bad", ["1.2.3GiB", ".", "1..GiB", "9" * 400])
def test_what_is_no_size_is_refused(bad):
    with pytest.raises(ValueError, match="memory must be a size such as '1GiB'"):
        parse_memory(bad)


def test_sizes_may_have_fractions():
    assert parse_memory(".75GiB") == parse_memory("0.75 G") == 3 << 28
    assert parse_memory("1.GiB") == 1 << 30


def test_lack_of_memory_is_said_with_the_name():
    with pytest.raises(MemoryError, match=r"^a\.csv: not enough memory$"), named("a.csv"):
        raise MemoryError
