"""Names that came from data do nothing to a terminal, a page or a log."""

import re

import numpy as np
import pytest

import polycal as pc
from polycal._text import printable

HOSTILE = ["\x1b[2Jcat", "\x1b]0;title\x07dog", "\u202eeel\x9b31m\r"]
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
GROUPS = {"pets\x1b[8m": [0, 1], "\u2066water": [2]}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 600)
    labels = (truth.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    return labels, truth**3 / (truth**3).sum(axis=1, keepdims=True)


def shown(text):
    """Nothing in it acts, and the names can be told."""
    return not UNSEEN.search(text) and "\\x1b" in text


def test_what_acts_is_written_out():
    assert printable("\x1b[2J\ud800 \u202e\x85é\n") == "\\x1b[2J\\ud800 \\u202e\\x85é\\n"
    assert printable("a\n\tb\r", lines=True) == "a\n\tb\\r"
    assert printable("naïve 👩‍👧 ‎") == "naïve 👩‍👧 \\u200e"


def test_results_show_names_that_do_nothing(rows):
    audit = pc.audit(*rows, class_names=HOSTILE, groups=GROUPS, n_jobs=1)
    witness = pc.SubsetAuditor().find_witness(*rows, class_names=HOSTILE)
    certificate = pc.certify(witness, *rows, class_names=HOSTILE)
    calibrator = pc.TemperatureScaling().fit(rows[1], rows[0], class_names=HOSTILE)
    markdown = audit.to_markdown(title="\x1b[2Jtitle", command="polycal audit \x1b[2J.npz")
    for text in (str(audit), markdown, audit._repr_html_()):
        assert shown(text)
    for text in (repr(witness), witness._repr_html_(), str(certificate), calibrator._repr_html_()):
        assert not UNSEEN.search(text)


def test_a_comparison_shows_names_that_do_nothing(rows):
    labels, proba = rows
    methods = {"\x1b[2Jmine": pc.TemperatureScaling(), "other": pc.IdentityCalibrator()}
    result = pc.compare_calibrators(labels[:300], proba[:300], labels[300:], proba[300:], calibrators=methods)
    for text in (str(result), repr(result), result._repr_html_()):
        assert shown(text)


@pytest.fixture
def file(tmp_path, rows):
    path = tmp_path / "\x1b[2Jp.npz"
    pc.write_predictions(path, *rows, class_names=HOSTILE)
    return path


@pytest.mark.parametrize("options", [[], ["--quiet"], ["--json"]])
def test_the_command_shows_names_that_do_nothing(run, file, tmp_path, options):
    page = tmp_path / "p.md"
    groups = tmp_path / "groups.yaml"
    groups.write_text('"pets\\e[8m": [0, 1]')
    done = run("audit", file, "--groups", groups, "--markdown", page, *options)
    assert done.returncode == 0
    assert not UNSEEN.search(done.stdout + done.stderr + page.read_text())
    model = tmp_path / "\x1b[2Jm.polycal"
    for arguments in (
        ("recalibrate", file, "--method", "temperature", "--out", model),
        ("apply", model, file, "--out", tmp_path / "\x1b[2Jfixed.npz"),
        ("compare", file, file, "--method", "temperature"),
        ("audit", tmp_path / "\x1b[2Jmissing.npz"),
        ("audit", file, "--groups", tmp_path / "\x1b[2Jmissing.yaml"),
        ("apply", model, file, "--out", tmp_path / "\u202efixed.csv"),
    ):
        done = run(*arguments, *options)
        assert not UNSEEN.search(done.stdout + done.stderr), arguments
        if done.returncode:
            assert len(done.stderr.splitlines()) == 1


def test_a_csv_holds_no_names_that_act(rows, tmp_path):
    with pytest.raises(ValueError, match=r"called '\\x1b\[2Jcat': it holds control characters"):
        pc.write_predictions(tmp_path / "p.csv", *rows, class_names=HOSTILE)
    assert list(tmp_path.iterdir()) == []
