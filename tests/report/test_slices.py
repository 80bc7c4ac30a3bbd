"""Slices in every form of the report."""

import numpy as np
import pytest

import polycal as pc
from polycal.report.slices import cost_tables, found_rows, heat_map, named_rows, slice_advice, slice_words
from polycal.report.summary import summarise
from polycal.report.words import verdict


@pytest.fixture(scope="module")
def audit():
    data = pc.datasets.make_slices(5000, temperature=0.3, random_state=0)
    column, codes = data.features.column("device")
    features = {"<i>device": np.array(column.categories)[codes.astype(int)]}
    return pc.audit(
        data.labels,
        data.proba,
        features=features,
        slices=["<i>device"],
        groups={"first": [0, 1]},
        losses={"triage": np.eye(10)[:3]},
        auditors={},
        notions=[],
    )


def test_the_finding_is_said_first(audit):
    said = audit.to_dict()
    assert slice_words(said)[0].startswith("where <i>device is tablet (")
    assert found_rows(said)[0][0] == "<i>device is tablet"
    assert len(slice_advice(said)) == 1
    assert slice_advice(said | {"slices": []}) == []


def test_the_heat_map_has_every_question_of_every_slice(audit):
    named = audit.to_dict()["named_slices"]
    heat = heat_map(named)
    assert [column["kind"] for column in heat["columns"]] == ["rank"] * 4 + ["group"] + ["class"] * 10
    rows = {row["name"]: row for row in heat["rows"]}
    cells = [cell for row in heat["rows"] for cell in row["cells"]]
    assert max(cell["heat"] for cell in cells) == 100
    assert rows["<i>device is tablet"]["cells"][0]["mark"] == "off"
    for cell, question in zip(cells, (q for one in audit.named_slices for q in one.questions), strict=True):
        assert cell["error"] == question.smooth_error
        assert (cell["mark"] == "off") == (question.at_least > 0)
    assert len(named_rows(audit.to_dict())) == len(rows) == 3
    assert heat_map([]) is None


def test_every_loss_is_told_in_every_slice(audit):
    (table,) = cost_tables(audit.to_dict()["named_slices"])
    assert table["name"] == "triage"
    assert [row[0] for row in table["rows"]] == [one.name for one in audit.named_slices]


def test_every_form_tells_slices(audit):
    page = audit.to_html()
    before = page.partition("<script")[0]
    assert 'id="slices"' in before
    assert "&lt;i&gt;device is tablet" in before
    assert "<i>device" not in before
    assert "What acting costs in these slices: triage" in before
    assert "## Rows that differ" in audit.to_markdown()
    assert "Slices that were asked for" in str(audit)
    alone = audit.to_dict() | {"groups": []}
    assert verdict(alone).startswith("Not calibrated where <i>device is tablet.")
    assert summarise(alone)["state"] == "miscalibrated"
    assert "but one is where <i>device is tablet." in summarise(alone)["because"]
