"""Audits of many files, and within a given memory, as a user runs them."""

import json

import pytest

import polycal as pc
from polycal.distributed._dask import ClusterError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("month")
    sample = pc.datasets.load_fashion("evaluation")
    for day in range(4):
        rows = slice(2500 * day, 2500 * (day + 1))
        names = sample.class_names
        pc.write_predictions(
            path / f"{day}.parquet", sample.labels[rows], sample.proba[rows], class_names=names
        )
    return path


@pytest.mark.parametrize("how", ["folder", "pattern", "files"])
def test_folders_patterns_and_lists_of_files_are_one_audit(run, folder, how):
    given = {"folder": [folder], "pattern": [folder / "*.parquet"], "files": sorted(folder.iterdir())}[how]
    done = run("audit", *given, "--json", "--memory", "600MiB")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    sample = pc.datasets.load_fashion("evaluation")
    assert result["n_samples"] == 10_000
    assert result["scores"]["log_loss"] == pytest.approx(pc.log_loss(sample.labels, sample.proba))
    assert any(finding["significant"] for finding in result["findings"])


def test_the_report_of_rows_that_are_not_held_has_pictures(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("polycal.auditing.source.HELD_CELLS", 100_000)
    done = run("audit", folder, "--html", tmp_path / "r.html", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "r.html").read_text()
    assert "random ones of the rows that judged it" in " ".join(page.split())
    assert "The question everybody asks, on" in page


def test_the_gate_for_ci_works_on_streams(run, folder):
    assert run("audit", folder, "--fail-above", "0.01", "--quiet").returncode == 1
    assert run("audit", folder, "--fail-above", "0.2", "--quiet").returncode == 0


def test_urls_are_audited_and_their_secrets_are_not_told(run, folder, tmp_path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for file in folder.iterdir():
        memory.pipe(f"/me:secret@logs/{file.name}", file.read_bytes())
    reports = [tmp_path / "r.html", tmp_path / "r.md"]
    url = "memory://me:secret@logs/[0-2].parquet"
    done = run("audit", url, "--html", reports[0], "--markdown", reports[1], "--json")
    assert json.loads(done.stdout)["n_samples"] == 7500
    texts = [done.stdout, *(report.read_text() for report in reports)]
    assert not any("secret" in text for text in texts)
    assert "polycal audit 'memory://***@logs/[0-2].parquet'" in texts[2]
    memory.pipe("/me:secret@logs/1.parquet", b"PAR1 rubbish")
    done = run("audit", url)
    assert done.returncode == 2
    assert done.stderr.startswith("polycal: memory://***@logs/1.parquet: cannot be read as Parquet")
    memory.rm("/me:secret@logs", recursive=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "lots"], "lots"),
        (["--memory", "1KiB"], "memory"),
        (["--memory", "1.2.3GiB"], "memory must be a size such as '1GiB'"),
        (["--notion", "no-such"], "no-such"),
    ],
)
def test_bad_options_are_one_line(run, folder, arguments, message):
    done = run("audit", folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_standard_input_is_read_in_chunks(run, folder, tmp_path):
    with (folder / "0.parquet").open("rb") as stdin:
        done = run("audit", "-", "--memory", "600MiB", "--json", "--html", tmp_path / "r.html", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["n_samples"] == 2500
    assert "standard input" in (tmp_path / "r.html").read_text()
    with (folder / "0.parquet").open("rb") as stdin:
        done = run("audit", "-", "--scheduler", "tcp://127.0.0.1:1", stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("polycal: workers cannot read standard input")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (MemoryError("0.parquet: 9 GiB are too many"), "polycal: 0.parquet: 9 GiB are too many\n"),
        (MemoryError(), "polycal: not enough memory\n"),
        (ClusterError("4 workers died"), "polycal: 4 workers died\n"),
    ],
)
def test_lack_of_memory_and_of_workers_is_one_line(run, folder, failure, message, monkeypatch):
    def fail(*args, **options):
        raise failure

    monkeypatch.setattr("polycal.audit_stream", fail)
    done = run("audit", folder, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_a_damaged_file_is_named(run, folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "2.parquet").write_bytes((tmp_path / "2.parquet").read_bytes()[:5000])
    done = run("audit", tmp_path)
    assert done.returncode == 2
    assert "2.parquet" in done.stderr
