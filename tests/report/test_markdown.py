import re

import pytest
from tests.report.conftest import HOSTILE

from polycal.report.markdown import plain


def test_every_audit_becomes_text(audit):
    text = audit.to_markdown()
    assert text.startswith("# ")
    assert text.endswith("\n")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_the_numbers_are_those_of_the_audit(proven):
    text = proven.to_markdown(title="My model", command="polycal audit preds.npz")
    worst = proven.worst
    assert text.startswith("# My model: not calibrated\n\n**Do not take these probabilities at their word.**")
    assert f"| {worst.certificate.estimate:.4f} | {worst.certificate.lower_bound:.4f} |" in text
    assert "## Confidence and groups" in text
    assert "| animal |" in text
    assert "    polycal audit preds.npz" in text
    assert "arxiv.org/abs/2402.07821" in text


def test_before_and_after(compared):
    text = compared.to_markdown()
    assert "## Before and after TemperatureScaling()" in text
    assert (
        f"| Log loss | {compared.scores['log_loss']:.4f} | {compared.after.scores['log_loss']:.4f} | better |"
        in text
    )


def test_silence_and_too_few_rows_are_said(silent, few):
    assert "nothing proven" in silent.to_markdown()
    assert "That is no proof of trust" in silent.to_markdown()
    assert "too few" in few.to_markdown()
    assert "and groups" not in few.to_markdown()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_end_no_line(hostile, name):
    assert "\n" not in plain(name)
    assert not re.search(r"(?<!\\)[|`*\[\]]", plain(name))
    assert "<" not in plain(name)
    assert plain(name) in hostile.to_markdown()


def test_the_file_is_the_text(few, tmp_path):
    path = tmp_path / "report.md"
    assert few.to_markdown(path) == path.read_text(encoding="utf-8")
