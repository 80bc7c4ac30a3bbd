import pytest
from tests.report.conftest import HOSTILE

import polycal as pc
from polycal.report.model_card import BEGIN, END, put_into


@pytest.fixture(scope="module")
def audit():
    made = pc.datasets.make_temperature(600, 3, temperature=0.4, random_state=0)
    return pc.audit(
        made.labels, made.proba, class_names=["cat", "dog", "<b>|x"], groups={"pets": ["cat", "dog"]}
    )


def test_the_section_says_what_was_shown(audit):
    section = audit.to_model_card(data="a test set")
    assert section.startswith(BEGIN)
    assert section.rstrip().endswith(END)
    assert "**Evaluated on** a test set (600 rows, 3 classes)." in section
    assert "| pets |" in section
    assert "## Calibration: not calibrated" in section


def test_names_are_no_markup(audit):
    assert "<b>" not in audit.to_model_card()
    assert "<script" not in audit.to_model_card(data=str(HOSTILE))


def test_a_card_keeps_what_is_not_ours(audit, tmp_path):
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\n---\n# My model\n")
    first = audit.to_model_card(card)
    card.write_text(card.read_text() + "\n## After\n")
    audit.to_model_card(card, data="rows of May")
    text = card.read_text()
    assert text.startswith("---\nlicense: mit\n---\n# My model\n\n" + BEGIN)
    assert text.endswith(END + "\n\n## After\n")
    assert text.count(BEGIN) == 1
    assert "rows of May" in text
    assert "rows of May" not in first


def test_a_new_card_is_the_section(audit, tmp_path):
    assert audit.to_model_card(tmp_path / "new.md") == (tmp_path / "new.md").read_text()


def test_a_broken_section_is_not_lost():
    assert put_into(f"{BEGIN} cut", "new\n") == f"{BEGIN} cut\n\nnew\n"
