import json

import numpy as np
import pytest

import polycal as pc


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(3), 120), rng.integers(0, 3, 120)
    pc.write_predictions(tmp_path / "p.npz", labels, proba, class_names=["cat", "dog", "car"])
    other = pc.TemperatureScaling().fit(rng.dirichlet(np.ones(3), 90), rng.integers(0, 3, 90))
    other.save(tmp_path / "t.polycal")
    return tmp_path


def test_reports_are_written_beside_what_is_printed(run, files):
    page, text = files / "r.html", files / "r.md"
    done = run("audit", files / "p.npz", "--html", page, "--markdown", text)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "120 predictions" in done.stdout
    html = page.read_text(encoding="utf-8")
    assert "<title>p.npz: " in html
    assert f"polycal audit {files / 'p.npz'} --html {page}" in html
    assert text.read_text(encoding="utf-8").startswith("# p.npz: ")


def test_before_and_after_a_saved_calibrator(run, files):
    done = run("audit", files / "p.npz", "--calibrator", files / "t.polycal", "--json")
    result = json.loads(done.stdout)
    assert result["calibrator"] == "TemperatureScaling()"
    assert result["after"]["n_samples"] == 120


def test_what_is_no_calibrator_is_one_line(run, files):
    sample = pc.read_predictions(files / "p.npz")
    pc.KernelAuditor().find_witness(sample.labels, sample.proba).save(files / "w.polycal")
    done = run("audit", files / "p.npz", "--calibrator", files / "w.polycal")
    assert done.returncode == 2
    assert "holds a KernelWitness, not a calibrator" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_folder_that_is_not_there_is_one_line(run, files):
    done = run("audit", files / "p.npz", "--html", files / "nowhere" / "r.html")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
